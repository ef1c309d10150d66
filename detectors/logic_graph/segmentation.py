"""Module A, long context segmentation (paper section 3.2.1): texts into chunks, replies into claims."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from detectors.courtesy import claims_nothing
from detectors.halludetect.by_probability import statements
from detectors.spans import Region, sentences, words
from scenarios.transcript import Passage

_TOKEN = re.compile(r"\w+|[^\w\s]")
_LINE = re.compile(r"\S[^\n]*")


@dataclass(frozen=True)
class Chunk:
    """A piece of a passage."""

    text: str
    """The piece, runs of white space as one space."""
    passage: int
    """Index of its passage."""
    tokens: int
    """Its length, see `token_count`."""


@dataclass(frozen=True)
class Claim:
    """What is judged: a stretch of a reply, with the question that the reply answers."""

    region: Region
    """Where it stands in the reply."""
    text: str
    """What it says, runs of white space as one space."""
    question: str = ""
    """The question; empty where there is none, or it is not to count."""


def token_count(text: str) -> int:
    """ℓ(s): words and single other characters. No model's vocabulary, so no weights are needed to cut."""
    return sum(1 for _ in _TOKEN.finditer(text))


def segments(text: str, limit: int) -> list[Region]:
    """Chunk(X; T): consecutive sentences, as many as stay within `limit` tokens, and so on.

    A sentence over `limit` is split between words into pieces of at most `limit` tokens (a single word over
    it stays whole). Sentences end where `detectors.spans.sentences` says, and at line breaks.
    """
    chunks: list[Region] = []
    length = 0
    for piece, tokens in _pieces(text, limit):
        if chunks and length + tokens <= limit:
            chunks[-1] = Region(chunks[-1].start, piece.end)
            length += tokens
        else:
            chunks.append(piece)
            length = tokens
    return chunks


def _pieces(text: str, limit: int) -> Iterator[tuple[Region, int]]:
    """Sentences with their lengths, those over `limit` in pieces."""
    for line in _LINE.finditer(text):
        for sentence in sentences(line[0]):
            region = Region(line.start() + sentence.start, line.start() + sentence.end)
            tokens = token_count(region.of(text))
            if tokens <= limit:
                yield region, tokens
            else:
                yield from _split(text, region, limit)


def _split(text: str, sentence: Region, limit: int) -> Iterator[tuple[Region, int]]:
    start, end, length = sentence.start, sentence.start, 0
    for word in re.finditer(r"\S+", sentence.of(text)):
        tokens = token_count(word[0])
        if length and length + tokens > limit:
            yield Region(start, end), length
            start, length = sentence.start + word.start(), 0
        end = sentence.start + word.end()
        length += tokens
    yield Region(start, end), length


def document_chunks(passages: Sequence[Passage], document_tokens: int, chunk_tokens: int) -> list[Chunk]:
    """C, the chunks of all documents, in their order.

    The paper has two limits for a document: T_d, over which it is cut, in section 3.2.1, and "the maximum
    chunk length C" in section 4.2, of which the method says nothing. C cannot be T_d by another name: they
    differ (256, 512), C matters where no document reaches T_d (figure 3a, HotpotQA's paragraphs), and 256 is
    what all-MiniLM-L6-v2 reads at most. So C holds for every chunk: documents over T_d are cut into
    Chunk(d; T_d), and what of that is over C into Chunk(·; C). No chunk reaches over a cut at T_d.

    Args:
        document_tokens: T_d.
        chunk_tokens: C.
    """
    chunks: list[Chunk] = []
    for index, passage in enumerate(passages):
        for section in _cut(passage.text, document_tokens):
            chunks += [_chunk(piece, index) for piece in _cut(section, chunk_tokens)]
    return chunks


def _cut(text: str, limit: int) -> list[str]:
    if token_count(text) <= limit:
        return [text]
    return [region.of(text) for region in segments(text, limit)]


def whole_documents(passages: Sequence[Passage]) -> list[Chunk]:
    """Every document as one chunk: what is left without module A (table 5)."""
    return [_chunk(passage.text, index) for index, passage in enumerate(passages)]


def _chunk(text: str, passage: int) -> Chunk:
    return Chunk(" ".join(text.split()), passage, token_count(text))


def sentence_claims(reply: str, question: str = "") -> list[Claim]:
    """A claim for each factual sentence of a reply; one of fewer than four words goes with the next one."""
    return [_claim(reply, region, question) for region in factual(reply)]


def answer_claims(reply: str, answer_tokens: int, question: str = "") -> list[Claim]:
    """The high-density answer A′ as one claim, as in the paper; over T_a tokens, as one claim for each
    Chunk(A′; T_a).

    The paper filters the chunks of answers over T_a and puts the rest together again, so that its model is
    given all of a long A′. We filter every answer, as a courtesy has no evidence in a short one either, and
    by sentence, as a chunk of 512 tokens is never all courtesy.

    Args:
        answer_tokens: T_a.
    """
    chunks: list[list[Region]] = []
    length = 0
    for region in factual(reply):
        tokens = token_count(region.of(reply))
        if not chunks or length + tokens > answer_tokens:
            chunks.append([])
            length = 0
        chunks[-1].append(region)
        length += tokens
    return [
        Claim(
            Region(regions[0].start, regions[-1].end),
            " ".join(" ".join(region.of(reply).split()) for region in regions),
            question,
        )
        for regions in chunks
    ]


def whole_reply(reply: str, question: str = "") -> list[Claim]:
    """The reply as it is, as one claim: what is left without module A (table 5)."""
    return [_claim(reply, Region(0, len(reply)), question)] if words(reply) else []


def factual(reply: str) -> list[Region]:
    """f(c) = 1: the sentences that claim something, by the rules of `detectors.courtesy`.

    The paper has a classifier there and does not say which one.
    """
    return [region for region in statements(reply) if not claims_nothing(region.of(reply))]


def _claim(reply: str, region: Region, question: str) -> Claim:
    return Claim(region, " ".join(region.of(reply).split()), question)
