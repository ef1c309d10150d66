"""What the user said is no hallucination (HalluDetect section 5.2.1, the false positive).

Exact matching, no model: small models overlook an address that stands in the dialogue and not in a document.
Each text is searched once, for all sentences of a reply.
"""

from __future__ import annotations

import re
from functools import lru_cache

_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_NUMBER = re.compile(r"\+?\d(?:[\d\s().,/-]*\d)?")
_WORD = re.compile(r"[^\W\d_]{4,}")
_LABEL = re.compile(
    r"address|amount|concerning|contact|date|dear|email|from|mail|message|mobile|name|number|paid|phone|price"
    r"|regards|respected|subject|telephone|that|this|value|with|yours?"
)
"""Words of forms and letters that claim nothing."""
KNOWN_SHARE = 2 / 3
"""Share of a sentence's other words that must be known, too."""


def repeats_user(sentence: str, user_text: str, evidence_text: str) -> bool:
    """Return whether a sentence only repeats e-mail addresses, phone numbers, amounts or other numbers of the
    user.

    At least one of them must stand in `user_text`, and each of them in `user_text` or `evidence_text`
    (numbers by their digits). Of the sentence's other words of four letters or more, at least `KNOWN_SHARE`
    must stand there, too; labels such as "phone" or "amount" do not count.
    """
    said, known = items(user_text), items(user_text) | items(evidence_text)
    found = items(sentence)
    if not found & said or not found <= known:
        return False
    vocabulary = set(_words(user_text)) | set(_words(evidence_text))
    others = [word for word in _words(_EMAIL.sub(" ", sentence)) if not _LABEL.fullmatch(word)]
    return sum(word in vocabulary for word in others) >= KNOWN_SHARE * len(others)


def draws_on_user(sentence: str, user_text: str, evidence_text: str) -> bool:
    """Return whether a sentence must be compared with the user's words, too.

    That is so if it has a number or e-mail address of the user's. It is also so if at least half of the words
    of four letters or more that the evidence lacks are the user's. To show the user's words always would be
    simpler, but a small model takes a question for a fact.
    """
    if items(sentence) & items(user_text):
        return True
    known = set(_words(evidence_text))
    unknown = [word for word in _words(sentence) if word not in known]
    own = set(_words(user_text))
    return bool(unknown) and 2 * sum(word in own for word in unknown) >= len(unknown)


@lru_cache(maxsize=256)
def items(text: str) -> frozenset[str]:
    """Return e-mail addresses in lower case, and numbers as digits only."""
    emails = {email.lower() for email in _EMAIL.findall(text)}
    rest = _EMAIL.sub(" ", text)
    return frozenset(emails | {re.sub(r"\D", "", number) for number in _NUMBER.findall(rest)})


@lru_cache(maxsize=256)
def _words(text: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORD.findall(text))
