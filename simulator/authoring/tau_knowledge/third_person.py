"""Turn sentences that speak to a customer, or that the customer says, into sentences about the customer.

The rules are for English. They know the verbs of tau-Knowledge's instructions; of other verbs, those that end
in -ed are read as past.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Pronouns(NamedTuple):
    """The words for a person of whom one speaks."""

    subject: str
    object: str
    possessive: str
    own: str
    reflexive: str


SHE = Pronouns("she", "her", "her", "hers", "herself")
HE = Pronouns("he", "him", "his", "his", "himself")
THEY = Pronouns("they", "them", "their", "theirs", "themselves")

_SHE_NAMES = re.compile(
    r"Amara|Anastasia|Camila|Catherine|Claire|Diana|Elena|Fatima|Isabella|Margot|Mei|Mei-Lin|"
    r"Nalini|Naomi|Priya|Rachel|Sarah|Sera|Sofia|Tomoko|Valentina|Valeria|Yuki|Yumi"
)
_HE_NAMES = re.compile(
    r"Ahmad|Ayan|Bob|Carlos|Daniel|David|Dmitri|Jinhai|Joon-ho|Junho|Kenji|Kwame|Lachlan|"
    r"Marco|Marcus|Oluwaseun|Roberto|Somchai|Tyler|Wei|Wei-Ting"
)
"""Given names of tau-Knowledge's customers, who are invented, with usual pronouns."""

_ADVERBS = (
    "absolutely|actually|already|also|always|currently|even|finally|generally|just|never|normally|now|only"
    "|originally|personally|probably|really|recently|specifically|still|suddenly|then|typically|usually"
)
_IRREGULAR = {
    **{"am": "is", "are": "is", "were": "was", "have": "has", "do": "does", "go": "goes"},
    **{"don't": "doesn't", "aren't": "isn't", "weren't": "wasn't", "haven't": "hasn't"},
}
_UNCHANGED = re.compile(
    r"bought|brought|came|chose|did|didn't|drove|fell|felt|forgot|found|gave|got|had|hadn't|"
    r"heard|held|kept|knew|left|lost|made|met|ordered|paid|read|ran|said|sat|saw|sent|set|"
    r"signed|sold|spent|spoke|stood|thought|told|took|understood|was|wasn't|went|woke|won|"
    r"wrote|can|can't|cannot|could|couldn't|may|might|must|should|shouldn't|will|won't|would|"
    r"wouldn't"
)
"""Past and modal forms, which are the same in every person."""
_PRESENT = re.compile(
    r"agree|ask|believe|call|care|carry|check|come|earn|expect|feel|find|get|give|hold|"
    r"keep|know|like|live|look|love|mind|need|notice|own|pay|plan|prefer|receive|refer|"
    r"remember|run|see|spend|suspect|take|think|travel|try|understand|use|want|wish|wonder|"
    r"work"
)
_JOINED = re.compile(
    rf"\b(and|but) ((?:(?:{_ADVERBS}) )?)"
    r"(are|believe|don't|feel|have|haven't|like|need|plan|prefer|suspect|want|were)\b"
)
_BEFORE_SUBJECT = re.compile(
    r"and|although|as|because|before|but|even|how|if|once|or|since|so|than|that|then|"
    r"though|unless|until|what|whatever|when|where|whether|which|while|who|why"
)
_BEFORE_OBJECT = {"for", "help", "helps", "let", "lets", "of", "to", "with"}
_SHORT = re.compile(r"\b(you|I)['’](re|ve|d|ll|m)\b", re.IGNORECASE)
_SHORT_VERBS = {"re": "are", "m": "am", "ve": "have", "d": "would", "ll": "will"}
_PERSON = re.compile(
    r"(?<![\w'’])(?P<before>(?:(?:[\w'’]+|[^\w\s]|(?<!\s))\s*)?)"
    rf"\b(?P<word>you|I)\b(?P<between>(?:\s+(?:{_ADVERBS}))*)"
    r"(?:\s+(?P<verb>[a-z'’]+))?",
    re.IGNORECASE,
)
_SHOUTED = re.compile(r"\b[A-Z]{2,}(?:'[A-Z]+)?\b")
_ORDINARY = re.compile(
    r"ALL|ALREADY|AMOUNT|AND|ANY|AS|BE|BETTER|BOTH|CANCELLED|CHARGE|CORRECT|DESCRIBED|DID|"
    r"DO|DON'T|DUPLICATE|EXTREMELY|FOUR|FRAUD|GOODS|HIGHEST|HUMAN|INCORRECT|KNOW|LOVE|LOWEST|"
    r"MUST|NET|NEVER|NO|NONE|NOT|NOW|ONE|ONLY|PROCESSED|RECEIVED|REFUND|RIGHT|SUBSCRIPTION|"
    r"THREE|TOMORROW|UPFRONT|VAGUE|WORK"
)


