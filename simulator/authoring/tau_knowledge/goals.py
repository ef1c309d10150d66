"""Word what a customer wants to learn, as goals of personas are worded: `Learn how to …`, `Learn whether …`.

A wish for an action of the bank, such as the closing of an account, becomes the wish to learn how it is done:
our assistants answer from documents and act on nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hallulab.agents.retrieval.word_search import list_stems
from hallulab.simulator.authoring.tau_knowledge.instructions import (
    Instructions,
    drop_brackets,
    split_sentences,
)
from hallulab.simulator.authoring.tau_knowledge.third_person import THEY, Pronouns, report_speech, speak_about

MOST = 5
"""Goals of a persona; a conversation has a few turns."""
_ALIKE = 0.65
"""A goal is a repetition if so large a share of its stems, or of the other's, is in both."""

_WH = r"(?:what|when|where|which|who|why|how|whether|if)"
_ASKED = re.compile(
    rf"\b(?:want|wants|like|likes|need|needs|wondering|curious|try|trying)\b(?: to)?"
    rf"(?: know| learn| understand| find out| figure out| ask)?(?: about)? (?P<asked>{_WH} .+)"
    rf"|\b(?:find out|seeking advice on|ask specifically|ask the agent) (?P<told>{_WH} .+)",
    re.IGNORECASE,
)
_ACTION = re.compile(
    r"\b(?:want|wants|need|needs|would like|demand|ask|decide|decides)(?: the agent| Rho-Bank| the bank)?"
    r"(?: to (?:help (?:her|him|them)|investigate and help (?:her|him|them)))?(?: to)? (?:to )?"
    r"(?P<action>(?:be transferred|cancel|change|check|close|dispute|file|fix|get|increase|open|order|redeem"
    r"|replace|request|report|set up|speak|switch|upgrade|withdraw|transfer|add|remove|update|deposit)\b.+)"
)
_PRODUCT = re.compile(
    r"\blooking for an? (?P<kind>[\w -]{3,40}?) (?P<use>to use for .+|(?:with|that) .+)"
    r"|\b(?:wants?|prefers?) (?:the|an?) "
    r"(?P<which>card|one|account|credit card|savings account|checking account) (?P<has>(?:with|that) .+)"
    r"|\bnot accept an? (?P<bare>[\w -]{3,40}?) that (?P<fault>.+?)(?: unless .+)?$",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"(?:[\w' ]{0,24}, )?(?P<question>(?:what|when|where|which|who|why|how|can|could|would|will|do|does|is"
    r"|are|should|may)\b.+)",
    re.IGNORECASE,
)
_INTO_VERB = re.compile(
    rf"(?!why\b)(?P<wh>{_WH}\b[\w ]*?) (?:do|can|could|should|would) i (?:need to |have to |want to )?"
    r"(?P<rest>.+)",
    re.IGNORECASE,
)
_MAY_I = re.compile(r"(?:can|could|may|should|would) i (?P<rest>.+)", re.IGNORECASE)
_DO_I = re.compile(r"do i (?P<rest>.+)", re.IGNORECASE)
_BY_BANK = re.compile(
    r"(?:actually,? )?(?:can|could|would|will) you (?:please )?(?:just |also )?(?P<rest>.+)", re.IGNORECASE
)
_DOES_BANK = re.compile(r"do you (?:guys )?(?P<rest>(?:have|offer)\b.+)", re.IGNORECASE)
_IS_THERE = re.compile(
    r"(?P<verb>is|are) (?P<what>there|this|that one|that|it|any of (?:these|those)) (?P<rest>.+)",
    re.IGNORECASE,
)
_WHAT_IS = re.compile(
    r"(?P<wh>what|where|who|how much)(?: (?P<verb>is|are)|'s) "
    r"(?P<rest>(?:the|an?|my|your|this|these)\b.+)",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"\b(?:what about|try another one -) (?P<thing>the [\w -]{1,60}?)(?: then)?[.?]", re.IGNORECASE
)
_NOTHING = re.compile(
    r"\bgoing on\b|\bdo that\b|\blet (?:me|her|him|them) know\b"
    r"|\bhelp (?:me|her|him|them)(?: (?:check|with that))?$|\bhow to (?:check$|figure\b)|\bcan help$"
    r"|\blook it up$|\bthat is possible$|^how to dispute$|\bmy options\b|\bwhy(?: not)?$|\bwhat is wrong\b",
    re.IGNORECASE,
)
_LETS = re.compile(
    r"\ban? (?P<thing>(?:(?!(?:an?|who|that)\b)[\w-]+ )+)that (?:should|would) let you (?P<done>[^.]+)"
)
_POINTS_BACK = re.compile(r"\b(?:it|them|those)$")
_REPLY = re.compile(r"Start by |(?:When|If) asked\b")
"""Begins lines that are read elsewhere, or that say how a question of the bank is answered."""
_NEXT_TASK = re.compile(
    r",? (?:and|as well as) (?:finally )?(?=(?:get|file|open|order|deposit|apply|dispute|close)\b)"
)
_TO_PERSON = re.compile(
    r"\bhuman\b|\brequest a transfer\b|\btransferred\b"
    r"|\bspeak (?:to|with) (?:a supervisor|someone|somebody)\b"
)
_COMPLAINT = re.compile(
    r"\b(?:keeps?|still|only|dropped|declin\w+|wrong|missing|doesn't seem|higher than"
    r"|not (?:right|showing))\b"
)


