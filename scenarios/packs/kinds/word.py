"""Text of Word documents, as Markdown: the text that Word shows when all tracked changes are accepted."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from hallulab.scenarios.packs.kinds import Extracted, parts
from hallulab.scenarios.packs.kinds.cell_lines import spread_lines
from hallulab.scenarios.packs.kinds.spaced_letters import join_spaced_letters
from hallulab.scenarios.packs.kinds.word_runs import Runs
from hallulab.scenarios.packs.kinds.word_styles import ParagraphNumbers, Styles

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_AROUND_BLOCKS = ("sdt", "sdtContent", "customXml", "ins", "moveTo", "AlternateContent", "Choice", "smartTag")
_DROPPED = ("del", "moveFrom")
_LEFT_OUT = {
    "comments": ("commentReference",),
    "pictures": ("blip", "imagedata"),
    "charts": ("chart",),
    "diagrams": ("relIds",),
    "embedded objects": ("OLEObject",),
    "inserted documents": ("altChunk", "subDoc"),
    "deletions of tracked changes": ("delText",),
}
"""Name in the notes → the elements that are counted for it."""
_MOST_COLUMNS = 1000


def read(content: bytes) -> Extracted:
    """Return the text of a document.

    Numbers of paragraphs are as Word shows them, a merged cell stands in each of its places, footnotes stand
    at the end. Hidden text, headers, footers, comments and pictures are left out, and the notes say so.

    Raises:
        ValueError: its parts are too large, it has a password, or it is of Word before 2007.
    """
    if content.startswith(parts.OLD_OFFICE):
        raise ValueError("it has a password, or is of Word before 2007: save it as .docx without a password")
    parts.check_unpacked_size(content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return _WordDocument(_WordParts(archive)).extract()


class _WordParts:
    """The parts of a document, by what they are for it: `numbering`."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = set(archive.namelist())
        start = self._find_targets("_rels/.rels", "").get("officeDocument", [])
        self.main = next(iter(start), "word/document.xml")
        folder, name = posixpath.split(self.main)
        self._folder = folder
        self._targets = self._find_targets(f"{folder}/_rels/{name}.rels", folder)

    def _find_targets(self, part: str, folder: str) -> dict[str, list[str]]:
        targets: dict[str, list[str]] = {}
        for relation in self.parse(part) if part in self._names else ():
            kind = relation.get("Type", "").rpartition("/")[2]
            target = posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).lstrip("/")
            targets.setdefault(kind, []).append(target)
        return targets

    def read(self, kind: str) -> list[Element]:
        """Return the roots of the parts of a kind; a part without relation is found by its usual name."""
        names = self._targets.get(kind) or [f"{self._folder}/{kind}.xml"]
        return [self.parse(name) for name in names if name in self._names]

    def parse(self, name: str) -> Element:
        """Return the root of a part; its names have lost their namespaces: strict documents have others."""
        from defusedxml.ElementTree import fromstring

        root: Element = fromstring(self._archive.read(name))
        for element in root.iter():
            if isinstance(element.tag, str):
                element.tag = element.tag.rpartition("}")[2]
            for key in [key for key in element.attrib if key.startswith("{")]:
                element.attrib.setdefault(key.rpartition("}")[2], element.attrib.pop(key))
        return root


