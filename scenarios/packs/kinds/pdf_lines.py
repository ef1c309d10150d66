"""Lines of a PDF's page out of its glyphs: words, superscripts, and the direction of writing."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple, TypeVar

from hallulab.scenarios.packs.kinds.spaced_letters import join_spaced_letters

_WIDE = 1.0
"""A gap of so many heights between two words parts columns or cells …"""
_WORD_GAP = 0.13
"""… and of so many heights parts two words …"""
_SPACES_GAP = 0.5
"""… or two whose letters are parted by spaces."""
_INITIAL = 1.8
"""Heights of the other letters that a paragraph's large first letter has at least."""
_COLUMN_GAP = 2.5
"""A gap of so many heights parts what is set with different spaces between its letters."""
_FEWEST_GAPS = 4
"""Gaps between letters that are looked at to see that they are spaced, at least."""
_SMALL = 0.85
"""A superscript's height, in heights of its line, at most."""
_LONGEST_SUPERSCRIPT = 6
"""Its letters at most: longer ones are a line of small print."""
_RAISED = re.compile(r"(?P<before>\S?\S?\S?)\s?\x0e(?P<raised>[^\x0f]*)\x0f(?P<space>\s?)(?P<after>\w?)")
_NUMBERED = re.compile(r"(?P<mark>\d{1,3}|[*†‡])\s+\S")
_POWER_OF = re.compile(r"\d|\W?(?:[mckd]?m|ft|s|x|y|z|n|r)")
"""How a word ends whose superscript is a power: with a number, or a unit."""
_VOWELED = re.compile(r"([^\W\d_])([\u0591-\u05c7\u064b-\u0655]+)")
_LEFT_TO_RIGHT = re.compile(r"[^\W_]+(?:[.,:/%+-]+[^\W_]+)*%?|.", re.DOTALL)
_GROUPS = re.compile(r"\d[\d.,:/]*(?:-\d[\d.,:/]*)+")
_MIRRORED = str.maketrans("()[]{}<>«»", ")(][}{><»«")


class Glyph(NamedTuple):
    """A letter on a page: where it begins and ends, its base line (which grows downwards), its height."""

    text: str
    left: float
    right: float
    y: float
    size: float


class Phrase(NamedTuple):
    """Words of a line without a wide gap, placed as a glyph is."""

    text: str
    left: float
    right: float
    y: float
    size: float


Row = list[Phrase]
"""Phrases at one height, from left to right."""

_Part = TypeVar("_Part", Glyph, Phrase)


def read_rows(glyphs: Sequence[Glyph], rules: Sequence[tuple[float, float, float]] = ()) -> list[Row]:
    """Return the rows of a page, from above.

    Args:
        rules: of the upright lines that part cells, the place, and where they begin and end.
    """
    groups = _group_by_height(_lower_initials(glyphs), 0.15)
    closed = (_close_up(sorted(line, key=lambda glyph: glyph.left)) for line in groups)
    lines = [line for line in closed if line]  # blanks alone are no line
    pieces = [piece for line in _raise_small(lines) for piece in _split(line, rules)]
    rows = _group_by_height(_name_superscripts(pieces), 0.45)
    return [sorted(row, key=lambda piece: piece.left) for row in rows]


def _lower_initials(glyphs: Sequence[Glyph]) -> list[Glyph]:
    """Put each large letter that begins a paragraph and is several lines high before the first of them."""
    usual = median(glyph.size for glyph in glyphs) if glyphs else 0.0
    large = [glyph for glyph in glyphs if glyph.size > _INITIAL * usual and glyph.text[0].isalpha()]
    moved: dict[int, Glyph] = {}
    for glyph in large:
        if any(other is not glyph and abs(other.y - glyph.y) < glyph.size / 2 for other in large):
            continue
        beside = [
            other
            for other in glyphs
            if other.size < glyph.size / _INITIAL
            and -0.2 * usual < other.left - glyph.right < usual
            and glyph.y - 0.8 * glyph.size < other.y < glyph.y + 0.3 * usual
        ]
        if len({round(other.y) for other in beside}) > 1:
            first = min(beside, key=lambda other: (round(other.y), other.left))
            moved[id(glyph)] = Glyph(glyph.text, first.left, first.left, first.y, first.size)
    return [moved.get(id(glyph), glyph) for glyph in glyphs]


