"""Stretches of a reply that claim nothing: what declines, and what only frames claims. Rules for English.

`(Passage 2)`, `Passage 1 says that …`, `Based on the passages, …` tell where claims are from, `Here are the
steps:` that some follow. There is nothing to judge in them; whatever they frame is judged.

Every pattern looks at a bounded stretch from wherever it begins, so that its time grows with the text.
"""

from __future__ import annotations

import re

from hallulab.scenarios.text.declining import find_declining
from hallulab.scenarios.text.lacking import FINITE_VERB, PASSAGES
from hallulab.scenarios.text.spans import Region, split_spoken_sentences

_NUMBERS = r" \d{1,3}\b(?:(?:,| and|, and| &)(?: (?:passage|document))? \d{1,3}\b){0,9}"
_NAMED = rf"(?:{PASSAGES}|documents?|texts?|articles?)"
_DOCUMENTS = (
    r"(?:(?:the|these|this|those|both|all|your|our|my) )?(?:(?:first|second|third|last|above|given|provided"
    rf"|retrieved|available|relevant) )?{_NAMED}(?:{_NUMBERS})?"
)
_SAYS = "(?:(?:also|further|only|briefly|explicitly|specifically) )?"
_YES = "(?:(?:sure|certainly|of course|yes)[,!]? )?"


def _compile(*patterns: str) -> re.Pattern[str]:
    # A reply may break its lines between any two words.
    return re.compile("|".join(patterns).replace(" ", r"\s"), re.IGNORECASE)


_CITED = _compile(
    rf"[(\[](?:(?:see|from|in|sources?:?|according to|based on|as \w+ in) {_DOCUMENTS}|{_NAMED}{_NUMBERS})"
    r"(?:, (?:step|section|line|paragraph|page)s? \d{1,3})?[)\]]"
)
"""`(Passage 2)`, `[see document 3, step 1]`."""
_CLOSING = _compile(
    r",? (?:based (?:solely |only )?on|according to|as per"
    r"|as (?:mentioned|stated|described|provided|given) (?:in|by))"
    rf" (?:the information (?:provided )?in )?{_DOCUMENTS}(?=[.:]?[*_]{{0,2}}\Z)"
)
"""`…, according to passage 1.`"""
_LABEL = _compile(
    r"\A[*_#>\-• ]{0,8}(?:\d{1,2}[.)] )?[*_]{0,2}(?:(?:passage|document) \d{1,2}|(?:question|answer|note)"
    r"(?: \d{1,2})?(?=[*_]{0,2}:))[*_]{0,2}(?::[*_]{0,2}(?: |\Z)|\Z)"
)
"""`Passage 1:`, `**Answer:**`."""
_SAYING = _compile(
    rf"{_DOCUMENTS} {_SAYS}(?:(?:mention|state|say|note|suggest|explain|indicate|clarifie|add|report|claim"
    r"|tell(?: us)?|show|confirm)(?:e?s)?|clarify) that ",
    rf"it is {_SAYS}(?:mentioned|stated|said|noted|explained|reported) (?:in {_DOCUMENTS} )?that ",
    rf"{_DOCUMENTS} {_SAYS}(?:provide|give|contain|offer|include)s? (?:[a-z]+ ){{1,3}}?"
    r"(?:about|concerning|for|of|on|regarding) ",
    rf"{_DOCUMENTS} {_SAYS}(?:(?:discuss|describe|cover|address|mention|explain)(?:e?s)?|talks? about"
    r"|focus(?:es)? on|deals? with) ",
)
"""`Passage 2 mentions that `, `The passages discuss `: what they are said to hold is judged."""
_GOING_ON = _compile(rf"(?<=[,;] )(?:(?:and|but|while|whereas) )?(?:{_SAYING.pattern})")
"""The same within a sentence: `, while passage 2 mentions that `."""
_OPENING = _compile(
    r"(?:(?:so|therefore|thus|overall|however|also|additionally|sure|certainly|of course|yes)[,!]? )?"
    r"(?:based (?:solely |only |mainly |primarily )?(?:up)?on|according to|as per|per|from|in|using"
    r"|as \w+ (?:in|by))"
    rf" (?:the information (?:(?:provided|given|contained) )?(?:in|from) )?{_DOCUMENTS}, "
)
"""`Based on the provided passages, `"""
_REPEATING = _compile(
    r"the answer to (?:the|your) question (?:[\"“'‘][^\"”\n]{0,200}[\"”'’](?: |\Z))?(?:is(?: that)?[:,]? )?"
)
"""`the answer to the question "How long?" is `"""
_LEADING_IN = _compile(
    rf"{_YES}(?:here(?:'s|’s| is| are)|below (?:is|are)|the following (?:is|are))\b[^.:\d]{{0,200}}:[*_ ]*\Z",
    rf"(?:(?!{FINITE_VERB})[^.:\d]){{3,120}}(?:is|are|(?:can|may) be \w+)(?: as follows)?:[*_ ]*\Z",
)
"""`Here are the steps to reset it:`, `The fees are as follows:`"""
_ASKED = _compile(
    r"\W{0,8}(?:\d{1,2}[.)]|(?:question|q)(?: ?\d{1,2})?:)[*_]{0,2} [*_]{0,2}"
    r"(?:what|when|where|who|whom|whose|which|why|how|do|does|did|is|are|was|were|can|could|would|will|should"
    r"|may|has|have)\b[^?\n]{0,300}\?[*_]{0,2}\Z"
)
"""`1. How long does it take?`: a question of the user that an answer follows."""


def find_unclaimed(reply: str) -> list[Region]:
    """Return the stretches of a reply that decline, or say of which passage a claim is.

    They are in order, and do not meet.

    >>> reply = "It is free (Passage 2). Passage 1 says that it is new. I do not know why."
    >>> [region.of(reply) for region in find_unclaimed(reply)]
    ['(Passage 2)', 'Passage 1 says that ', 'I do not know why.']
    """
    found: list[Region] = []
    for sentence in split_spoken_sentences(reply):
        text = sentence.of(reply)
        for region in sorted([*find_declining(text), *_find_sources(text)]):
            start, end = sentence.start + region.start, sentence.start + region.end
            if found and start <= found[-1].end:
                start, end = found[-1].start, max(found[-1].end, end)
                found.pop()
            found.append(Region(start, end))
    return found


def _find_sources(sentence: str) -> list[Region]:
    label = _LABEL.match(sentence)
    at = label.end() if label else 0
    if said := _SAYING.match(sentence, at):
        at = said.end()
    patterns = (_GOING_ON, _CITED, _CLOSING)
    cited = [match for pattern in patterns for match in pattern.finditer(sentence, at)]
    return [*([Region(0, at)] if at else []), *(Region(*match.span()) for match in cited)]


def find_lead_in(sentence: str) -> Region | None:
    """Return how much of a sentence leads to what is claimed: its beginning, or all of it; None: nothing.

    A question of the user's that an answer follows leads to the answer.

    >>> find_lead_in("Based on the passages, it is free.")
    Region(start=0, end=23)
    >>> find_lead_in("Here are the fees:")
    Region(start=0, end=18)
    """
    at = 0
    for pattern in (_OPENING, _REPEATING, _SAYING):
        if begun := pattern.match(sentence, at):
            at = begun.end()
    if _ASKED.match(sentence) or _LEADING_IN.match(sentence, at):
        at = len(sentence)
    return Region(0, at) if at else None
