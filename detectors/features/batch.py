"""Replies with their evidence as flat arrays of tokens, and sums over them.

So a whole batch is one computation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.chunking import Chunking, split_into_chunks
from hallulab.scenarios.text.page_marks import blank_marks
from hallulab.scenarios.text.spans import split_sentences
from hallulab.scenarios.text.words import TOKEN, read_word
from hallulab.scenarios.transcript import Passage
from hallulab.scenarios.turn_views import TurnView

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Lexicon(dict[str, int]):
    """Numbers the spellings of one batch; equal forms have equal identifiers.

    `lexicon[spelling]` is the spelling's index; a new spelling gets a new one.
    """

    def __init__(self) -> None:
        super().__init__()
        self._forms: dict[str, int] = {}
        self._rows: list[tuple[int, int, bool, bool, bool]] = []

    def __missing__(self, spelling: str) -> int:
        word = read_word(spelling)
        index = self[spelling] = len(self._rows)
        exact, stem = (self._forms.setdefault(form, len(self._forms)) for form in (word.exact, word.stem))
        self._rows.append((exact, stem, word.number, word.content, spelling[0].isupper()))
        return index

    def row(self, spelling: str) -> tuple[int, int, bool, bool, bool]:
        """Return a column of `columns`."""
        return self._rows[self[spelling]]

    @property
    def forms(self) -> list[str]:
        """The forms, exact ones and stems, in the order of their identifiers."""
        return list(self._forms)

    def columns(self) -> Integers:
        """Return (5, spellings): exact form, stem, number, content, capital."""
        return np.ascontiguousarray(np.array(self._rows, dtype=np.int64).reshape(-1, 5).T)


@dataclass(frozen=True)
class Tokens:
    """The tokens of several texts, one after the other. All arrays have shape (tokens,)."""

    text: Integers
    start: Integers
    """First character in that text."""
    end: Integers
    """One past the last character."""
    exact: Integers
    """Identifier of the exact form."""
    stem: Integers
    number: Flags
    content: Flags
    """True if it is a content word or a number."""
    capital: Flags
    """True if it begins with a capital letter."""


class Stretches(NamedTuple):
    """The matches of a pattern in several texts, one after the other. Arrays have shape (stretches,)."""

    text: Integers
    start: Integers
    """First character in that text."""
    end: Integers
    """One past the last character."""
    spelling: list[str]


def find_all(pattern: re.Pattern[str], texts: Sequence[str]) -> Stretches:
    """Find all matches of `pattern`.

    Places are computed from lengths: asking every match takes twice as long.

    Args:
        pattern: with one group, around the whole.
    """
    # For each text: the part before the first stretch, the stretch, the part before the second …, the rest.
    split = [pattern.split(text) for text in texts]
    parts = [part for found in split for part in found[:-1]]
    counts = np.array([len(found) // 2 for found in split], dtype=np.int64)
    lengths = np.fromiter(map(len, parts), dtype=np.int64, count=len(parts))
    edges = np.cumsum(lengths).reshape(-1, 2)
    first = np.cumsum(counts) - counts
    before = np.concatenate([[0], edges[:, 1]])[first]
    start, end = (edges - np.repeat(before, counts)[:, None]).T
    return Stretches(np.repeat(np.arange(len(texts), dtype=np.int64), counts), start, end, parts[1::2])


def tokenize(texts: Sequence[str], lexicon: Lexicon) -> Tokens:
    """Return the tokens of `texts`, numbered by `lexicon`."""
    found = find_all(TOKEN, texts)
    index = np.fromiter(map(lexicon.__getitem__, found.spelling), np.int64, count=len(found.spelling))
    exact, stem, number, content, capital = lexicon.columns()
    return Tokens(
        text=found.text,
        start=found.start,
        end=found.end,
        exact=exact[index],
        stem=stem[index],
        number=number.astype(bool)[index],
        content=content.astype(bool)[index],
        capital=capital.astype(bool)[index],
    )


def find_content_stems(text: str, lexicon: Lexicon) -> set[int]:
    """Return the identifiers of the stems of a text's content words."""
    rows = [lexicon.row(spelling) for spelling in set(TOKEN.findall(text))]
    return {stem for _, stem, _, content, _ in rows if content}


CHUNKING = Chunking(max_words=60, min_words=20)
"""How passages become evidence chunks. The paper's chunks are paragraphs and sentences, passages, and parts
of a record. Longer passages are cut at paragraph and sentence ends."""

_WORD = re.compile(r"(\S+)")
_FIELD = re.compile(r"[\w -]+: ")


@dataclass(frozen=True)
class ReplyWithEvidence:
    """A reply to judge and its evidence."""

    reply: str
    passages: tuple[Passage, ...]
    task: str
    """`qa`, `summary`, `data2txt` …"""
    collection: str = ""
    """Where the source comes from; empty: not known."""
    generator: str = ""
    """The model that wrote the reply; empty: not known."""
    temperature: float | None = None
    """Sampling temperature of that model; None: not known."""


@dataclass(frozen=True)
class Pieces:
    """Stretches of replies. All arrays have shape (pieces,)."""

    reply: Integers
    start: Integers
    """First character."""
    end: Integers
    """One past the last character."""

    def __len__(self) -> int:
        return len(self.reply)

    def holding(self, reply: Integers, start: Integers) -> Integers:
        """Return the index of the piece that holds each place (reply, character), or is the last before."""
        width = 1 + max(self.end.max(initial=0), start.max(initial=0))
        after = np.searchsorted(self.reply * width + self.start, reply * width + start, side="right")
        found: Integers = np.maximum(after - 1, 0)
        return found


