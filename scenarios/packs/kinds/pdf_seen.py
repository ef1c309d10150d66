"""Letters of a PDF's page that do not count: nobody sees them on it, or they are struck out."""

from __future__ import annotations

import ctypes
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

_NOT_PAINTED = 3
"""PDFium's number of the way to write that paints nothing, as over the picture of a scanned page."""
_FILLED = (0, 2, 4, 6)
"""… and of those that fill the letters."""
_LONGEST_SIDE = 2000
"""Pixels of a side of the picture at most; else it has one for each point."""
_FINE = 1 << 20
"""Steps in which PDFium tells where a point of the page is in the picture."""
_COARSE = bytes(level & 0xF8 for level in range(256))
"""Levels of a colour in steps that one tells apart."""
THICKEST = 3.0
"""Points that a line is thick, at most, with PDFium's own point of margin."""
_CROSSING = (0.14, 0.42)
"""Heights of a letter above its base line at which a line strikes it out."""


class Character(NamedTuple):
    """A character of a page: its number, code, box (left, right, bottom, top), origin, angle in degrees."""

    number: int
    code: int
    box: tuple[float, float, float, float]
    origin: tuple[float, float]
    angle: float


def find_unseen(page: Any, text: Any, characters: Sequence[Character]) -> set[int]:
    """Return the numbers of the characters that are not seen where they stand.

    The page is painted. A letter is not seen if there is one colour where it stands, and it is its own; and
    a piece of text if there is one colour under all of its letters, and it is not painted or brings its font.
    (A missing font would look the same.) Of a page of which nothing is seen, only letters in the colour
    of what they stand on are returned: it is a scan, or its picture cannot be painted.
    """
    from pypdfium2 import raw

    handle = text.raw

    def get_mode(index: int) -> int:
        return int(raw.FPDFTextObj_GetTextRenderMode(raw.FPDFText_GetTextObject(handle, index)))

    letters = [one for one in characters if one.code > ord(" ")]
    if all(get_mode(one.number) == _NOT_PAINTED for one in letters):
        return set()  # the text of a scan
    plain = _find_plain(page, letters)
    unseen = {index for index, colour in plain.items() if colour == _get_colour(handle, index, get_mode)}
    pieces: dict[int | None, list[int]] = defaultdict(list)
    if len(plain) > len(unseen):
        for one in letters:
            piece = raw.FPDFText_GetTextObject(handle, one.number)
            pieces[ctypes.cast(piece, ctypes.c_void_p).value].append(one.number)
        pieces.pop(None, None)
    hidden: set[int] = set()
    for indices in pieces.values():
        if all(index in plain for index in indices) and not unseen.issuperset(indices):
            piece = raw.FPDFText_GetTextObject(handle, indices[0])
            is_embedded = raw.FPDFFont_GetIsEmbedded(raw.FPDFTextObj_GetFont(piece)) == 1
            if is_embedded or get_mode(indices[0]) == _NOT_PAINTED:
                hidden.update(indices)
    if len(unseen | hidden) < len(letters):
        unseen |= hidden
    spaces = [one.number for one in characters if one.code <= ord(" ")]
    return unseen | {index for index in spaces if index - 1 in unseen and index + 1 in unseen}


