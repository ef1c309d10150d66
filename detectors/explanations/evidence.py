"""The evidence of a reply, read once: its sentences, their words and items, and how rare each word is."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from math import log

from hallulab.scenarios.text.items import Item, find_items, name_parts
from hallulab.scenarios.text.languages import identify_language
from hallulab.scenarios.text.numbers import list_word_values
from hallulab.scenarios.text.spans import split_sentences
from hallulab.scenarios.text.words import TOKEN, read_word

TITLE = "Title: "
"""How passages of our packs begin: their first line is the subject of all their sentences."""


@dataclass(frozen=True)
class Token:
    """A word of a sentence."""

    start: int
    """First character."""
    end: int
    """One past the last character."""
    stem: str
    content: bool
    """Neither a stop word nor a single letter."""


@dataclass(frozen=True)
class Sentence:
    """A sentence of the evidence, or a passage's title."""

    passage: int
    text: str
    """The sentence, white space made single."""
    tokens: tuple[Token, ...]
    own: frozenset[str]
    """Stems of its content words."""
    stems: frozenset[str]
    """Stems of its content words and of the passage's title."""
    items: tuple[Item, ...]
    """Its items; names joined by `and` are apart."""
    keys: frozenset[str]
    """Keys of its items without names."""
    numbers: frozenset[str]
    """The same keys; those of several words as single words, because a bare number may be in any."""
    is_title: bool


_Part = tuple[str, tuple[Token, ...], frozenset[str], tuple[Item, ...]]


@dataclass(frozen=True)
class WantedWords:
    """Words that are looked for in sentences."""

    weights: Mapping[str, float]
    """Stem → how much it tells."""
    whole: float

    def share(self, held: frozenset[str]) -> float:
        """Return the share of them that are held, by weight; 0 if there are none."""
        if not self.whole:
            return 0.0
        return math.fsum(self.weights[stem] for stem in self.weights.keys() & held) / self.whole