class _WordDocument:
    """A document that is being read."""

    def __init__(self, parts: _WordParts) -> None:
        self._parts = parts
        self._styles = Styles(parts.read("styles"))
        self._numbering = ParagraphNumbers(parts.read("numbering"), self._styles)
        self._runs = Runs(self._styles)
        self._title: str | None = None
        self._tables = 0  # in which we are

    def extract(self) -> Extracted:
        """Return what the document says."""
        root = self._parts.parse(self._parts.main)
        body = root.find("body")
        if body is None:
            raise ValueError("it has no body: it is no Word document, or damaged")
        text, before = "", False
        for block, item in self._read_blocks(body):  # with a blank line between them, but none within a list
            text += ("\n" if item and before else "\n\n" if text else "") + block
            before = item
        text += "".join(f"\n\n[{number}] {said}" for number, said in enumerate(self._read_notes(), start=1))
        return Extracted(text, self._title, tuple(self._tell(root)))

    def _read_notes(self) -> Iterator[str]:
        """Yield the footnotes and endnotes in the order of their marks, also those that stand in notes."""
        notes = {
            (kind, note.get("id")): note
            for kind in ("footnote", "endnote")
            for root in self._parts.read(f"{kind}s")
            for note in root
        }
        for key in self._runs.marks:  # grows while notes are read
            yield _join_cell(self._read_blocks(notes[key])) if key in notes else ""

    def _tell(self, root: Element) -> Iterator[str]:
        """Yield what is left out."""
        for kind in ("header", "footer"):
            for said in dict.fromkeys(_join_cell(self._read_blocks(part)) for part in self._parts.read(kind)):
                if re.search(r"[^\W\d_]", said):
                    yield f"the {kind} is left out: {said}"
        counts = Counter(element.tag for element in root.iter())
        for what, names in _LEFT_OUT.items():
            if number := sum(counts[name] for name in names):
                yield f"{what} are left out ({number})"
        if self._runs.hidden:
            yield f"hidden text is left out ({self._runs.hidden} words)"
        yield from self._runs.unknown

    def _read_blocks(self, parent: Element) -> Iterator[tuple[str, bool]]:
        """Yield the paragraphs and tables of an element, and whether each is an item of a list."""
        held = ""
        for element in parent:
            if element.tag == "p":
                text, item = self._read_paragraph(element)
                boxes, self._runs.boxes = self._runs.boxes, []
                if element.find("pPr/rPr/del") is not None:  # the end of the paragraph is deleted
                    held += text
                elif text.strip() or held:
                    yield (held + text).rstrip(), item
                    held = ""
                self._runs.grounds += 1
                for box in boxes:
                    yield from self._read_blocks(box)
                self._runs.grounds -= 1
            elif element.tag == "tbl":
                yield from self._read_table(element)
            elif element.tag in ("oMathPara", "oMath"):
                yield self._runs.read(element), False
            elif element.tag in _AROUND_BLOCKS and element.find("sdtPr/showingPlcHdr") is None:
                yield from self._read_blocks(element)
        if held:
            yield held.rstrip(), False

    def _read_paragraph(self, paragraph: Element) -> tuple[str, bool]:
        """Return a paragraph with its number, and whether it is an item of a list."""
        style = self._styles.find(paragraph)
        label, level = self._numbering.count(paragraph)
        text = join_spaced_letters(self._runs.read(paragraph).strip("\n").lstrip(" "))
        if not text.strip():
            return "", False
        if style.is_title and self._title is None:
            self._title = " ".join(text.split())
        heading = 1 if style.is_title else style.level
        if heading:
            return f"{'#' * min(heading, 6)} {' '.join([*label.split(), *text.split()])}", False
        if text.startswith("#"):
            text = "\\" + text
        if label == "-":
            label = "  " * level + label
        return f"{label} {text}" if label else text, label != ""

    def _read_table(self, table: Element) -> Iterator[tuple[str, bool]]:
        """Yield a table as Markdown; a table of one column is no table, but a frame."""
        rows: list[list[str]] = []
        self._tables += 1
        self._runs.grounds += 1
        for row in _find_inside(table, "tr"):
            if row.find("trPr/del") is not None:
                continue
            cells = [""] * _read_number(row, "trPr/gridBefore", 0)
            for cell in _find_inside(row, "tc"):
                at = len(cells)
                merged = cell.find("tcPr/vMerge")
                text = _join_cell(self._read_blocks(cell))
                if merged is not None and merged.get("val") != "restart" and rows and at < len(rows[-1]):
                    text = rows[-1][at]
                cells += [text] * _read_number(cell, "tcPr/gridSpan", 1)
            rows.append(cells)
        self._tables -= 1
        self._runs.grounds -= 1
        width = max((len(row) for row in rows), default=0)
        if self._tables and width > 1:
            yield "; ".join(", ".join(" ".join(cell.split()) for cell in row if cell) for row in rows), False
            return
        if width < 2:
            yield from ((" ".join(cell.split()), False) for row in rows for cell in row if cell)
            return
        lines = []
        for texts in (
            *([" ".join(cell.split()) for cell in row] for row in rows[:1]),
            *(line for row in rows[1:] for line in spread_lines(row)),
        ):
            said = texts[:1] if len(set(texts)) == 1 else texts
            padded = [*said, *[""] * (width - len(said))]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in padded) + " |")
        lines.insert(1, "|" + " --- |" * width)
        yield "\n".join(lines), False


def _find_inside(parent: Element, name: str) -> Iterator[Element]:
    """Yield the elements of a name, also those in content controls and other elements around them."""
    for element in parent:
        if element.tag == name:
            yield element
        elif element.tag in _AROUND_BLOCKS:
            yield from _find_inside(element, name)


def _read_number(element: Element, path: str, default: int) -> int:
    found = element.find(path)
    text = found.get("val", "") if found is not None else ""
    return min(int(text), _MOST_COLUMNS) if text.isascii() and text.isdigit() else default


def _join_cell(blocks: Iterable[tuple[str, bool]]) -> str:
    """Return the text of a cell, with a line for each of its paragraphs."""
    return "\n".join(block for block, _ in blocks)
