"""Support of statements by documents, and relevance to questions: by words and numbers, no model.

A statement is supported by two neighbouring sentences of a passage, with its title, that have enough of the
statement's content words, the rarer the more they count, if the passage has all of its numbers, dates,
references and contacts. Between two thresholds it cannot be told. docs/studies/blame.md
says how often that is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import fsum, log

import numpy as np

from hallulab.detectors.explanations.evidence import collect_content_stems, read_evidence, read_tokens
from hallulab.scenarios.text.items import Item, find_items
from hallulab.scenarios.transcript import Passage
from hallulab.simulator.statistics.intervals import Floats, Integers

LEAST_WORDS = 3
"""Different content words that a statement or question needs to be judged."""
SUPPORTS, LACKS = 0.7, 0.4
"""Share of a statement's words from which it is supported, and below which it is not."""
BEARS, UNRELATED = 0.4, 0.25
"""Share of a question's words from which a passage bears on it, and below which it does not."""


@dataclass(frozen=True)
class Statement:
    """A sentence of a reply, as it is compared with passages."""

    stems: frozenset[str]
    items: tuple[Item, ...]
    """Its numbers, dates, references and contacts that the user did not say."""


@dataclass(frozen=True)
class PassageWords:
    """The words of a passage."""

    windows: tuple[frozenset[str], ...]
    """Of each sentence, the stems of it, of the next one, and of the title."""
    stems: frozenset[str]
    """All stems, with those of the title."""
    keys: frozenset[str]
    numbers: frozenset[str]
    """The same, and the single words of them, because a bare number may be in any."""
    dates: tuple[frozenset[str], ...]

    def holds(self, item: Item) -> bool:
        """Return whether it has an item."""
        if item.kind == "date":
            words = frozenset(item.key.split())
            return any(words <= known for known in self.dates)
        return item.key in (self.numbers if item.kind == "number" else self.keys)

    def holds_all(self, items: Iterable[Item]) -> bool:
        """Return whether it has all items."""
        return all(map(self.holds, items))


@lru_cache(maxsize=2048)
def read_passage(text: str) -> PassageWords:
    """Read a passage."""
    evidence = read_evidence((text,))
    title, said = evidence.about[0], [one for one in evidence.sentences if not one.is_title]
    following = [*(one.own for one in said[1:]), frozenset[str]()][: len(said)]
    return PassageWords(
        windows=tuple(one.own | after | title for one, after in zip(said, following, strict=True)),
        stems=evidence.stems | title,
        keys=frozenset[str]().union(*(one.keys for one in evidence.sentences)),
        numbers=frozenset[str]().union(*(one.numbers for one in evidence.sentences)),
        dates=tuple(
            frozenset(item.key.split())
            for one in evidence.sentences
            for item in one.items
            if item.kind == "date"
        ),
    )


def read_stems(text: str) -> frozenset[str]:
    """Return the stems of a text's content words."""
    return collect_content_stems(read_tokens(text))


def read_statement(sentence: str, user_text: str = "") -> Statement | None:
    """Read a sentence of a reply; None if it has too few words to be judged.

    Args:
        user_text: what the user said; documents need not have its numbers.
    """
    stems = read_stems(sentence)
    if len(stems) < LEAST_WORDS:
        return None
    said = _read_keys(user_text)
    items = (item for item in find_items(sentence) if item.kind != "name" and item.key not in said)
    return Statement(stems, tuple(items))


@lru_cache(maxsize=128)
def _read_keys(text: str) -> frozenset[str]:
    return frozenset(item.key for item in find_items(text))