def word_goals(read: Instructions, person: Pronouns) -> tuple[str, ...]:
    """Return the goals of a customer, the first message's first, at most `MOST`; empty if none is found."""
    openings = [one for one in read.behaviour if one.startswith("Start by ")]
    found = [
        *_read_message(read.opening, person),
        *(wish for one in (*openings, *read.story) for wish in _read_wish(one, person)),
    ]
    if read.opening and not found:
        found += _read_complaint(read.opening, person)
    found += [wish for one in read.goals for wish in _read_task(one, person)]
    found += [wish for one in read.quotes for wish in _read_message(one, person)]
    found += [wish for one in read.behaviour if not _REPLY.match(one) for wish in _read_wish(one, person)]
    worded = [_finish(one, person) for one in found]
    clear = [one for one in worded if not _POINTS_BACK.search(one)]
    kept: list[str] = []
    for one in clear or worded:
        stems = set(list_stems(one))
        known = [set(list_stems(other)) for other in kept]
        if stems and all(len(stems & other) < _ALIKE * min(len(stems), len(other)) for other in known):
            kept.append(one)
    return tuple(f"Learn {one}" for one in kept[:MOST])


def _read_message(message: str, person: Pronouns) -> Iterator[str]:
    """Yield what a message of the customer asks, or says that they want."""
    thing = _ABOUT.search(message)
    for sentence in split_sentences(message):
        if thing and _ABOUT.search(sentence):
            continue
        if thing:
            pointing = r"\bthat(?: one)?(?= available|\?| instead)(?: instead)?"
            sentence = re.sub(pointing, thing["thing"], sentence)
        if "?" in sentence[-2:]:
            asked = _QUESTION.fullmatch(sentence.rstrip("?! "))
            found = None if asked is None else _read_question(asked["question"], person)
            if found is not None and not _NOTHING.search(found):
                yield found
        elif lets := _LETS.search(sentence):
            yield report_speech(f"whether a {lets['thing']}lets you {lets['done']}", person)
        else:
            yield from _read_wish(report_speech(sentence, person), person)


def _read_question(question: str, person: Pronouns) -> str | None:
    """Return a question of the customer as what they want to learn; None: its form is unknown."""
    question = question[:1].lower() + question[1:]
    if found := _INTO_VERB.fullmatch(question):
        return report_speech(f"{found['wh']} to {found['rest']}", person)
    if found := _MAY_I.fullmatch(question):
        return f"whether {person.subject} can {report_speech(found['rest'], person)}"
    if found := _DO_I.fullmatch(question):
        return report_speech(f"whether I {found['rest']}", person)
    if found := _BY_BANK.fullmatch(question):
        return _read_request(found["rest"], person)
    if found := _DOES_BANK.fullmatch(question):
        return report_speech(f"whether you {re.sub('^have', 'has', found['rest'])}", person)
    if found := _IS_THERE.fullmatch(question):
        return report_speech(f"whether {found['what']} {found['verb']} {found['rest']}", person)
    if found := re.fullmatch(r"is (the [\w -]+) (available)", question):
        return f"whether {found[1]} is {found[2]}"
    if found := _WHAT_IS.fullmatch(question):
        return report_speech(f"{found['wh']} {found['rest']} {found['verb'] or 'is'}", person)
    return None