@dataclass(frozen=True)
class EvidenceIndex:
    """All passages of a reply."""

    titles: tuple[str, ...]
    """The title of each passage; empty if it has none."""
    about: tuple[frozenset[str], ...]
    """The stems of each passage's title."""
    sentences: tuple[Sentence, ...]
    """The sentences of all passages, in order."""
    passages: tuple[frozenset[str], ...]
    """The stems of each passage's content words."""
    stems: frozenset[str]
    counts: Mapping[str, int]
    """Stem → number of sentences that have it."""

    def weight(self, stem: str) -> float:
        """Return how much a word tells: its smoothed inverse document frequency over the sentences."""
        return self._weights.get(stem, self._unknown)

    @cached_property
    def _weights(self) -> Mapping[str, float]:
        return {stem: self._weigh_count(count) for stem, count in self.counts.items()}

    @cached_property
    def _unknown(self) -> float:
        return self._weigh_count(0)

    def _weigh_count(self, count: int) -> float:
        return log((1 + len(self.sentences)) / (1 + count)) + 1

    def weigh(self, wanted: Iterable[str]) -> WantedWords:
        """Return the different words wanted with their weights, to be compared with many sentences."""
        # Exact sums: stems come in an order that differs from process to process.
        weights = {stem: self.weight(stem) for stem in wanted}
        return WantedWords(weights, math.fsum(weights.values()))

    def share(self, wanted: Iterable[str], held: frozenset[str]) -> float:
        """Return the share of the different words wanted that are held, by weight; 0 if none are wanted."""
        return self.weigh(wanted).share(held)

    def best(self, wanted: frozenset[str]) -> tuple[Sentence | None, float]:
        """Return the sentence (no title) that holds the largest share of the words wanted, and that share.

        Of equal ones, take the one with the fewest other words, then the earliest. None if no sentence holds
        any.
        """
        weights = {stem: self.weight(stem) for stem in wanted}
        whole = math.fsum(weights.values())
        found: Sentence | None = None
        rank = (0.0, 0)
        for sentence in self.sentences:
            held = math.fsum(weights[stem] for stem in wanted & sentence.stems)
            if held > 0 and not sentence.is_title and (held, -len(sentence.own)) > rank:
                found, rank = sentence, (held, -len(sentence.own))
        return found, rank[0] / whole if found else 0.0

    def holding(self, item: Item) -> list[Sentence]:
        """Return the sentences and titles that have the item: a name by its words, others by their key."""
        if item.kind == "name":
            words = frozenset(item.key.split())
            return [one for one in _find_rarest(words, self._by_stem) if words <= one.stems]
        if item.kind == "date":
            words = frozenset(item.key.split())
            near = _find_rarest(words, self._by_date)
            # A date says as much or more: `June 2026` is in `12 June 2026`.
            return [one for one in near if any(words <= date for date in _list_dates(one))]
        return self._by_number.get(item.key, []) if item.kind == "number" else self._by_key.get(item.key, [])

    def has_text(self, text: str) -> bool:
        """Return whether a sentence has a text as whole words, case aside."""
        pattern = re.compile(rf"(?<!\w){re.escape(' '.join(text.split()))}(?!\w)", re.IGNORECASE)
        return any(pattern.search(sentence.text) for sentence in self.sentences)

    @cached_property
    def words(self) -> frozenset[str]:
        """The stems of all words, those that say little included, and the units that signs stand for."""
        stems = (token.stem for sentence in self.sentences for token in sentence.tokens)
        return frozenset(stems).union(*(sentence.numbers for sentence in self.sentences))

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The sentences as written."""
        return tuple(sentence.text for sentence in self.sentences)

    @cached_property
    def spellings(self) -> frozenset[str]:
        """All words as written, in lower case."""
        return frozenset(word.lower() for text in self.texts for word in TOKEN.findall(text))

    @cached_property
    def bare_numbers(self) -> frozenset[str]:
        """Keys of the numbers without a known unit."""
        return frozenset(
            item.key for sentence in self.sentences for item in sentence.items if item.kind == "number"
        )

    @cached_property
    def language(self) -> str | None:
        """Code of the language; None: not known."""
        return identify_language(" ".join(self.texts))

    @cached_property
    def values(self) -> frozenset[str]:
        """All words, numbers by their value in this language."""
        return frozenset(list_word_values(" ".join(self.texts), self.language or "en"))

    @cached_property
    def _by_stem(self) -> Holders:
        return self._index(lambda one: one.stems)

    @cached_property
    def _by_date(self) -> Holders:
        return self._index(lambda one: frozenset[str]().union(*_list_dates(one)))

    @cached_property
    def _by_number(self) -> Holders:
        return self._index(lambda one: one.numbers)

    @cached_property
    def _by_key(self) -> Holders:
        return self._index(lambda one: one.keys)

    def _index(self, read: Callable[[Sentence], Iterable[str]]) -> Holders:
        found: Holders = defaultdict(list)
        for sentence in self.sentences:
            for word in read(sentence):
                found[word].append(sentence)
        return found


Holders = defaultdict[str, list[Sentence]]
"""Word or key → the sentences that have it, in order. Each sentence is read once, not once for each item."""


def _find_rarest(words: Iterable[str], holders: Holders) -> list[Sentence]:
    return min((holders.get(word, []) for word in words), key=len)


def _list_dates(sentence: Sentence) -> list[frozenset[str]]:
    return [frozenset(item.key.split()) for item in sentence.items if item.kind == "date"]


def read_tokens(text: str) -> tuple[Token, ...]:
    """Return the words of a text."""
    found = []
    for match in TOKEN.finditer(text):
        word = read_word(match[0])
        found.append(Token(match.start(), match.end(), word.stem, word.content))
    return tuple(found)


def collect_content_stems(tokens: Iterable[Token]) -> frozenset[str]:
    """Return the stems of the content words."""
    return frozenset(token.stem for token in tokens if token.content)


@lru_cache(maxsize=128)
def read_evidence(texts: tuple[str, ...]) -> EvidenceIndex:
    """Read the evidence of a reply from the texts of its passages."""
    titles, abouts, found = [], [], []
    for position, text in enumerate(texts):
        title, parts = _parts(text)
        titles.append(title)
        about = collect_content_stems(read_tokens(title))
        abouts.append(about)
        for part, tokens, own, items in parts:
            keys = frozenset(item.key for item in items if item.kind != "name")
            numbers = keys.union(*(key.split() for key in keys))
            found.append(
                Sentence(position, part, tokens, own, own | about, items, keys, numbers, part == title)
            )
    counts = Counter(stem for sentence in found for stem in sentence.own)
    stems: list[set[str]] = [set() for _ in texts]
    for sentence in found:
        stems[sentence.passage] |= sentence.own
    passages = tuple(map(frozenset, stems))
    return EvidenceIndex(tuple(titles), tuple(abouts), tuple(found), passages, frozenset(counts), counts)


@lru_cache(maxsize=2048)
def _parts(text: str) -> tuple[str, tuple[_Part, ...]]:
    """Return a passage's title, and what is known of the title and of each sentence alone."""
    title, body = "", text
    if text.startswith(TITLE):
        title, _, body = text.removeprefix(TITLE).partition("\n")
        title = " ".join(title.split())
    found = [title] if title else []
    found += [" ".join(region.of(body).split()) for region in split_sentences(body)]
    read = []
    for part in found:
        tokens = read_tokens(part)
        items = (name_parts(item) if item.kind == "name" else [item] for item in find_items(part))
        read.append((part, tokens, collect_content_stems(tokens), tuple(chain.from_iterable(items))))
    return title, tuple(read)
