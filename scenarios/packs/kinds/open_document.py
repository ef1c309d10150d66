"""Text of documents of LibreOffice and OpenOffice (ODT), by way of a page."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from hallulab.scenarios.packs.kinds import Extracted, html, note_pictures
from hallulab.scenarios.packs.kinds.parts import find_all, get_attribute, get_name, open_archive, parse_xml

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_NOT_SAID = (
    "tracked-changes", "annotation", "hidden-text", "hidden-paragraph", "forms", "sequence-decls",
    "note-citation", "table-of-content", "table-column", "table-columns", "covered-table-cell",
)  # fmt: skip
"""Elements that are no part of the text."""
_MOST_REPEATED = 1000
"""Columns, rows and blanks that one element stands for, at most."""


def read(content: bytes) -> Extracted:
    """Return the text with headings, lists, tables and footnotes, without what is hidden or deleted.

    Raises:
        ValueError: it has a password, or its parts are too large.
    """
    archive = open_archive(content)
    names = archive.namelist()
    if "META-INF/manifest.xml" in names:
        manifest = parse_xml(archive.read("META-INF/manifest.xml"))
        if next(find_all(manifest, "encryption-data"), None) is not None:
            raise ValueError("it has a password: save it again without")
    root = parse_xml(archive.read("content.xml"))
    styles = [parse_xml(archive.read("styles.xml"))] if "styles.xml" in names else []
    page = _OdtPage([root, *styles])
    written = "".join(page.write(body) for body in find_all(root, "body"))
    title = None
    if "meta.xml" in names:
        title = next((one.text for one in find_all(parse_xml(archive.read("meta.xml")), "title")), None)
    found = html.read(f"<body>{written}{''.join(page.footnotes)}</body>")
    return Extracted(found.text, title or None, (*found.notes, *note_pictures(page.pictures)))


class _OdtPage:
    """Writes elements as a page's; collects the footnotes."""

    def __init__(self, roots: list[Element]) -> None:
        self.footnotes: list[str] = []
        self.pictures = 0
        self._hidden: set[str | None] = set()
        self._raised: set[str | None] = set()
        self._numbered: dict[str | None, list[str]] = {}
        for root in roots:
            for style in find_all(root, "style"):
                name = get_attribute(style, "name")
                for properties in find_all(style, "text-properties"):
                    line = get_attribute(properties, "text-line-through-style")
                    if get_attribute(properties, "display") == "none" or line not in (None, "none"):
                        self._hidden.add(name)  # struck text, too
                    if (get_attribute(properties, "text-position") or "").startswith("super"):
                        self._raised.add(name)
            for style in find_all(root, "list-style"):
                levels = [
                    "ol"
                    if get_name(level) == "list-level-style-number" and get_attribute(level, "num-format")
                    else "ul"
                    for level in style
                ]
                self._numbered[get_attribute(style, "name")] = levels

    def write(self, element: Element, lists: tuple[str | None, ...] = ()) -> str:
        """Return an element without the text after it; `lists` are the styles of the lists around it."""
        name, style = get_name(element), get_attribute(element, "style-name")
        if name in _NOT_SAID or style in self._hidden:
            return ""
        match name:
            case "s":
                return " " * min(int(get_attribute(element, "c") or 1), _MOST_REPEATED)
            case "tab":
                return " "
            case "line-break":
                return "<br>"
            case "image" | "object":
                self.pictures += 1
                return ""
            case "note":
                return self._write_note(element, lists)
            case "list":
                lists = (*lists, style or (lists[-1] if lists else None))
        inside = escape(element.text or "") + "".join(
            self.write(child, lists) + escape(child.tail or "") for child in element
        )
        match name:
            case "p":
                return f"<p>{inside}</p>"
            case "h":
                level = min(int(get_attribute(element, "outline-level") or 1), 6)
                return f"<h{level}>{inside}</h{level}>"
            case "list":
                levels = self._numbered.get(lists[-1], [])
                kind = levels[len(lists) - 1] if len(lists) <= len(levels) else "ul"
                return f"<{kind}>{inside}</{kind}>"
            case "list-item":
                start = get_attribute(element, "start-value")
                number = f' value="{int(start)}"' if start else ""
                return f"<li{number}>{inside}</li>"
            case "span" if style in self._raised:
                return f"<sup>{inside}</sup>"
            case "table":
                head, end, rest = inside.partition("</tr>")
                return f"<table>{head.replace('<td ', '<th ').replace('</td>', '</th>')}{end}{rest}</table>"
            case "table-row":
                return f"<tr>{inside}</tr>" * _count(element, "number-rows-repeated", inside)
            case "table-cell":
                wide, high = _count(element, "number-columns-spanned"), _count(element, "number-rows-spanned")
                cell = f'<td colspan="{wide}" rowspan="{high}">{inside}</td>'
                return cell * _count(element, "number-columns-repeated", inside)
        return inside

    def _write_note(self, note: Element, lists: tuple[str | None, ...]) -> str:
        """Return the mark of a note; keep the note for the end."""
        mark = escape("".join(text for one in find_all(note, "note-citation") for text in one.itertext()))
        number = len(self.footnotes)
        self.footnotes.append("")  # its place: a note in this one comes after it
        body = "".join(self.write(child, lists) for child in note)
        body = body.replace("<p>", f"<p>[{mark}] ", 1)
        self.footnotes[number] = f'<div id="note{number}">{body}</div>'
        return f'<sup><a href="#note{number}">{mark}</a></sup>'


def _count(element: Element, name: str, inside: str = "") -> int:
    """Return how often an element stands, or how many columns or rows it covers."""
    number = int(get_attribute(element, name) or 1)
    if number > _MOST_REPEATED and inside:
        raise ValueError(f"a part of a table stands {number:,} times, more than {_MOST_REPEATED:,}")
    return min(number, _MOST_REPEATED)