def _close_up(line: list[Glyph]) -> list[Glyph]:
    """Widen the letters of a line by the space that is set between them, as in headlines."""
    closed: list[Glyph] = []
    for part in _part(line, _COLUMN_GAP):
        gaps = sorted(
            after.left - before.right
            for before, after in pairwise(part)
            if before.text[-1].isalpha() and after.text[0].isalpha()
        )
        space = gaps[len(gaps) // 5] if len(gaps) >= _FEWEST_GAPS else 0.0
        spaced = space > _WORD_GAP * part[0].size
        closed += [glyph._replace(right=glyph.right + space) for glyph in part] if spaced else part
    return closed


def _group_by_height(parts: Sequence[_Part], tolerance: float) -> list[list[_Part]]:
    groups: list[list[_Part]] = []
    for part in sorted(parts, key=lambda part: part.y):
        if groups and part.y - groups[-1][0].y <= tolerance * min(part.size, groups[-1][0].size):
            groups[-1].append(part)
        else:
            groups.append([part])
    return groups


def _raise_small(lines: list[list[Glyph]]) -> list[list[Glyph]]:
    """Put small letters a little higher or lower than a line into it, the raised between 0E and 0F."""
    heights = [line[0].y for line in lines]
    taken: list[list[Glyph]] = [[] for _ in lines]
    for line in lines:
        rest: list[Glyph] = []
        for run in _part(line, 0.5):
            host = _find_host(run, lines, heights)
            if host is None:
                rest.extend(run)
            elif lines[host][0].y > run[0].y:
                first, last = run[0], run[-1]
                taken[host].append(first._replace(text="\x0e" + first.text, size=lines[host][0].size))
                taken[host].extend(glyph._replace(size=lines[host][0].size) for glyph in run[1:])
                taken[host].append(last._replace(text="\x0f", left=last.right, size=lines[host][0].size))
            else:
                taken[host].extend(glyph._replace(size=lines[host][0].size) for glyph in run)
        line[:] = rest
    joined = [
        sorted(line + more, key=lambda glyph: glyph.left) for line, more in zip(lines, taken, strict=True)
    ]
    return [line for line in joined if line]


def _find_host(run: list[Glyph], lines: list[list[Glyph]], heights: list[float]) -> int | None:
    """Return the number of the line whose super- or subscript a run of glyphs is; None: of none."""
    size, y = run[0].size, run[0].y
    if sum(glyph.text != " " for glyph in run) > _LONGEST_SUPERSCRIPT:
        return None
    for number in range(bisect_left(heights, y - size), len(lines)):
        if heights[number] > y + 1.2 * size:
            return None
        line = lines[number]
        if not line or line[0].y == y:
            continue
        at = bisect_left(line, run[0].left + 0.1 * size, key=lambda glyph: glyph.left)
        if at and run[0].left - line[at - 1].right < 0.5 * size and _is_small_beside(run[0], line[at - 1]):
            return number
        close = at < len(line) and -0.1 * size <= line[at].left - run[-1].right < 0.5 * size
        if close and _is_small_beside(run[0], line[at]):
            return number
    return None


def _is_small_beside(small: Glyph, usual: Glyph) -> bool:
    """Return whether a glyph is a super- or subscript of the one beside it."""
    return small.size <= _SMALL * usual.size and -0.6 * usual.size <= usual.y - small.y <= 0.6 * usual.size


def _part(line: list[Glyph], gap: float, rules: Sequence[float] = ()) -> list[list[Glyph]]:
    """Part a line at its gaps of so many heights, and at upright lines; spaces are gaps too."""
    parts: list[list[Glyph]] = []
    spaces: list[Glyph] = []
    for glyph in line:
        if glyph.text.isspace():
            spaces.append(glyph)
            continue
        last = parts[-1][-1] if parts else glyph
        ruled = any(last.left + last.right < 2 * rule < glyph.left + glyph.right for rule in rules)
        if parts and not ruled and glyph.left - last.right <= gap * glyph.size:
            parts[-1] += [*spaces, glyph]
        else:
            parts.append([glyph])
        spaces = []
    return parts


def _split(line: list[Glyph], rules: Sequence[tuple[float, float, float]]) -> list[Phrase]:
    """Return the pieces of a line."""
    pieces = []
    for part in _part(line, _WIDE, [place for place, high, low in rules if high < line[0].y < low]):
        text: list[str] = []
        end = part[0].left
        last = part[0]
        for glyph in part:
            if glyph.text.isspace():
                text.append(" ")
                end = max(end, glyph.right)
                continue
            if glyph.text == last.text and glyph is not last and glyph.left - last.left < 0.1 * glyph.size:
                continue  # bold by drawing it twice
            if glyph.left - end > _WORD_GAP * glyph.size and not unicodedata.combining(glyph.text[-1]):
                text.append("  " if glyph.left - end > _SPACES_GAP * glyph.size else " ")
            text.append(glyph.text)
            end, last = max(end, glyph.right), glyph
        words = " ".join(join_spaced_letters("".join(text)).split(" ")).strip()
        size = max(glyph.size for glyph in part)
        pieces.append(Phrase(_order(_compose(words)), part[0].left, end, part[0].y, size))
    return pieces


def _compose(text: str) -> str:
    """Undo ligatures, the shapes of Arabic letters and signs set upright, and drop soft hyphens."""
    if text.isascii():
        return " ".join(text.split(" ")) if "  " not in text else re.sub(" +", " ", text)
    shown = "".join(
        unicodedata.normalize("NFKC", letter)
        if "\U0001d400" <= letter <= "\U0001d7ff"
        or "\ufb00" <= letter <= "\ufdff"
        or "\ufe10" <= letter <= "\ufe48"
        or "\ufe70" <= letter <= "\ufefc"
        else letter
        for letter in text.replace("\u00ad", "").replace("\u00a0", " ")
    )
    return unicodedata.normalize("NFC", re.sub(" +", " ", shown))


def is_right_to_left(text: str) -> bool:
    """Return whether most letters of a text are written from right to left."""
    if text.isascii():
        return False
    sides = [unicodedata.bidirectional(letter) for letter in text]
    return sides.count("R") + sides.count("AL") > sides.count("L")


def _order(text: str) -> str:
    """Return a line in the order of reading; it is given in the order of its letters from left to right."""
    if not is_right_to_left(text):
        return text
    # Vowel signs stand before their letters, so that they follow them when the line is turned.
    words = _LEFT_TO_RIGHT.findall(_VOWELED.sub(r"\2\1", text))
    if any(unicodedata.bidirectional(letter) == "AL" for letter in text):
        words = [_turn_groups(word) if _GROUPS.fullmatch(word) else word for word in words]
    turned = "".join(
        word if unicodedata.bidirectional(word[0]) in ("L", "EN", "AN") else word[::-1]
        for word in words[::-1]
    )
    opened, closed = turned.find("("), turned.find(")")
    return turned.translate(_MIRRORED) if 0 <= closed < opened or closed >= 0 > opened else turned


def _turn_groups(number: str) -> str:
    """Return groups of digits in the order of reading: behind Arabic letters, a hyphen turns them.

    `17-9` is from 9 to 17. One with a 0 on the left alone, as of a telephone, was kept from it.
    """
    groups = number.split("-")
    kept = number[0] == "0" and groups[-1][0] != "0"
    return number if kept else "-".join(reversed(groups))


def _name_superscripts(pieces: list[Phrase]) -> list[Phrase]:
    """Write superscripts out: `[1]` for the mark of a footnote, `^3` for a power."""
    largest = max((piece.size for piece in pieces), default=0.0)
    marks = set()
    for piece in pieces:
        if piece.text.startswith("\x0e"):
            marks.add(piece.text[1:].split("\x0f")[0].strip())
        elif piece.size < _SMALL * largest and (begun := _NUMBERED.match(piece.text)):
            marks.add(begun["mark"])

    def write(found: re.Match[str]) -> str:
        before, raised, after = found["before"], found["raised"].strip(), found["after"]
        if raised.isalpha() and before:
            text = before + raised  # 1st
        elif before and raised not in marks and _POWER_OF.search(before[-2:]) and before[-1:] not in ".,;:":
            text = f"{before}^{raised}"
        else:
            text = f"{before} [{raised}]".lstrip()
        return text + (" " if found["space"] or not before or after else "") + after

    named = []
    for piece in pieces:
        text = piece.text
        if "\x0e" in text:
            text = _RAISED.sub(write, text).replace("\x0e", "").replace("\x0f", "")
        elif piece.size < _SMALL * largest and (begun := _NUMBERED.match(text)) and begun["mark"] in marks:
            text = f"[{begun['mark']}]{text[begun.end('mark') :]}"
        named.append(piece._replace(text=text))
    return named


def join_pieces(row: Sequence[Phrase]) -> Phrase:
    """Return the phrases of a row as one, in the order of reading."""
    ordered = row[::-1] if is_right_to_left("".join(piece.text for piece in row)) else row
    return Phrase(
        " ".join(piece.text for piece in ordered),
        min(piece.left for piece in row),
        max(piece.right for piece in row),
        row[0].y,
        max(piece.size for piece in row),
    )


def say(row: Sequence[Phrase]) -> str:
    """Return the text of a row or cell."""
    return join_pieces(row).text if row else ""
