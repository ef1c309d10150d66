"""Text of presentations (PPTX), by way of a page."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING
from zipfile import ZipFile

from hallulab.scenarios.packs.kinds import Extracted, html, note_pictures
from hallulab.scenarios.packs.kinds.parts import (
    find_all,
    get_attribute,
    get_name,
    open_archive,
    parse_xml,
    resolve,
)

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_PRESENTATION = "ppt/presentation.xml"
_TITLES = ("title", "ctrTitle")
_ON_EVERY_SLIDE = ("sldNum", "ftr", "dt", "hdr")
_LISTS = (None, "body", "obj")
"""Types of placeholders whose paragraphs have bullets."""
_DEEPEST = 8
"""Level of a bullet at most, from 0."""


def read(content: bytes) -> Extracted:
    """Return the slides in their order: titles as headings, bullets, tables, and the speaker's notes.

    Raises:
        ValueError: it has a password, or its parts are too large.
    """
    archive = open_archive(content)
    targets = _read_targets(archive, _PRESENTATION)
    pages: list[str] = []
    notes: list[str] = []
    pictures = 0
    for number, slide in enumerate(find_all(parse_xml(archive.read(_PRESENTATION)), "sldId"), start=1):
        # It has an `id` and an `r:id`.
        link = next(value for key, value in slide.items() if key.endswith("}id"))
        part = targets[link][1]
        root = parse_xml(archive.read(part))
        if root.get("show") == "0":
            notes.append(f"slide {number} is hidden and was left out")
            continue
        level = "h2" if pages else "h1"
        titles, rest = [], []
        for shape in _find_shapes(root):
            if get_name(shape) == "graphicFrame":
                rest += [_write_table(table) for table in find_all(shape, "tbl")]
            elif (place := _get_placeholder(shape)) in _TITLES:
                titles += [f"<{level}>{text}</{level}>" for text in _write_texts(shape)]
            elif place not in _ON_EVERY_SLIDE:
                rest.append(_write_paragraphs(shape, has_bullets=place in _LISTS))
        pages.append("".join([*titles, *rest]))
        pictures += sum(get_name(one) in ("blip", "chart", "oMath") for one in root.iter())
        for kind, spoken in _read_targets(archive, part).values():
            if kind == "notesSlide":
                for shape in _find_shapes(parse_xml(archive.read(spoken))):
                    if _get_placeholder(shape) in _LISTS:
                        pages += [f"<p>{text}</p>" for text in _write_texts(shape)]
    return Extracted(
        html.read(f"<body>{''.join(pages)}</body>").text, notes=(*notes, *note_pictures(pictures))
    )


def _read_targets(archive: ZipFile, part: str) -> dict[str, tuple[str, str]]:
    """Return the kind and the part of each link of a part, by the link's id."""
    folder, _, name = part.rpartition("/")
    links = f"{folder}/_rels/{name}.rels"
    if links not in archive.namelist():
        return {}
    return {
        link.get("Id", ""): (link.get("Type", "").rpartition("/")[2], resolve(part, link.get("Target", "")))
        for link in find_all(parse_xml(archive.read(links)), "Relationship")
        if link.get("TargetMode") != "External"
    }


def _find_shapes(root: Element) -> Iterator[Element]:
    """Yield the shown shapes and frames of a slide, those of groups too; of alternatives, the first."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        match get_name(element):
            case "sp" | "graphicFrame" | "grpSp" if any(
                get_name(one) == "cNvPr" and one.get("hidden") in ("1", "true")
                for part in element
                for one in part
            ):
                pass
            case "sp" | "graphicFrame":
                yield element
            case "Fallback":
                pass
            case _:
                waiting += reversed(element)


def _get_placeholder(shape: Element) -> str | None:
    """Return the type of a shape's placeholder; None: a placeholder of no type; `none`: it is none."""
    placeholder = next(find_all(shape, "ph"), None)
    return "none" if placeholder is None else placeholder.get("type")


def _write_texts(shape: Element) -> list[str]:
    """Return the texts of the paragraphs that have any."""
    texts = (_write_runs(paragraph) for paragraph in find_all(shape, "p"))
    return [text for text in texts if text.strip()]


def _write_paragraphs(shape: Element, has_bullets: bool) -> str:
    written: list[str] = []
    open_lists: list[str] = []
    for paragraph in find_all(shape, "p"):
        text = _write_runs(paragraph)
        if not text.strip():
            continue
        properties = next(find_all(paragraph, "pPr"), None)
        marks = set() if properties is None else {get_name(one) for one in properties}
        is_item = "buNone" not in marks and (has_bullets or bool(marks & {"buChar", "buAutoNum", "buBlip"}))
        level = int((properties is not None and properties.get("lvl")) or 0)
        wanted = min(level, _DEEPEST) + 1 if is_item else 0
        while len(open_lists) > wanted:
            written.append(f"</li></{open_lists.pop()}>")
        if is_item and len(open_lists) == wanted:
            written.append("</li>")
        while len(open_lists) < wanted:
            open_lists.append("ol" if "buAutoNum" in marks else "ul")
            written.append(f"<{open_lists[-1]}>")
        written.append(f"<li>{text}" if is_item else f"<p>{text}</p>")
    return "".join([*written, *(f"</li></{name}>" for name in reversed(open_lists))])


def _write_runs(paragraph: Element) -> str:
    written = []
    for run in paragraph:
        match get_name(run):
            case "br":
                written.append("<br>")
            case "r" | "fld":
                text = escape("".join(one.text or "" for one in find_all(run, "t")))
                properties = next(find_all(run, "rPr"), None)
                if properties is not None and properties.get("strike", "noStrike") != "noStrike":
                    continue
                raised = properties is not None and int(properties.get("baseline", "0").rstrip("%")) > 0
                written.append(f"<sup>{text}</sup>" if raised else text)
    return "".join(written)


def _write_table(table: Element) -> str:
    rows: list[str] = []
    for row in find_all(table, "tr"):
        cells = []
        for cell in find_all(row, "tc"):
            if {get_attribute(cell, "hMerge"), get_attribute(cell, "vMerge")} & {"1", "true"}:
                continue
            wide, high = (int(cell.get(name, "1")) for name in ("gridSpan", "rowSpan"))
            name = "td" if rows else "th"
            text = "<br>".join(_write_texts(cell))
            cells.append(f'<{name} colspan="{wide}" rowspan="{high}">{text}</{name}>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{''.join(rows)}</table>"
