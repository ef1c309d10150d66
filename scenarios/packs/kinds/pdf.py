"""Text of PDF documents: what stands on each page, in the order in which one reads it."""

from __future__ import annotations

import ctypes
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from hallulab.scenarios.packs.kinds import Extracted, pdf_layout
from hallulab.scenarios.packs.kinds.pdf_joined import widen_joined
from hallulab.scenarios.packs.kinds.pdf_layout import PageRows
from hallulab.scenarios.packs.kinds.pdf_lines import Glyph, read_rows
from hallulab.scenarios.packs.kinds.pdf_seen import THICKEST, Character, find_struck, find_unseen, list_drawn

_NO_TITLE = re.compile(
    r"microsoft \w+ ?-|untitled|document\d*$|slide \d+$|powerpoint presentation|title$|[\w-]+:[/\\]"
    r"|.*\.(docx?|pptx?|xlsx?|pdf|indd|qxd|tex|dvi|odt|rtf|html?|pages|md|txt|cdr|pmd|p65)$",
    re.IGNORECASE,
)
"""Titles that programs write of themselves."""
_PRIVATE_USE = range(0xE000, 0xF900)
_DIGITS = range(ord("0"), ord("9") + 1)
_RAISED = 0.15
"""Heights of a line between its base line and a superscript, at least."""
_OF_RAISED = 0.6
"""Height of such a one, in heights of the line."""
_HYPHENS = (0x02, 0xFFFE)
"""PDFium's sign for the hyphen at the end of a line."""
_DEGREES = 180 / math.pi
_ASLANT = 5
"""Degrees from the level at which text stands aslant."""
_TEXT_FIELDS = (4, 5, 6)
"""PDFium's numbers of the fields that hold text: combo box, list box, text."""
_TICKED_FIELDS = (2, 3)
"""… and of check boxes and radio buttons."""
_FIELD_SIZE = 11.0
"""Height of a line in a form's field at most, in points."""
_LONGEST_QUOTE = 300
"""Letters of a text that is left out which its note says."""
_DOWNWARDS = 4
"""Direction of columns that are written from above to below; others are quarters of a turn."""
_FREE_TEXT, _WIDGET, _LINKS = 3, 20, (2, 16)
"""Kinds of annotations: text on the page, a form's field, links with what opens at them."""


def read(content: bytes) -> Extracted:
    """Return the text of a PDF document: paragraphs and tables, columns one after the other.

    Headers, footers and page numbers that repeat are left out, as is text aslant, and the notes say so. A
    form's values stand where they are shown.

    Raises:
        ValueError: it is damaged, or opens only with a password.
    """
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        locked = "password" in str(error)
        raise ValueError("it opens only with a password" if locked else "it is damaged, or no PDF") from error
    document.init_forms()
    notes: list[str] = []
    pages = [_Page(document, number, notes) for number in range(len(document))]
    text, left_out = pdf_layout.lay_out([sheet for page in pages for sheet in page.sheets])
    notes.extend(f"page {page.number} has no text (a scan?)" for page in pages if page.is_scan())
    notes.extend(f"left out on several pages: {line}" for line in left_out)
    # Many have the title of another document in their properties.
    title = " ".join(document.get_metadata_value("Title").split())
    words, said = (set(re.findall(r"\w+", one.lower())) for one in (title, text))
    sensible = len(words & said) * 2 > len(words) and not _NO_TITLE.match(title)
    return Extracted(text, title if sensible else None, tuple(notes))