def choose_pronouns(name: str, about: str) -> Pronouns:
    """Return the pronouns of a customer by what is said about them, else by the name, else `they`.

    >>> choose_pronouns("Kim Doe", "a nurse from Leeds who likes her card").subject
    'she'
    """
    for pronouns, words in ((SHE, "she|her|mother|woman"), (HE, "he|his|him|father|man")):
        if re.search(rf"\b(?:{words})\b", about, re.IGNORECASE):
            return pronouns
    for word in name.split():
        if _SHE_NAMES.fullmatch(word):
            return SHE
        if _HE_NAMES.fullmatch(word):
            return HE
    return THEY


def lower_shouted(text: str) -> str:
    """Write ordinary words that are in capitals for emphasis in small letters; abbreviations stay.

    >>> lower_shouted("You do NOT fly to LA")
    'You do not fly to LA'
    """
    return _SHOUTED.sub(lambda found: found[0].lower() if _ORDINARY.fullmatch(found[0]) else found[0], text)


def speak_about(text: str, person: Pronouns) -> str:
    """Return a sentence to the customer (`you`) as a sentence about the customer.

    >>> speak_about("You want a card, and your bank told you that you qualify.", SHE)
    'She wants a card, and her bank told her that she qualifies.'
    """
    forms = {"your": person.possessive, "yours": person.own, "yourself": person.reflexive}
    return _change_person(text, "you", forms, person)


def report_speech(text: str, person: Pronouns) -> str:
    """Return a sentence that the customer says to the bank as a sentence about the customer.

    >>> report_speech("I got a letter from you, but my card isn't in it.", HE)
    "He got a letter from the bank, but his card isn't in it."
    """
    text = re.sub(r"\byour\b", "the bank's", text, flags=re.IGNORECASE)
    text = re.sub(r"\byou(?: guys)?['’](?:re|ve)\b", "the bank has", text, flags=re.IGNORECASE)
    text = re.sub(r"\byou(?: guys)?\b", "the bank", text, flags=re.IGNORECASE)
    forms = {"my": person.possessive, "mine": person.own, "myself": person.reflexive, "me": person.object}
    return _change_person(text, "i", forms, person)


def _change_person(text: str, subject: str, forms: dict[str, str], person: Pronouns) -> str:
    text = _SHORT.sub(lambda found: f"{found[1]} {_SHORT_VERBS[found[2].lower()]}", text)
    has_subject = re.search(rf"\b{subject}\b", text, re.IGNORECASE) is not None

    def replace(found: re.Match[str]) -> str:
        if found["word"].lower() != subject:
            return found[0]
        verb = found["verb"]
        if subject == "you" and not _is_subject(found["before"].strip().lower(), verb):
            rest = found[0][len(found["before"]) + len(found["word"]) :]
            return f"{found['before']}{person.object}{rest}"
        said = "" if verb is None else f" {_conjugate(verb, person)}"
        return f"{found['before']}{person.subject}{found['between']}{said}"

    changed = _PERSON.sub(replace, text)
    for word, form in forms.items():
        changed = re.sub(rf"\b{word}\b", form, changed, flags=re.IGNORECASE)
    if has_subject and person is not THEY:
        changed = _JOINED.sub(lambda found: f"{found[1]} {found[2]}{_conjugate(found[3], person)}", changed)
    return changed[:1].upper() + changed[1:] if text[:1].isupper() else changed


def _is_subject(before: str, verb: str | None) -> bool:
    """Return whether `you` between these words is the one who acts."""
    if verb is None or verb.endswith("ing") or before in _BEFORE_OBJECT:
        return False
    if not before or not before[0].isalnum() or _BEFORE_SUBJECT.fullmatch(before):
        return True
    known = verb in _IRREGULAR or _UNCHANGED.fullmatch(verb) or _PRESENT.fullmatch(verb)
    return bool(known) or (verb.endswith("ed") and len(verb) > 3)


def _conjugate(verb: str, person: Pronouns) -> str:
    """Return a verb of `you` or `I` for a person of whom one speaks."""
    if person is THEY:
        return "are" if verb == "am" else "were" if verb == "was" else verb
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if _UNCHANGED.fullmatch(verb) or (verb.endswith("ed") and verb != "need"):
        return verb
    if re.search(r"[^aeiou]y$", verb):
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else f"{verb}s"