def _read_request(request: str, person: Pronouns) -> str:
    """Return what the customer asks the bank to do as what they want to learn."""
    for begin, learnt in (
        (r"show me ", "how to see "),
        (r"tell me ", ""),
        (r"(?:just )?transfer me ", "how to be transferred "),
        (r"help me (?:to )?", "how to "),
    ):
        if re.match(begin, request):
            return report_speech(re.sub(begin, learnt, request, count=1), person)
    request = re.sub(r"\bsend it\b", "send the card", request)  # the bank sends nothing else
    return f"whether the bank can {report_speech(request, person)}"


def _read_wish(sentence: str, person: Pronouns) -> Iterator[str]:
    """Yield what a sentence to or about the customer says that they want."""
    said = drop_brackets(speak_about(sentence, person)).rstrip(".!? ")
    if re.search(r"\bnot want\b|\bdo not (?:accept|ask|use)\b|\bnever\b", said) and "accept a" not in said:
        return
    if asked := _ASKED.search(said):
        found = re.sub(r"^if\b", "whether", asked["asked"] or asked["told"])
        if not _NOTHING.search(found):
            yield found
    elif product := _PRODUCT.search(said):
        if product["bare"]:
            yield f"whether the {product['bare']} {product['fault']}"
        elif product["use"] and product["use"].startswith("to use"):
            yield f"which {product['kind']} {product['use']}"
        else:
            verb = re.sub(r"^with", "has", product["use"] or product["has"])
            yield f"which {product['kind'] or product['which']} {re.sub('^that ', '', verb)}"
    elif action := _ACTION.search(said):
        yield f"how to {action['action']}"


def _read_task(sentence: str, person: Pronouns) -> Iterator[str]:
    """Yield the parts of a sentence of the section `Your goal`: an order to the customer, or a wish."""
    said = re.sub(r",? if (?:you|she|he|they) [^,]+, ", " ", drop_brackets(sentence)).rstrip(".!? ")
    if re.match(r"(?:You|If|For|Each|Between|However|When|Once|Only|Be|After|Then|Note)\b", said):
        yield from _read_wish(said, person)
        return
    if told := re.match(r"(?:Find out|Know|Learn|Understand) (.+)", said):
        yield speak_about(told[1], person)
        return
    if re.match(r"Express that ", said):
        yield from _read_wish(said, person)
        return
    for part in _NEXT_TASK.split(said):
        if re.match(r"(?:after|then|be)\b", part):
            continue
        plain = part.partition(":")[0]
        yield f"how to {speak_about(plain[:1].lower() + plain[1:], person)}"


def _read_complaint(opening: str, person: Pronouns) -> list[str]:
    """Return why-questions, or a doubt, for a first message that only says what is wrong."""
    sentences = split_sentences(opening)
    for sentence in sentences:
        if doubt := re.search(r"\bI think (?:that )?(my .+|some of .+|there .+)", sentence):
            return [report_speech(f"whether {doubt[1]}", person)]
    said = [one for one in sentences if _COMPLAINT.search(one) and not one.endswith("?")]
    if not said:
        return []
    main, _, other = said[0].partition(", but ")
    clause = other if _COMPLAINT.search(other) else main
    clause = re.sub(r"^(?:(?:Hi|Hello|But|And)(?: there)?[,!]? )+", "", clause)
    clause = re.sub(r"^I've been .* and (?=something)", "", clause)
    clause = re.sub(r"^I .*\b(?:alert|notice|message|letter) that ", "", clause).rstrip(".!? ")
    if found := re.fullmatch(r"(when [^,]+), (.+)", clause, re.IGNORECASE):
        clause = f"{found[2]} {found[1]}"
    words = report_speech(clause, person)
    return [f"why {words if words[:2].isupper() else words[:1].lower() + words[1:]}"]


def _finish(learnt: str, person: Pronouns) -> str:
    """Cut what is said besides a wish: reasons, conditions, colons, exclamations."""
    if _TO_PERSON.search(learnt):
        return "how to be transferred to a human agent"
    cut = re.split(
        r"\. | because | since | but | right away| right now|,? including | who (?:can|might)|: | \(| [-–—] "
        r"| if (?:the agent|they still)",
        learnt.rstrip(".?! "),
    )[0].rstrip(",.:?! ")
    cut = re.sub(r"\bthe agent\b", "the bank", re.sub(r"\bmy\b", person.possessive, cut))
    return re.sub(r"\btheir\b", "the", cut) if person is THEY else cut