def _find_plain(page: Any, letters: Sequence[Character]) -> dict[int, bytes]:
    """Return the letters at which the painted page has one colour → blue, green and red of it."""
    from pypdfium2 import raw

    longest = max(page.get_size())
    bitmap = page.render(
        scale=min(1, _LONGEST_SIDE / longest), draw_annots=False, may_draw_forms=False, prefer_bgrx=True
    )
    wide, high, stride = bitmap.width, bitmap.height, bitmap.stride
    pixels = bytes(bitmap.buffer).translate(_COARSE)
    x, y = ctypes.c_int(), ctypes.c_int()

    def place(left: float, low: float) -> tuple[float, float]:
        raw.FPDF_PageToDevice(page.raw, 0, 0, _FINE, _FINE, 0, left, low, ctypes.byref(x), ctypes.byref(y))
        return x.value * wide / _FINE, y.value * high / _FINE

    (x0, y0), (x1, y1), (x2, y2) = place(0, 0), place(100, 0), place(0, 100)
    right_of, down_of = ((x1 - x0) / 100, (x2 - x0) / 100), ((y1 - y0) / 100, (y2 - y0) / 100)
    plain = {}
    for index, _, (left, right, low, top), (_, line), angle in letters:
        if not angle:  # the height of small letters and figures; lines nearby may reach into the box
            low, top = line - 0.2 * (top - low), line + 0.72 * (top - low)
        one, other = x0 + left * right_of[0] + low * right_of[1], x0 + right * right_of[0] + top * right_of[1]
        begin, end = (one, other) if one < other else (other, one)
        one, other = y0 + left * down_of[0] + low * down_of[1], y0 + right * down_of[0] + top * down_of[1]
        first, last = (one, other) if one < other else (other, one)
        begin, end = max(0, int(begin)), min(wide, int(end) + 1)
        first, last = max(0, int(first)), min(high, int(last) + 1)
        if begin >= end or first >= last:
            continue
        size = 4 * (end - begin)
        at = (first + last) // 2 * stride + 4 * begin
        row = pixels[at : at + size]
        if row == row[:4] * (end - begin) and all(
            pixels[start : start + size] == row
            for start in range(first * stride + 4 * begin, last * stride + 4 * begin, stride)
        ):
            plain[index] = row[:3]
    return plain


def _get_colour(handle: Any, index: int, get_mode: Any) -> bytes | None:
    """Return blue, green and red of a letter's filling; None: it has none."""
    from pypdfium2 import raw

    if get_mode(index) not in _FILLED:
        return None
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    raw.FPDFText_GetFillColor(handle, index, *map(ctypes.byref, (red, green, blue, alpha)))
    return bytes((blue.value, green.value, red.value)).translate(_COARSE)


class DrawnShape(NamedTuple):
    """Box of a line or another shape that is drawn on a page."""

    left: float
    low: float
    right: float
    top: float


def list_drawn(page: Any) -> list[DrawnShape]:
    """Return what is drawn on a page, beside its letters and pictures."""
    from pypdfium2 import raw

    sides = [ctypes.c_float() for _ in range(4)]
    drawn: list[DrawnShape] = []
    for index in range(raw.FPDFPage_CountObjects(page.raw)):
        shape = raw.FPDFPage_GetObject(page.raw, index)
        if raw.FPDFPageObj_GetType(shape) == raw.FPDF_PAGEOBJ_PATH:
            raw.FPDFPageObj_GetBounds(shape, *map(ctypes.byref, sides))
            drawn.append(DrawnShape(*(side.value for side in sides)))
    return drawn


def find_struck(drawn: Sequence[DrawnShape], characters: Sequence[Character]) -> set[int]:
    """Return the numbers of the characters through which a line is drawn that is as long as they are."""
    level = sorted((one for one in characters if not one.angle), key=lambda one: one.origin[1])
    heights = [one.origin[1] for one in level]
    struck: set[int] = set()
    for left, low, right, top in drawn:
        if top - low > THICKEST or right - left < 2 * THICKEST:
            continue
        line = (low + top) / 2
        crossed = []
        for one in level[bisect_left(heights, line - 50) : bisect_left(heights, line)]:
            high = one.box[3] - one.box[2]
            within = _CROSSING[0] * high < line - one.origin[1] < _CROSSING[1] * high
            if within and left - 1 < (one.box[0] + one.box[1]) / 2 < right + 1:
                crossed.append(one)
        room = max((one.box[3] - one.box[2] for one in crossed), default=0.0) / 2
        begin = min((one.box[0] for one in crossed), default=0.0)
        end = max((one.box[1] for one in crossed), default=0.0)
        if len(crossed) > 1 and begin - room < left and right < end + room:
            struck.update(one.number for one in crossed)
    return struck
