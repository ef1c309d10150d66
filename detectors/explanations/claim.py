"""A claim's clauses and phrases that can be compared with evidence."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise

from hallulab.detectors.explanations.evidence import (
    TITLE,
    EvidenceIndex,
    Sentence,
    Token,
    collect_content_stems,
    read_tokens,
)
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
LONG = 400
"""Words from which a stretch is so long (a list, a table, an attack) that an item is compared by the words
near it."""
REACH = 60
"""Words before, and after, an item that are near it."""


@dataclass(frozen=True)
class UserStatements:
    """The user's words, questions too."""

    stems: frozenset[str]
    """Stems of the content words."""
    words: frozenset[str]
    """Stems of all words."""
    keys: frozenset[str]

    def has(self, item: Item) -> bool:
        """Return whether the user said the item."""
        if item.kind == "name":
            return set(item.key.split()) <= self.stems
        return item.key in self.keys


@lru_cache(maxsize=128)
def read_said(text: str) -> UserStatements:
    """Read what the user said."""
    tokens = read_tokens(text)
    return UserStatements(
        collect_content_stems(tokens),
        frozenset(token.stem for token in tokens),
        frozenset(item.key for item in find_items(text)),
    )


@dataclass(frozen=True)
class ComparedSentence:
    """A sentence beside its evidence."""

    text: str
    begins: int
    """Where the claim begins: after the number of a list, yes or no, and words about the evidence."""
    tokens: tuple[Token, ...]
    """Its words; those before `begins` are no content."""
    items: tuple[Item, ...]
    """Its items. A name found only in parts is listed in parts."""
    stems: frozenset[str]
    evidence: EvidenceIndex
    said: UserStatements
    best: Sentence | None
    """The evidence sentence that has most of it; None if none has anything."""
    share: float
    """The share of it that this sentence has."""

    def absent(self, item: Item) -> bool:
        """Return whether neither evidence nor user have the item."""
        return not self.evidence.holding(item) and not self.said.has(item)

    def inside(self, place: Region) -> list[Token]:
        """Return the words of a stretch."""
        first, after = self.find_words(place)
        return list(self.tokens[first:after])

    def around(self, item: Item, place: Region | None = None) -> frozenset[str]:
        """Return the stems of the content words around an item, in a stretch or in the whole sentence.

        Of more than `LONG` words, only those in `REACH` of the item count.
        """
        first, after = self.find_words(place) if place else (0, len(self.tokens))
        if after - first > LONG:
            touched = self.find_words(Region(item.start, item.end))
            first, after = max(first, min(touched) - REACH), min(after, max(touched) + REACH)
        return collect_content_stems(
            token for token in self.tokens[first:after] if token.end <= item.start or item.end <= token.start
        )

    def clause(self, item: Item) -> Region:
        """Return the clause that holds an item."""
        starts, ends = self._clause_ends
        before, after = bisect_right(ends, item.start), bisect_left(starts, item.end)
        return Region(
            ends[before - 1] if before else 0, starts[after] if after < len(starts) else len(self.text)
        )

    def find_words(self, place: Region) -> tuple[int, int]:
        """Return the places of the first word in a stretch and of the first one after it."""
        starts, ends = self._edges
        return bisect_left(starts, place.start), bisect_right(ends, place.end)

    @cached_property
    def _edges(self) -> tuple[list[int], list[int]]:
        return [token.start for token in self.tokens], [token.end for token in self.tokens]

    @cached_property
    def _clause_ends(self) -> tuple[list[int], list[int]]:
        found = [match.span() for match in CLAUSE_END.finditer(self.text)]
        return [start for start, _ in found], [end for _, end in found]

    @cached_property
    def item_ends(self) -> list[int]:
        """Where the items end, in order."""
        return [item.end for item in self.items]

    @cached_property
    def keys(self) -> frozenset[str]:
        """Keys of the items."""
        return frozenset(item.key for item in self.items)

    @cached_property
    def main_words(self) -> Region:
        """Main words of the sentence (`choose_main_words`)."""
        return choose_main_words(self)

    @cached_property
    def lacking(self) -> dict[tuple[frozenset[str], Region | None], Region | None]:
        """Result of `find_lacking`: an item after the other asks for the same."""
        return {}

    @cached_property
    def rivals(self) -> dict[frozenset[str], Sentence | None]:
        """Stems → the evidence sentence that has most of them, likewise."""
        return {}

    @property
    def held(self) -> frozenset[str]:
        """The stems of the best evidence sentence and its title."""
        return self.best.stems if self.best else frozenset()

    def saying(self, place: Region) -> list[Sentence]:
        """Return the evidence sentences that have all content words of a stretch."""
        words = collect_content_stems(self.inside(place))
        return [known for known in self.evidence.sentences if words <= known.own and not known.is_title]


