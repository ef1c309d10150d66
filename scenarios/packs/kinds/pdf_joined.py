"""Letters of a PDF that its fonts join: in Devanagari, Thai and Arabic one sign may stand for several."""

from __future__ import annotations

import ctypes
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from hallulab.scenarios.packs.kinds.pdf_seen import Character

_FIRST = 0x300
"""Code of the first letter whose script joins letters; Latin's ligatures are as wide as they look."""
_FULL_WIDTH = 0x2E80
"""… and of the first sign of Chinese and Japanese, which are as wide as high."""
_BEARING = 0.03
"""Heights of the font by which a letter is wider than what is painted of it, on either side …"""
_INDENT = 0.2
"""… and by which the first of several begins before it, at most."""
_LIFTED = 0.35
"""Heights of the font between a line and a dot above it or below."""
_NEAR = 8
"""Characters around one that are looked at for its line."""
_LAST = 20
"""Characters before one that are looked at for the same sign."""


def widen_joined(page: Any, text: Any, characters: Sequence[Character]) -> list[Character]:
    """Return the characters of a page, joined ones as high as their font and as wide as they go, each once.

    Of a joined letter PDFium's box is only what is painted of its first sign, which may be a dot above the
    line. The other signs are painted, but are no characters.
    """
    joined = {one.number for one in characters if _is_joined(text.raw, one)}
    if not joined:
        return list(characters)
    edges = _find_edges(page, text, characters)
    widened: list[Character] = []
    for place, one in enumerate(characters):
        if one.number in joined:
            near = [*characters[place + 1 : place + _NEAR], *characters[max(0, place - _NEAR) : place]]
            lines = [
                other.origin[1] for other in near if other.code > ord(" ") and other.number not in joined
            ]
            one = _widen(text.raw, one, lines, edges)
        recent = range(max(0, len(widened) - _LAST), len(widened))
        twin = next((at for at in recent if _is_again(one, widened[at], joined)), None)
        if twin is None:
            widened.append(one)
        elif one.number not in joined:
            widened[twin] = one
    return widened


def _is_joined(handle: Any, character: Character) -> bool:
    """Return whether PDFium knows no more of a character than what is painted."""
    from pypdfium2 import raw

    if character.code < _FIRST or character.angle:
        return False
    sides = [ctypes.c_double() for _ in range(4)]
    raw.FPDFText_GetCharBox(handle, character.number, *map(ctypes.byref, sides))
    return tuple(side.value for side in sides) == character.box


def _find_edges(page: Any, text: Any, characters: Sequence[Character]) -> dict[int, tuple[float, float]]:
    """Return the left and right edge of the signs that are no characters, by the one that they follow."""
    from pypdfium2 import raw

    last: dict[int | None, int] = {}
    for one in characters:
        drawn = raw.FPDFText_GetTextObject(text.raw, one.number)
        last[ctypes.cast(drawn, ctypes.c_void_p).value] = one.number
    found: dict[int, list[tuple[float, float]]] = defaultdict(list)
    sides = [ctypes.c_float() for _ in range(4)]
    number = None
    for index in range(raw.FPDFPage_CountObjects(page.raw)):
        drawn = raw.FPDFPage_GetObject(page.raw, index)
        if raw.FPDFPageObj_GetType(drawn) != raw.FPDF_PAGEOBJ_TEXT:
            continue
        known = last.get(ctypes.cast(drawn, ctypes.c_void_p).value)
        if known is not None:
            number = known
        elif number is not None:
            raw.FPDFPageObj_GetBounds(drawn, *map(ctypes.byref, sides))
            if sides[2].value > sides[0].value:
                found[number].append((sides[0].value, sides[2].value))
    return {at: (min(left for left, _ in all), max(right for _, right in all)) for at, all in found.items()}


def _widen(
    handle: Any, character: Character, lines: Sequence[float], edges: dict[int, tuple[float, float]]
) -> Character:
    """Return a joined character with its box; `lines` are the base lines of those beside it."""
    from pypdfium2 import raw

    number, (left, right, low, high), (x, y) = character.number, character.box, character.origin
    matrix, ascent, descent = raw.FS_MATRIX(), ctypes.c_float(), ctypes.c_float()
    raw.FPDFText_GetMatrix(handle, number, ctypes.byref(matrix))
    font = raw.FPDFTextObj_GetFont(raw.FPDFText_GetTextObject(handle, number))
    size = raw.FPDFText_GetFontSize(handle, number)
    raw.FPDFFont_GetAscent(font, size, ctypes.byref(ascent))
    raw.FPDFFont_GetDescent(font, size, ctypes.byref(descent))
    wide = size * matrix.a
    y = next((line for line in lines if abs(y - line) < _LIFTED * size * matrix.d), y)
    begin, end = edges.get(number, (left, right))
    if not (begin < right + _INDENT * wide and left - _INDENT * wide < end):
        begin, end = left, right
    right = max(right, end)
    if unicodedata.bidirectional(chr(character.code)) == "AL":
        left = min(left, begin) - _BEARING * wide
    elif left - x < _INDENT * wide:
        left = min(left, x)
    if character.code >= _FULL_WIDTH:
        right = max(right, x + wide)
    low, high = min(low, y + descent.value * matrix.d), max(high, y + ascent.value * matrix.d)
    return character._replace(box=(left, right + _BEARING * wide, low, high), origin=(x, y))


def _is_again(one: Character, other: Character, joined: set[int]) -> bool:
    """Return whether a letter stands partly over the same letter, of which one is only a part of the sign."""
    if one.code != other.code or one.code < _FIRST or one.origin == other.origin:
        return False
    shared = min(one.box[1], other.box[1]) - max(one.box[0], other.box[0])
    narrow = min(one.box[1] - one.box[0], other.box[1] - other.box[0])
    level = abs(one.origin[1] - other.origin[1]) < _LIFTED * (one.box[3] - one.box[2])
    return level and shared > 0.1 * narrow and not joined.isdisjoint((one.number, other.number))
