"""Module A, long context segmentation (paper section 3.2.1): cut texts into chunks, replies into claims."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hallulab.detectors.base.questions import split_statements
from hallulab.scenarios.text.courtesies import claims_nothing
from hallulab.scenarios.text.spans import Region, split_sentences, split_words
from hallulab.scenarios.transcript import Passage

_MARK = re.compile(r"""[.,;:!?()\[\]"'’“”\-–—/%]""")
_LINE = re.compile(r"\S[^\n]*")
_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class Chunk:
    """A piece of a passage."""

    text: str
    """The piece, runs of white space as one space."""
    passage: int
    tokens: int
    """Its length, see `count_tokens`."""


@dataclass(frozen=True)
class Claim:
    """A stretch of a reply to judge, with the question that the reply answers."""

    region: Region
    """Where it stands in the reply."""
    text: str
    """Its text, runs of white space as one space."""
    question: str = ""
    """The question; empty if there is none, or it does not count."""


def count_tokens(text: str) -> int:
    """Return ℓ(s): the number of words between white space, and of punctuation marks.

    To count a model's tokens would need its vocabulary, and take longer than all the rest.
    """
    return len(text.split()) + len(_MARK.findall(text))


class _Segment(NamedTuple):
    """A stretch of a text and its length. Lengths are counted once: they are the cost of cutting."""

    start: int
    end: int
    tokens: int


def _piece(text: str, start: int, end: int) -> _Segment:
    return _Segment(start, end, count_tokens(text[start:end]))


def _join(pieces: Sequence[_Segment]) -> _Segment:
    return _Segment(pieces[0].start, pieces[-1].end, sum(piece.tokens for piece in pieces))


def _pack(text: str, pieces: Sequence[_Segment], limit: int) -> list[list[_Segment]]:
    """Return Chunk(X; T): runs of consecutive pieces, each as long as `limit` tokens allow.

    A piece over `limit` is split between words; a single word over it stays whole.
    """
    chunks: list[list[_Segment]] = []
    room = 0
    for whole in pieces:
        for piece in [whole] if whole.tokens <= limit else _split(text, whole, limit):
            if not chunks or piece.tokens > room:
                chunks.append([])
                room = limit
            chunks[-1].append(piece)
            room -= piece.tokens
    return chunks


def _split(text: str, sentence: _Segment, limit: int) -> list[_Segment]:
    found = _WORD.finditer(text, sentence.start, sentence.end)
    each = [_piece(text, *word.span()) for word in found]
    pieces = [each[0]]
    for word in each[1:]:
        if pieces[-1].tokens + word.tokens <= limit:
            pieces[-1] = _join([pieces[-1], word])
        else:
            pieces.append(word)
    return pieces


def split_documents(passages: Sequence[Passage], document_tokens: int, chunk_tokens: int) -> list[Chunk]:
    """Return C, the chunks of all documents, in their order.

    The paper has two limits for a document: T_d, over which it is cut (section 3.2.1), and "the maximum chunk
    length C" (section 4.2), which the method does not mention. C is not another name for T_d: they differ
    (256, 512), C matters where no document reaches T_d (figure 3a, HotpotQA's paragraphs), and 256 is the
    most that all-MiniLM-L6-v2 reads. So C holds for every chunk: documents over T_d are cut into Chunk(d;
    T_d), and pieces over C into Chunk(·; C). No chunk crosses a cut at T_d.

    Args:
        document_tokens: T_d.
        chunk_tokens: C.
    """
    return [
        chunk
        for index, passage in enumerate(passages)
        for chunk in _document_chunks(passage.text, index, document_tokens, chunk_tokens)
    ]


def _document_chunks(text: str, passage: int, document_tokens: int, chunk_tokens: int) -> Iterator[Chunk]:
    limit = min(document_tokens, chunk_tokens)
    # The first words are enough to know that a long text is long.
    if len(text.split(maxsplit=limit)) <= limit:
        whole = _piece(text, 0, len(text))
        if whole.tokens <= limit:
            yield _chunk(text, whole, passage)
            return
    sentences = [
        _piece(text, line.start() + start, line.start() + end)
        for line in _LINE.finditer(text)
        for start, end in split_sentences(line[0])
    ]
    for section in _pack(text, sentences, document_tokens):
        for pieces in _pack(text, section, chunk_tokens):
            yield _chunk(text, _join(pieces), passage)


def keep_whole_documents(passages: Sequence[Passage]) -> list[Chunk]:
    """Return every document as one chunk: without module A (table 5)."""
    return [
        _chunk(passage.text, _piece(passage.text, 0, len(passage.text)), index)
        for index, passage in enumerate(passages)
    ]


def _chunk(text: str, piece: _Segment, passage: int) -> Chunk:
    return Chunk(" ".join(text[piece.start : piece.end].split()), passage, piece.tokens)


def split_claims(reply: str, question: str = "") -> list[Claim]:
    """Return a claim for each factual sentence of a reply; one under four words joins the next one."""
    return [_claim(reply, region, question) for region in keep_factual(reply)]


def join_answer_claims(reply: str, answer_tokens: int, question: str = "") -> list[Claim]:
    """Return the high-density answer A′ as one claim; over T_a tokens, one for each Chunk(A′; T_a).

    The paper filters the chunks of answers over T_a and joins the rest again, so its model reads all of a
    long A′. We filter every answer, because a courtesy has no evidence in a short one either. We filter by
    sentence, because a chunk of 512 tokens is never all courtesy.

    Args:
        answer_tokens: T_a.
    """
    chunks: list[list[Region]] = []
    length = 0
    for region in keep_factual(reply):
        tokens = count_tokens(region.of(reply))
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


def claim_whole_reply(reply: str, question: str = "") -> list[Claim]:
    """Return the reply as one claim: without module A (table 5)."""
    return [_claim(reply, Region(0, len(reply)), question)] if split_words(reply) else []


def keep_factual(reply: str) -> list[Region]:
    """Return the sentences with f(c) = 1: they claim something, by `hallulab.scenarios.text.courtesies`.

    The paper has a classifier there and does not say which one.
    """
    return [region for region in split_statements(reply) if not claims_nothing(region.of(reply))]


def _claim(reply: str, region: Region, question: str) -> Claim:
    return Claim(region, " ".join(region.of(reply).split()), question)
