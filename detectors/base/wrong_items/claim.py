"""A flagged sentence beside its evidence: which parts the evidence has, and where."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from hallulab.detectors.base.wrong_items.evidence import EvidenceIndex, Sentence, Token, content, read_tokens
from hallulab.scenarios.text.items import Item, find_items, name_parts
from hallulab.scenarios.text.spans import Region

_SOURCE = r"(?:documents?|passages?|evidence|information|context|text|article|sources?)"
_NO_CLAIM = re.compile(
    r"\A\W*(?:\d{1,2}[.)]\s)?\W*(?:(?:yes|no)\b\W*)?(?:in (?:your|this|the user's) case\b\W*)?"
    rf"(?:(?:according to|based on|as per) (?:the )?(?:\w+ )?{_SOURCE}\b"
    rf"|(?:the )?(?:\w+ )?{_SOURCE} (?:also )?"
    r"(?:states?|says?|mentions?|provides?|indicates?|notes?|specif(?:y|ies)) that\b)?",
    re.IGNORECASE,
)
"""Beginnings that are no part of the claim: list numbers, yes or no, "in your case", words about the
evidence."""
CLAUSE_END = re.compile(r"[,;:(]|\b(?:because|so|if|when|which|unless|although)\b", re.IGNORECASE)
"""Where a clause ends."""


@dataclass(frozen=True)
class UserStatements:
    """What the user said, questions too."""

    stems: frozenset[str]
    """Stems of the content words."""
    keys: frozenset[str]
    """Keys of the items."""

    def has(self, item: Item) -> bool:
        """Return whether the user said the item."""
        if item.kind == "name":
            return set(item.key.split()) <= self.stems
        return item.key in self.keys


@lru_cache(maxsize=128)
def read_said(text: str) -> UserStatements:
    """Read what the user said."""
    return UserStatements(content(read_tokens(text)), frozenset(item.key for item in find_items(text)))


@dataclass(frozen=True)
class ComparedSentence:
    """A sentence beside its evidence."""

    text: str
    """The sentence."""
    begins: int
    """Where the claim begins: after the number of a list, yes or no, and words about the evidence."""
    tokens: tuple[Token, ...]
    """Its words; those before `begins` are no content."""
    items: tuple[Item, ...]
    """Its items. A name found only in parts is listed in parts."""
    stems: frozenset[str]
    """Stems of its content words."""
    evidence: EvidenceIndex
    """The evidence it is compared with."""
    said: UserStatements
    """What the user said."""
    best: Sentence | None
    """The evidence sentence that has most of it; None if none has anything."""
    share: float
    """The share of it that this sentence has."""

    def absent(self, item: Item) -> bool:
        """Return whether neither evidence nor user have the item."""
        return not self.evidence.holding(item) and not self.said.has(item)

    def inside(self, place: Region) -> list[Token]:
        """Return the words of a stretch."""
        return [token for token in self.tokens if place.start <= token.start and token.end <= place.end]

    def around(self, item: Item, place: Region | None = None) -> frozenset[str]:
        """Return the stems of the content words around an item, in a stretch or in the whole sentence."""
        tokens = self.inside(place) if place else self.tokens
        return content(token for token in tokens if token.end <= item.start or item.end <= token.start)

    def clause(self, item: Item) -> Region:
        """Return the clause that holds an item."""
        start = max((m.end() for m in CLAUSE_END.finditer(self.text, 0, item.start)), default=0)
        after = CLAUSE_END.search(self.text, item.end)
        return Region(start, after.start() if after else len(self.text))

    @property
    def held(self) -> frozenset[str]:
        """The stems of the best evidence sentence and its title."""
        return self.best.stems if self.best else frozenset()

    def saying(self, place: Region) -> list[Sentence]:
        """Return the evidence sentences that have all content words of a stretch."""
        words = content(self.inside(place))
        return [known for known in self.evidence.sentences if words <= known.own and not known.is_title]


def read_claim(text: str, evidence: EvidenceIndex, user_text: str) -> ComparedSentence:
    """Read a sentence beside its evidence."""
    no_claim = _NO_CLAIM.match(text)
    begins = no_claim.end() if no_claim else 0
    tokens = tuple(
        replace(token, content=False) if token.end <= begins else token for token in read_tokens(text)
    )
    said = read_said(user_text)
    stems = content(tokens)
    best, share = evidence.best(stems)
    items = tuple(_in_parts(find_items(text), evidence, said))
    return ComparedSentence(text, begins, tokens, items, stems, evidence, said, best, share)


def _in_parts(items: Sequence[Item], evidence: EvidenceIndex, said: UserStatements) -> list[Item]:
    found: list[Item] = []
    for item in items:
        parts = name_parts(item) if item.kind == "name" else [item]
        whole = len(parts) == 1 or evidence.holding(item) or said.has(item)
        known = whole or any(evidence.holding(part) or said.has(part) for part in parts)
        found += [item] if whole or not known else parts
    return found