@dataclass(frozen=True)
class Batch:
    """Replies, sources and their pieces. Equal sources are stored once."""

    cases: Sequence[ReplyWithEvidence]
    lexicon: Lexicon
    source: Integers
    """(replies,): index of the reply's source."""
    chunks: tuple[str, ...]
    """The chunks of all sources, in order."""
    chunk_source: Integers
    """(chunks,): index of the chunk's source."""
    chunk_passage: Integers
    """(chunks,): index of the passage, within the source, that the chunk was cut from."""
    chunk_tokens: Tokens
    tokens: Tokens
    sentences: Pieces
    words: Pieces
    """The replies' words: stretches without white space."""
    token_sentence: Integers
    """(tokens,): index of the token's sentence."""
    token_word: Integers
    """(tokens,): index of the word in which the token begins."""
    token_last_word: Integers
    """(tokens,): index of the word in which the token ends; it differs only for tokens such as `5 PM`."""
    word_sentence: Integers
    """(words,): index of the word's sentence."""


def make_batch(cases: Sequence[ReplyWithEvidence], *, list_numbers: bool = True) -> Batch:
    """Cut and tokenise; a source that several replies share is processed once.

    Citations and heads of tables in a reply have no tokens: they claim nothing.

    Args:
        list_numbers: whether the number of a list item is a token. The trained models learnt what it is
            worth; a rule takes it for a number that the source lacks.
    """
    sources: dict[tuple[str, ...], int] = {}
    owner = np.array(
        [sources.setdefault(tuple(p.text for p in case.passages), len(sources)) for case in cases],
        dtype=np.int64,
    )
    cut = [
        (index, position, text)
        for texts, index in sources.items()
        for position, passage in enumerate(texts)
        for text in split_into_chunks(passage, CHUNKING)
    ]
    lexicon = Lexicon()
    chunks = tuple(text for _, _, text in cut)
    replies = [case.reply for case in cases]
    tokens = tokenize([blank_marks(reply, list_numbers=not list_numbers) for reply in replies], lexicon)
    parts = split_pieces([split_sentences(reply) for reply in replies])
    written = find_all(_WORD, replies)
    words = Pieces(reply=written.text, start=written.start, end=written.end)
    return Batch(
        cases=cases,
        lexicon=lexicon,
        source=owner,
        chunks=chunks,
        chunk_source=np.array([index for index, _, _ in cut], dtype=np.int64),
        chunk_passage=np.array([position for _, position, _ in cut], dtype=np.int64),
        chunk_tokens=tokenize(chunks, lexicon),
        tokens=tokens,
        sentences=parts,
        words=words,
        token_sentence=parts.holding(tokens.text, tokens.start),
        token_word=words.holding(tokens.text, tokens.start),
        token_last_word=words.holding(tokens.text, tokens.end - 1),
        word_sentence=parts.holding(words.reply, words.start),
    )


def make_case(said: TurnView | LabelledReply) -> ReplyWithEvidence:
    """Return the reply as the detector sees it, with the task told from the texts (`read_task`)."""
    return ReplyWithEvidence(
        reply=said.reply,
        passages=said.passages,
        task=read_task(said.question, said.passages),
        collection=said.origin.collection,
        generator=said.origin.generator,
        temperature=said.origin.temperature,
    )


def read_task(question: str, passages: Sequence[Passage]) -> str:
    """Return the task that the texts show: records mean `data2txt`, a question `qa`, the rest is `summary`.

    A record is a passage of two or more lines that all read `field: value`.
    """
    if question.strip():
        return "qa"
    texts = (passage.text.strip().splitlines() for passage in passages)
    return (
        "data2txt" if any(len(lines) > 1 and all(map(_FIELD.match, lines)) for lines in texts) else "summary"
    )


def split_pieces(regions: Sequence[Sequence[tuple[int, int]]]) -> Pieces:
    """Return the stretches (start, end) of all texts, one after the other."""
    flat = np.fromiter(
        (edge for found in regions for region in found for edge in region), dtype=np.int64
    ).reshape(-1, 2)
    reply = np.repeat(np.arange(len(regions), dtype=np.int64), [len(found) for found in regions])
    return Pieces(reply=reply, start=flat[:, 0], end=flat[:, 1])


def sum_by_sentence(batch: Batch, values: Numbers | Flags) -> Numbers:
    """Sum (tokens,) values to (sentences,)."""
    return np.bincount(batch.token_sentence, weights=values, minlength=len(batch.sentences)).astype(float)


def compute_content_share(batch: Batch, values: Numbers | Flags, weight: Numbers | None = None) -> Numbers:
    """Return (sentences,): weighted mean of (tokens,) values over content words; 1 without any."""
    weights = batch.tokens.content * (np.ones(len(values)) if weight is None else weight)
    return compute_ratio(sum_by_sentence(batch, weights * values), sum_by_sentence(batch, weights), empty=1.0)


def find_worst_by_word(batch: Batch, values: Numbers | Flags) -> Numbers:
    """Return (words,): largest of (tokens,) values, which are not negative; 0 for a word without tokens."""
    worst = np.zeros(len(batch.words))
    np.maximum.at(worst, batch.token_word, values)
    longer = np.flatnonzero(batch.token_last_word != batch.token_word)
    np.maximum.at(worst, batch.token_last_word[longer], values[longer])
    return worst


def compute_ratio(part: Numbers, whole: Numbers, empty: float) -> Numbers:
    """Return `part / whole`, and `empty` where the whole is 0."""
    shares: Numbers = np.divide(part, whole, out=np.full(len(whole), empty), where=whole > 0)
    return shares