class _Page:
    """Content of a page.

    Attributes:
        number: counted from 1.
        sheets: its rows, for each direction of writing; the one with most letters is first.
    """

    def __init__(self, document: Any, index: int, notes: list[str]) -> None:
        import pypdfium2
        from pypdfium2 import raw

        self.number = index + 1
        self.sheets: list[PageRows] = []
        self._objects = 0
        try:
            page = document[index]
            text = page.get_textpage()
        except pypdfium2.PdfiumError:
            notes.append(f"page {self.number} is damaged and left out")
            return
        self._objects = raw.FPDFPage_CountObjects(page.raw)
        left, bottom, right, top = page.get_bbox()
        turned: dict[int, list[Glyph]] = {0: []}
        aslant: list[str] = []
        hidden: list[str] = []
        crossed: list[str] = []
        unknown = 0
        characters = widen_joined(page, text, list(_read_characters(text)))
        drawn = list_drawn(page)
        unseen, struck = find_unseen(page, text, characters), find_struck(drawn, characters)
        downwards = _is_written_downwards(characters)
        for index, code, box, (x, y), angle in characters:
            if not (left <= (box[0] + box[1]) / 2 <= right and bottom <= (box[2] + box[3]) / 2 <= top):
                continue
            if code in (0, 0xFFFD) or code in _PRIVATE_USE or (code < 32 and code not in _HYPHENS):
                unknown += 1
                continue
            letter = "-" if code in _HYPHENS else chr(code)
            if index in unseen or index in struck:
                (hidden if index in unseen else crossed).append(letter)
                continue
            quarter = round(angle / 90) if angle else 0
            if angle and abs(angle - 90 * quarter) > _ASLANT:
                aslant.append(letter)
                continue
            quarter = _DOWNWARDS if downwards and not quarter else quarter % 4
            glyph = _turn(letter, box, x, y, quarter, (left, bottom, right, top))
            glyphs = turned.setdefault(quarter, [])
            if glyphs and glyph[1:] == glyphs[-1][1:]:  # of one ligature
                glyphs[-1] = glyph._replace(text=glyphs[-1].text + letter)
            else:
                glyphs.append(glyph)
        lines = [glyph.y for glyph in turned[0]]
        turned[0].extend(_read_annotations(page, document.formenv, top, lines, notes, self.number))
        for quarter, glyphs in sorted(turned.items(), key=lambda layer: -len(layer[1])):
            height = top - bottom if quarter in (0, 2) else right - left
            rules = [
                (line.left, top - line.top, top - line.low)
                for line in (drawn if quarter == 0 else ())
                if line.right - line.left < THICKEST < line.top - line.low
            ]
            if rows := read_rows(glyphs, rules):
                self.sheets.append(PageRows(rows, height))
        for letters, kind in (
            (aslant, "text aslant (a watermark?)"),
            (hidden, "text that is not seen"),
            (crossed, "struck text"),
        ):
            if said := " ".join("".join(letters).split()):
                notes.append(f"page {self.number}: {kind} is left out: {said[:_LONGEST_QUOTE]}")
        if unknown:
            notes.append(f"page {self.number}: its fonts do not say what {unknown} of the characters are")

    def is_scan(self) -> bool:
        """Return whether there is something on the page, but no text of its own."""
        return self._objects > 0 and not any(sheet.rows for sheet in self.sheets)


def _read_characters(text: Any) -> Iterator[Character]:
    """Yield a page's characters."""
    from pypdfium2 import raw

    handle = text.raw
    get_code, get_box, get_origin = (
        raw.FPDFText_GetUnicode,
        raw.FPDFText_GetLooseCharBox,
        raw.FPDFText_GetCharOrigin,
    )
    get_angle, is_generated = raw.FPDFText_GetCharAngle, raw.FPDFText_IsGenerated
    box, x, y = raw.FS_RECTF(), ctypes.c_double(), ctypes.c_double()
    to_box, to_x, to_y = ctypes.byref(box), ctypes.byref(x), ctypes.byref(y)
    painted = [ctypes.c_double() for _ in range(4)]
    to_painted = [ctypes.byref(side) for side in painted]
    for index in range(text.count_chars()):
        code = get_code(handle, index)
        if code in (10, 13) or (code == 32 and is_generated(handle, index) == 1):
            continue
        get_box(handle, index, to_box)
        get_origin(handle, index, to_x, to_y)
        degrees = get_angle(handle, index) * _DEGREES
        if code >> 10 == 0x36:  # the first half of a letter beyond U+FFFF
            code = 0x10000 + (code - 0xD800 << 10) + (get_code(handle, index + 1) & 0x3FF)
        elif code >> 10 == 0x37:
            continue
        sides, line = (box.left, box.right, box.bottom, box.top), y.value
        if code in _DIGITS and not degrees:
            raw.FPDFText_GetCharBox(handle, index, *to_painted)
            if painted[2].value - line > _RAISED * (box.top - box.bottom):  # a font's own superscript
                line = painted[2].value
                sides = box.left, box.right, line, line + _OF_RAISED * (box.top - box.bottom)
        yield Character(index, code, sides, (x.value, line), degrees)


