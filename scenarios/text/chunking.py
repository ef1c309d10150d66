"""Cut documents into coherent passages.

HalluDetect (section 4.1) and MetaRAG say that documents are chunked, not how. We keep paragraphs whole,
because a fact and its conditions stand in one paragraph. We aim at 120 words, because all-MiniLM-L6-v2 reads
at most 256 word pieces and small models judge short evidence best.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

from pydantic import Field, model_validator

from hallulab.scenarios.packs.pack import Document
from hallulab.scenarios.text.abbreviations import is_abbreviation
from hallulab.scenarios.text.languages import identify_language
from hallulab.scenarios.text.scripts import STOPS, UNSPACED
from hallulab.scenarios.transcript import Frozen, Passage

_PARAGRAPH = re.compile(r"\S(?:.*\S)?(?:\n.*\S.*)*")
_HEADING = re.compile(r"#{1,6}[ \t]\S.*")
_RULE = re.compile(
    r"^[ \t]*+(?:\|[ \t]*+)?+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?[ \t]*+$", re.MULTILINE
)
"""The line under the head of a table in Markdown."""
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_LONGEST, _PART = 400, 20
"""A stretch without white space that has more than `_LONGEST` characters (encoded data, not a web address)
counts as several words of `_PART` characters."""


def _build_stretch_pattern(character: str) -> str:
    """Return a pattern of stretches of a class of characters; it cuts long ones into parts."""
    parts = f"{character}{{{_PART}}}(?={character}{{{_LONGEST - _PART + 1}}})"
    return f"{parts}|{character}{{1,{_LONGEST}}}"


_WORD = re.compile(_build_stretch_pattern(r"\S"))
_WORD_OR_CHARACTERS = re.compile(f"[{UNSPACED}]{{1,2}}|" + _build_stretch_pattern(rf"[^\s{UNSPACED}]"))
_UNSPACED_TEXT = re.compile(f"[{UNSPACED}\u3000-\u303f\uff00-\uffef]{{30}}")
"""More than a name: at least this many of their characters and marks in a row."""
_LIST_ITEM = re.compile(r"(?:[-*+•]|\d{1,3}[.)])$")
_SENTENCE_END = re.compile(rf"[.!?{STOPS}][\"'”’)\]」』]*$")
_PERHAPS_AN_END = re.compile(rf"[.!?{STOPS}][\"'”’)\]]*(?=\s)|[。！？][\"'”’)\]」』]*|\S(?=[^\S\n]*\n)")
"""Where a sentence or a list item may end; only these places are looked at closely."""


class Chunking(Frozen):
    """How documents are cut."""

    max_words: int = Field(default=120, ge=1)
    """Paragraphs are merged up to this length. A word is a stretch without white space, a part of a very long
    one, or a pair of characters in a script without spaces."""
    min_words: int = Field(default=40, ge=1)
    """A shorter chunk is joined with a neighbour in the document if the two together stay below `max_words +
    min_words`."""

    @model_validator(mode="after")
    def _min_is_below_max(self) -> Self:
        if self.min_words > self.max_words:
            raise ValueError(f"min_words ({self.min_words}) exceeds max_words ({self.max_words})")
        return self


DEFAULT_CHUNKING = Chunking()
"""Up to 120 words, from 40."""


@dataclass(frozen=True)
class _Piece:
    """A slice of the text."""

    start: int
    end: int
    words: int
    opens_section: bool = False

    def joined(self, following: _Piece) -> _Piece:
        return _Piece(self.start, following.end, self.words + following.words, self.opens_section)


class _TableHead(NamedTuple):
    """Where a table stands in the text."""

    start: int
    rows: int
    """Where its head ends, and the line under it."""
    end: int


def split_into_chunks(text: str, chunking: Chunking = DEFAULT_CHUNKING) -> tuple[str, ...]:
    """Cut `text` into slices of itself, in order; only white space between them is lost.

    A heading begins a chunk and stays with the text under it, unless the chunk before has fewer than
    `min_words` words. A paragraph over `max_words` is split at sentence ends, a table between rows, and what
    is over `max_words` still between words. No chunk has `max_words + min_words` words or more.
    """
    return tuple(text[piece.start : piece.end] for piece in _find_chunks(text, chunking))


def _find_chunks(text: str, chunking: Chunking) -> list[_Piece]:
    pieces = [
        piece for section in _split_sections(text) for piece in _split(text, section, chunking.max_words)
    ]
    chunks: list[_Piece] = []
    for piece in pieces:
        if chunks and _is_continuation(chunks[-1], piece, chunking):
            chunks[-1] = chunks[-1].joined(piece)
        else:
            chunks.append(piece)
    if len(chunks) > 1 and chunks[-1].words < chunking.min_words:
        joined = chunks[-2].joined(chunks[-1])
        if joined.words < chunking.max_words + chunking.min_words:
            chunks[-2:] = [joined]
    return chunks


def cut_into_passages(document: Document, chunking: Chunking = DEFAULT_CHUNKING) -> tuple[Passage, ...]:
    """Return the passages of a document, with the identifiers `document#0`, `document#1` ….

    The text, which is also embedded, begins with a line `Title: …`. A chunk may say "the limit is two years"
    and name its subject only in the title. Without the title no model could answer from the passage alone, no
    detector could judge by it, and no query would find it. For the same reason a passage that begins within a
    table has the table's head before it, unless that has half of `max_words`.
    """
    return tuple(
        Passage(
            id=f"{document.name}#{position}",
            document=document.name,
            text=f"Title: {document.title}\n{text}",
            topic=document.topic,
        )
        for position, text in enumerate(_repeat_heads(document.text, chunking))
    )


def _repeat_heads(text: str, chunking: Chunking) -> Iterator[str]:
    """Yield the chunks of a text, each that begins within a table under the table's head."""
    tables = deque(_find_tables(text, 0, len(text)))
    for piece in _find_chunks(text, chunking):
        chunk = text[piece.start : piece.end]
        while len(tables) > 1 and tables[1].rows <= piece.start:
            tables.popleft()
        if tables and tables[0].rows < piece.start < tables[0].end:
            head = text[tables[0].start : tables[0].rows]
            if len(head.split()) <= chunking.max_words / 2:
                chunk = f"{head}\n{chunk}"
        yield chunk