def read_claim(text: str, evidence: EvidenceIndex, user_text: str) -> ComparedSentence:
    """Read a sentence beside its evidence."""
    no_claim = _NO_CLAIM.match(text)
    begins = no_claim.end() if no_claim else 0
    tokens = tuple(
        replace(token, content=False) if token.end <= begins else token for token in read_tokens(text)
    )
    said = read_said(user_text)
    stems = collect_content_stems(tokens)
    best, share = evidence.best(stems)
    items: list[Item] = []
    for item in find_items(text):
        parts = name_parts(item) if item.kind == "name" else [item]
        whole = len(parts) == 1 or evidence.holding(item) or said.has(item)
        known = whole or any(evidence.holding(part) or said.has(part) for part in parts)
        items += [item] if whole or not known else parts
    return ComparedSentence(text, begins, tokens, tuple(items), stems, evidence, said, best, share)


_AUXILIARIES = frozenset({"doe", "did"})
"""Stems that say nothing and are no stop words."""
_HEADING = collect_content_stems(read_tokens(TITLE))
"""The word before a passage's title, which stands in its text and in no sentence of it."""
LACKING, NOWHERE, OF_USER, PRESENT, PARTED = 1.0, 0.5, 0.6, -0.6, -1.2
"""Weights of a word in a phrase's score: the best sentence lacks it; no passage has it; the user said it; the
evidence has it. The last is added where a clause ends."""
IN_CONDITION = 0.7
"""Factor for the words of a leading `if …`: the claim comes after it."""
LONGEST = 12
"""Most words of a phrase."""
SHORT = 4
"""A phrase with fewer words grows to this many, within its clause."""
_CONDITION = re.compile(r"\W*(?:if|when|once|in case)\b[^,]*,", re.IGNORECASE)
_INCOMPLETE = re.compile(r"['’]s\W*\Z|\w-\Z")
"""A word that is incomplete without the next, up to that: `pre-`, `the bank's`."""


def choose_main_words(claim: ComparedSentence) -> Region:
    """Return what the sentence claims: its first clause with `SHORT` words or more, without a leading `if …`.

    It has at most `LONGEST` words.
    """
    begins = max(claim.begins, _find_condition_end(claim))
    words = claim.inside(Region(begins, len(claim.text))) or list(claim.tokens)
    parted = _find_clause_ends(claim, words)
    length = next((place + 1 for place in range(SHORT - 1, len(parted)) if parted[place]), len(words))
    first = words[: min(length, LONGEST)]
    while 1 < len(first) < len(words) and not first[-1].content:
        first.pop()
    return widen_to_items(claim, first[0].start, first[-1].end)


def list_unknown_words(
    claim: ComparedSentence, place: Region, known: frozenset[str], *, content: bool = True
) -> list[str]:
    """Return the words of a stretch whose stems are not among `known`, each once, as written.

    Numbers and words of items are left out, but for names: items are compared by their values. `can't` and
    the like are, too: they stand for two words.

    Args:
        content: whether only content words are meant.
    """
    found = {
        token.stem: claim.text[token.start : token.end]
        for token in reversed(claim.inside(place))
        if (token.content or not content)
        and token.stem not in known | _HEADING | _AUXILIARIES
        and not token.stem[0].isdigit()
        and not token.stem.endswith(("n't", "n’t"))
        and not _is_in_item(claim, token)
    }
    return [*found.values()][::-1]


def _is_in_item(claim: ComparedSentence, token: Token) -> bool:
    place = bisect_right(claim.item_ends, token.start)
    item = claim.items[place] if place < len(claim.items) else None
    return item is not None and item.kind != "name" and item.start < token.end