def _is_written_downwards(characters: Sequence[Character]) -> bool:
    """Return whether most letters of a page stand below the one before, as in Japanese columns."""
    letters = [one for one in characters if one.code > ord(" ")]
    below = 0
    for before, one in pairwise(letters):
        high = before.box[3] - before.box[2]
        in_column = abs(one.origin[0] - before.origin[0]) < 0.1 * high
        below += in_column and 0.5 * high < before.origin[1] - one.origin[1] < 2 * high
    return 2 * below > len(letters)


def _turn(
    letter: str, box: tuple[float, ...], x: float, y: float, quarter: int, page: tuple[float, ...]
) -> Glyph:
    """Return a glyph as it stands when the page is turned so that its text is level; y grows downwards."""
    left, right, low, high = box
    if quarter == _DOWNWARDS:
        return Glyph(letter, page[3] - high, page[3] - low, page[2] - x, high - low)
    if quarter == 0:
        return Glyph(letter, left, right, page[3] - y, high - low)
    if quarter == 2:
        return Glyph(letter, page[2] - right, page[2] - left, y - page[1], high - low)
    if quarter == 1:
        return Glyph(letter, page[3] - high, page[3] - low, page[2] - x, right - left)
    return Glyph(letter, low, high, x - page[0], right - left)


def _read_annotations(
    page: Any, form: Any, top: float, texts: Sequence[float], notes: list[str], number: int
) -> Iterator[Glyph]:
    """Yield what a form's fields and the texts on a page say, as glyphs; note what else was written on it."""
    from pypdfium2 import raw

    kinds: Counter[int] = Counter()
    for index in range(raw.FPDFPage_GetAnnotCount(page.raw)):
        annotation = raw.FPDFPage_GetAnnot(page.raw, index)
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        kinds[kind] += 1
        said = ""
        if kind == _WIDGET:
            said = _read_field(annotation, form)
        elif kind == _FREE_TEXT:
            said = _read_string(raw.FPDFAnnot_GetStringValue, annotation, b"Contents")
        box = raw.FS_RECTF()
        raw.FPDFAnnot_GetRect(annotation, ctypes.byref(box))
        raw.FPDFPage_CloseAnnot(annotation)
        upper, lower = max(box.top, box.bottom), min(box.top, box.bottom)
        lines = said.splitlines()
        for place, line in enumerate(lines):
            size = min((upper - lower) / len(lines), _FIELD_SIZE) or _FIELD_SIZE
            y = top - upper + (place + 0.75) * max(size, (upper - lower) / len(lines))
            if len(lines) == 1:  # the line of the label beside it
                beside = [abs(one - y) for one in texts if top - upper < one < top - lower]
                y = next((one for one in texts if beside and abs(one - y) == min(beside)), y)
            for at, letter in enumerate(line):
                x = min(box.left, box.right) + at * size / 2
                yield Glyph(letter, x, x + size / 2, y, size)
    comments = sum(kinds.values()) - kinds[_WIDGET] - kinds[_FREE_TEXT] - sum(kinds[kind] for kind in _LINKS)
    if comments:
        notes.append(f"page {number}: comments and marks of readers are left out ({comments})")


def _read_field(annotation: Any, form: Any) -> str:
    """Return the value that a form's field shows."""
    from pypdfium2 import raw

    if form is None:
        return _read_string(raw.FPDFAnnot_GetStringValue, annotation, b"V")
    kind = raw.FPDFAnnot_GetFormFieldType(form.raw, annotation)
    if kind in _TICKED_FIELDS:
        return "☒" if raw.FPDFAnnot_IsChecked(form.raw, annotation) else "☐"
    if kind in _TEXT_FIELDS:
        return _read_string(raw.FPDFAnnot_GetFormFieldValue, form.raw, annotation)
    return ""


def _read_string(function: Any, *given: Any) -> str:
    """Return the text that a function of PDFium writes: it is called for the size first."""
    from pypdfium2 import raw

    size = function(*given, None, 0)
    buffer = ctypes.create_string_buffer(size)
    function(*given, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    return buffer.raw[: max(size - 2, 0)].decode("utf-16-le", "replace")