def _is_continuation(current: _Piece, piece: _Piece, chunking: Chunking) -> bool:
    """Return whether `piece` continues the chunk before it."""
    joined = current.words + piece.words
    if current.words < chunking.min_words:
        return True
    if piece.opens_section:
        return False
    return joined <= chunking.max_words or (
        piece.words < chunking.min_words and joined < chunking.max_words + chunking.min_words
    )


def _split_sections(text: str) -> Iterator[_Piece]:
    """Yield paragraphs, each with the headings right before it."""
    start: int | None = None
    for paragraph in _PARAGRAPH.finditer(text):
        lines = paragraph.group().split("\n")
        heads = _HEADING.match(lines[0]) is not None
        if start is None:
            start, opens = paragraph.start(), heads
        if heads and len(lines) == 1:
            continue
        yield _build_piece(text, start, paragraph.end(), opens or heads)
        start = None
    if start is not None:
        yield _build_piece(text, start, len(text), True)


def _build_piece(text: str, start: int, end: int, opens_section: bool = False) -> _Piece:
    words = _find_words(text, start, end)
    return _Piece(start, words[-1].end(), len(words), opens_section)


def _find_tables(text: str, start: int, end: int) -> Iterator[_TableHead]:
    """Yield the tables that begin in a stretch of the text. One ends at an empty line."""
    last = start
    for rule in _RULE.finditer(text, start, end):
        if rule.start() < last:
            continue
        above = rule.start() - 1
        begin = max(start, text.rfind("\n", start, max(start, above)) + 1)
        if "|" in rule.group() and "|" in text[begin : max(start, above)]:
            blank = _BLANK_LINE.search(text, rule.end())
            last = blank.start() if blank else len(text)
            yield _TableHead(begin, rule.end(), last)


def _find_words(text: str, start: int, end: int) -> list[re.Match[str]]:
    pattern = _WORD_OR_CHARACTERS if _UNSPACED_TEXT.search(text, start, end) else _WORD
    return list(pattern.finditer(text, start, end))


def _split(text: str, section: _Piece, max_words: int) -> Iterator[_Piece]:
    """Yield `section` in pieces of at most `max_words`, of about equal length."""
    if section.words <= max_words:
        yield section
        return
    target = section.words / -(-section.words // max_words)
    current: _Piece | None = None
    for sentence in _split_sentences(text, section, max_words):
        if current is None:
            current = sentence
        elif current.words < target and current.words + sentence.words <= max_words:
            current = current.joined(sentence)
        else:
            yield current
            current = sentence
    assert current is not None
    yield current


def _split_sentences(text: str, section: _Piece, max_words: int) -> Iterator[_Piece]:
    """Yield sentences, list items and rows of `section`; cut those over `max_words` between words."""
    table = next(_find_tables(text, section.start, section.end), None)
    words = _find_words(text, section.start, section.end)
    last = len(words) - 1
    ends = {match.end() for match in _PERHAPS_AN_END.finditer(text, section.start, section.end)}
    first = 0
    for index, word in enumerate(words):
        length = index + 1 - first
        is_end = index == last or length == max_words
        if not is_end and word.end() in ends:
            following = words[index + 1]
            if table is None or word.end() <= table.start:
                is_end = _is_sentence_end(text, word, following)
            else:  # a row of the table
                is_end = word.end() > table.rows and "\n" in text[word.end() : following.start()]
        if is_end:
            yield _Piece(words[first].start(), word.end(), length, section.opens_section and first == 0)
            first = index + 1


def _is_sentence_end(text: str, word: re.Match[str], following: re.Match[str]) -> bool:
    if "\n" in text[word.end() : following.start()] and _LIST_ITEM.match(following.group()):
        return True
    return (
        _SENTENCE_END.search(word.group()) is not None
        and not (
            word.group().endswith(".")
            and is_abbreviation(word.group().removesuffix("."), following.group(), identify_language(text))
        )
        and not following.group()[0].islower()
    )
