"""Module A, long context segmentation (paper section 3.2.1): texts into chunks, replies into claims."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from detectors.courtesy import claims_nothing
from detectors.halludetect.by_probability import statements
from detectors.spans import Region, sentences, words
from scenarios.transcript import Passage

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

_MARKS = ".,;:!?()[]\"'’“”-–—/%"
_LINE = re.compile(r"\S[^\n]*")
_WORD = re.compile(r"\S+")


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
    """ℓ(s): words between white space, and punctuation marks.

    Counting a model's tokens would need the model's vocabulary, and take longer than all the rest.
    """
    return _Measured(text).piece(0, len(text)).tokens


class _Piece(NamedTuple):
    """A stretch of a text, and how long it is."""

    start: int
    end: int
    tokens: int


class _Measured:
    """A text of which every stretch's length is known: tokens are counted once, for the whole text."""

    def __init__(self, text: str) -> None:
        import numpy

        self.text = text
        codes = numpy.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        kinds = _kinds().take(codes, mode="clip")
        blank = kinds == _BLANK
        beginning = (kinds == _MARK).astype(numpy.uint8)
        beginning[:1] += ~blank[:1]
        beginning[1:] += blank[:-1] & ~blank[1:]
        begun = numpy.zeros(len(text) + 1, dtype=numpy.int32)
        beginning.cumsum(dtype=numpy.int32, out=begun[1:])
        # Tokens that begin before each place; a view of the memory hands out Python's numbers quickly.
        self._begun = begun.data

    def piece(self, start: int, end: int) -> _Piece:
        """The stretch from `start` to `end`."""
        tokens = self._begun[end] - self._begun[start]
        if start and not self.text[start - 1].isspace() and not self.text[start : start + 1].isspace():
            tokens += 1  # the rest of a word
        return _Piece(start, end, tokens)


_BLANK, _MARK = 1, 2


@cache
def _kinds() -> NDArray[Any]:
    """For each code point whether it is white space, a mark, or neither, as all beyond the end are."""
    import numpy

    letters = map(chr, range(ord("\u3000") + 2))
    return numpy.array(
        [_BLANK if letter.isspace() else _MARK if letter in _MARKS else 0 for letter in letters],
        dtype=numpy.uint8,
    )


def segments(text: str, limit: int) -> list[Region]:
    """Chunk(X; T): consecutive sentences, as many as stay within `limit` tokens, and so on.

    A sentence over `limit` is split between words into pieces of at most `limit` tokens (a single word over
    it stays whole). Sentences end where `detectors.spans.sentences` says, and at line breaks.
    """
    measured = _Measured(text)
    pieces = _sentences(measured, 0, len(text))
    return [Region(each[0].start, each[-1].end) for each in _packed(measured, pieces, limit)]


def _sentences(measured: _Measured, start: int, end: int) -> list[_Piece]:
    return [
        measured.piece(line.start() + first, line.start() + last)
        for line in _LINE.finditer(measured.text, start, end)
        for first, last in sentences(line[0])
    ]


def _joined(pieces: Sequence[_Piece]) -> _Piece:
    return _Piece(pieces[0].start, pieces[-1].end, sum(piece.tokens for piece in pieces))


def _packed(measured: _Measured, pieces: Sequence[_Piece], limit: int) -> list[list[_Piece]]:
    """Consecutive pieces put together up to `limit` tokens, longer ones split."""
    chunks: list[list[_Piece]] = []
    room = 0
    for whole in pieces:
        for piece in [whole] if whole.tokens <= limit else _split(measured, whole, limit):
            if not chunks or piece.tokens > room:
                chunks.append([])
                room = limit
            chunks[-1].append(piece)
            room -= piece.tokens
    return chunks


def _split(measured: _Measured, sentence: _Piece, limit: int) -> list[_Piece]:
    """A sentence between words."""
    found = _WORD.finditer(measured.text, sentence.start, sentence.end)
    each = [measured.piece(*word.span()) for word in found]
    pieces = [each[0]]
    for word in each[1:]:
        if pieces[-1].tokens + word.tokens <= limit:
            pieces[-1] = _joined([pieces[-1], word])
        else:
            pieces.append(word)
    return pieces


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
    # All texts are measured as one, as each has its own fixed cost.
    measured = _Measured("\n".join(passage.text for passage in passages))
    chunks: list[Chunk] = []
    start = 0
    for index, passage in enumerate(passages):
        document = measured.piece(start, start + len(passage.text))
        pieces = _document_pieces(measured, document, document_tokens, chunk_tokens)
        chunks += [_chunk(measured.text, piece, index) for piece in pieces]
        start = document.end + 1
    return chunks


def _document_pieces(
    measured: _Measured, document: _Piece, document_tokens: int, chunk_tokens: int
) -> list[_Piece]:
    if document.tokens <= min(document_tokens, chunk_tokens):
        return [document]
    return [
        _joined(pieces)
        for section in _packed(measured, _sentences(measured, document.start, document.end), document_tokens)
        for pieces in _packed(measured, section, chunk_tokens)
    ]


def whole_documents(passages: Sequence[Passage]) -> list[Chunk]:
    """Every document as one chunk: what is left without module A (table 5)."""
    return document_chunks(passages, sys.maxsize, sys.maxsize)


def _chunk(text: str, piece: _Piece, passage: int) -> Chunk:
    return Chunk(" ".join(text[piece.start : piece.end].split()), passage, piece.tokens)


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