def find_unsaid(claim: ComparedSentence, outside: Sequence[Region] = ()) -> Region | None:
    """Return the stretch densest in words that the best evidence sentence lacks.

    If another evidence sentence has it, return the stretch densest in words that no passage has. None if
    there is neither. If the user said all words that are lacking, the sentence repeats a question; return
    what it claims.

    Args:
        outside: stretches that it may not touch.
    """
    place = find_lacking(claim, claim.held, outside=outside)
    if not outside and place is not None and claim.stems - claim.held <= claim.said.stems:
        return choose_main_words(claim)
    if place is None or not claim.saying(place):
        return place
    return find_lacking(claim, claim.evidence.stems, outside=outside)


def find_lacking(
    claim: ComparedSentence,
    held: frozenset[str],
    within: Region | None = None,
    outside: Sequence[Region] = (),
) -> Region | None:
    """Return the stretch of at most `LONGEST` words that is densest in content words that `held` lacks.

    It begins and ends with such a word. A short one grows within its clause; items stay whole. None if
    nothing is lacking.

    Args:
        within: where to look; None: everywhere.
        outside: stretches that it may not touch.
    """
    if not outside and (held, within) in claim.lacking:
        return claim.lacking[held, within]
    until = _find_condition_end(claim)
    best, found = 0.0, None
    for run in _split_runs(claim, within or Region(0, len(claim.text)), outside):
        values = [
            _weigh_word(claim, token, held) * (IN_CONDITION if token.end <= until else 1.0) for token in run
        ]
        parted = _find_clause_ends(claim, run)
        for first, opening in enumerate(values):
            total = 0.0
            for last in range(first, min(first + LONGEST, len(run))) if opening > 0 else ():
                total += values[last] + (PARTED if last > first and parted[last - 1] else 0.0)
                if values[last] > 0 and total > best:
                    best, found = total, (run, first, last)
    place = _fill_stretch(claim, *found) if found else None
    if not outside:
        claim.lacking[held, within] = place
    return place


def _find_condition_end(claim: ComparedSentence) -> int:
    condition = _CONDITION.match(claim.text, claim.begins)
    return condition.end() if condition else 0


def _split_runs(claim: ComparedSentence, within: Region, outside: Sequence[Region]) -> list[list[Token]]:
    """Return runs of neighbouring words that may be in one stretch."""
    runs: list[list[Token]] = [[]]
    starts = sorted(other.start for other in outside)
    # How far those that begin up to each one reach.
    reach = [*accumulate((other.end for other in sorted(outside)), max, initial=0)]
    for token in claim.inside(within):
        if reach[bisect_left(starts, token.end)] > token.start:
            runs.append([])
        else:
            runs[-1].append(token)
    return runs


def _weigh_word(claim: ComparedSentence, token: Token, held: frozenset[str]) -> float:
    if not token.content:
        return 0.0
    if token.stem in held:
        return PRESENT
    if token.stem in claim.evidence.stems:
        return LACKING
    return OF_USER if token.stem in claim.said.stems else LACKING + NOWHERE


def _find_clause_ends(claim: ComparedSentence, run: Sequence[Token]) -> list[bool]:
    """Return for each word but the last whether a clause ends after it."""
    return [
        CLAUSE_END.search(claim.text, token.end, following.end) is not None
        for token, following in pairwise(run)
    ]


def _fill_stretch(claim: ComparedSentence, run: Sequence[Token], first: int, last: int) -> Region:
    parted = _find_clause_ends(claim, run)
    while last < len(run) - 1 and _INCOMPLETE.search(claim.text[run[last].start : run[last + 1].start]):
        last += 1
    following = last
    while last - first + 1 < SHORT and following < len(run) - 1 and not parted[following]:
        following += 1
        if run[following].content:
            last = following
    before = first
    while last - before + 1 < SHORT and before > 0 and not parted[before - 1]:
        before -= 1
        if run[before].content:
            first = before
    while first > 0 and claim.text[run[first - 1].end : run[first].start] == "-":
        first -= 1
    return widen_to_items(claim, run[first].start, run[last].end)


def widen_to_items(claim: ComparedSentence, start: int, end: int) -> Region:
    """Widen a stretch to all items that it touches, and to a closing quotation mark."""
    touched = []
    for place in range(bisect_right(claim.item_ends, start), len(claim.items)):
        if claim.items[place].start >= end:
            break
        touched.append(claim.items[place])
    start = min([start, *(item.start for item in touched)])
    end = max([end, *(item.end for item in touched)])
    if claim.text[start:end].count('"') % 2 and claim.text[end : end + 1] == '"':
        end += 1
    return Region(start, end)