class DocumentIndex:
    """The passages of all documents, by their words."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = tuple(passages)
        self._places = {passage.id: place for place, passage in enumerate(passages)}
        self._words = [read_passage(passage.text) for passage in passages]
        holders = Counter(stem for words in self._words for stem in words.stems)
        self._weights = {stem: self._weigh(count) for stem, count in holders.items()}
        self._unknown = self._weigh(0)
        windows = [window for words in self._words for window in words.windows]
        self._window_owner = [place for place, words in enumerate(self._words) for _ in words.windows]
        self._first_window = [*accumulate((len(words.windows) for words in self._words), initial=0)]
        self._window_places = _list_places(windows)
        self._passage_places = _list_places([words.stems for words in self._words])

    def find(self, passage: Passage) -> int | None:
        """Return the place of a passage; None if the documents do not have it as it is."""
        place = self._places.get(passage.id)
        return place if place is not None and self.passages[place].text == passage.text else None

    def judge(
        self, statement: Statement, passages: Sequence[Passage]
    ) -> tuple[Sequence[bool | None], bool | None]:
        """Return whether each passage supports a statement, and whether one of the documents does.

        None: it cannot be told.
        """
        by_passages, by_documents = self.rate(statement, passages)
        return [_decide(share) for share in by_passages], _decide(by_documents)

    def rate_together(self, statement: Statement, passages: Sequence[Passage]) -> tuple[float, bool]:
        """Return the share of a statement's words that two sentences of each passage have, all together.

        Returns:
            The share, and whether the passages have all items.
        """
        words = [read_passage(passage.text) for passage in passages]
        stems = statement.stems
        best = [max(one.windows, key=lambda held: self._share(stems, held)) for one in words if one.windows]
        has_items = all(any(one.holds(item) for one in words) for item in statement.items)
        return self._share(stems, frozenset[str]().union(*best)), has_items

    def rate(self, statement: Statement, passages: Sequence[Passage]) -> tuple[Sequence[float], float]:
        """Return the largest share of a statement's words in two sentences of a passage, and of any document.

        Only passages with all of its items count; else it is 0. Of the documents, shares below `LACKS` are 0,
        too.
        """
        shares = self._sum_shares(statement.stems, self._window_places, len(self._window_owner))
        best = 0.0
        near = np.flatnonzero(shares >= LACKS)
        for window in near[np.argsort(-shares[near], kind="stable")]:
            if self._words[self._window_owner[window]].holds_all(statement.items):
                best = float(shares[window])
                break
        return [self._rate_one(statement, passage, shares) for passage in passages], best

    def _rate_one(self, statement: Statement, passage: Passage, shares: Floats) -> float:
        words = read_passage(passage.text)
        if not words.holds_all(statement.items):
            return 0.0
        place = self.find(passage)
        if place is None:
            return max((self._share(statement.stems, window) for window in words.windows), default=0.0)
        first = self._first_window[place]
        return float(shares[first : first + len(words.windows)].max(initial=0.0))

    def rate_passages(self, question: frozenset[str]) -> Floats:
        """Return the share of a question's words that each passage has."""
        return self._sum_shares(question, self._passage_places, len(self.passages))

    def rate_passage(self, passage: Passage, question: frozenset[str]) -> float:
        """Return the share of a question's words that a passage, of the documents or not, has."""
        return self._share(question, read_passage(passage.text).stems)

    def _weigh(self, holders: int) -> float:
        return log((1 + len(self.passages)) / (1 + holders)) + 1

    def _weigh_all(self, stems: Iterable[str]) -> float:
        # An exact sum: stems come in an order that differs from process to process.
        return fsum(self._weights.get(stem, self._unknown) for stem in stems)

    def _share(self, wanted: frozenset[str], held: frozenset[str]) -> float:
        return round(self._weigh_all(wanted & held) / self._weigh_all(wanted), _DIGITS) if wanted else 0.0

    def _sum_shares(self, wanted: frozenset[str], places: dict[str, Integers], size: int) -> Floats:
        sums = np.zeros(size)
        for stem in wanted & places.keys():
            sums[places[stem]] += self._weights[stem]
        return np.round(sums / self._weigh_all(wanted), _DIGITS) if wanted else sums


def _decide(share: float) -> bool | None:
    return True if share >= SUPPORTS else None if share >= LACKS else False


_DIGITS = 9
"""Digits of a share: sums in another order differ in the last ones."""


def _list_places(texts: Sequence[frozenset[str]]) -> dict[str, Integers]:
    """Return stem → places of the texts that have it."""
    found: dict[str, list[int]] = {}
    for place, stems in enumerate(texts):
        for stem in stems:
            found.setdefault(stem, []).append(place)
    return {stem: np.array(places, dtype=np.int64) for stem, places in found.items()}
