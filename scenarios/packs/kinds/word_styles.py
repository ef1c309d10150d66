"""Styles and numbers of a Word document's paragraphs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from hallulab.scenarios.packs.kinds.parts import write_roman

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_HEADING = re.compile(r"heading ?(\d)", re.IGNORECASE)
_LEVELS = 9
_LONGEST_CHAIN = 20
"""Styles that are based on one another at most."""


def is_on(element: Element | None) -> bool:
    """Return whether a property that is on or off is on: `<w:vanish/>`, `<w:vanish w:val="0"/>`."""
    return element is not None and element.get("val", "1") not in ("0", "false", "off", "none")


class Style(NamedTuple):
    """Properties of a paragraph's style."""

    level: int
    """Of a heading, 1 to 9; 0: it is none."""
    is_title: bool
    hidden: bool
    number: Element | None
    id: str


class Styles:
    """The styles of a document."""

    def __init__(self, roots: list[Element]) -> None:
        self._styles = {style.get("styleId", ""): style for root in roots for style in root.iter("style")}
        self._known: dict[str, Style] = {}
        self._usual = next(
            (id for id, one in self._styles.items() if one.get("type") == "paragraph" and one.get("default")),
            "",
        )

    def find(self, paragraph: Element) -> Style:
        """Return the style of a paragraph."""
        named = paragraph.find("pPr/pStyle")
        style = self.find_by_id(named.get("val", "") if named is not None else self._usual)
        outline = paragraph.find("pPr/outlineLvl")
        return style._replace(level=_read_outline(outline)) if outline is not None else style

    def find_by_id(self, id: str) -> Style:
        """Return a style, with what it has from the styles on which it is based."""
        if id not in self._known:
            self._known[id] = self._read(id)
        return self._known[id]

    def _read(self, id: str) -> Style:
        chain: list[Element] = []
        named: str | None = id
        while named in self._styles and len(chain) < _LONGEST_CHAIN:
            chain.append(self._styles[named])
            based = chain[-1].find("basedOn")
            named = based.get("val") if based is not None else None
        names = [name.get("val", "") for style in chain if (name := style.find("name")) is not None] or [id]
        found = next((match for name in names if (match := _HEADING.fullmatch(name))), None)
        outline = next((one for style in chain if (one := style.find("pPr/outlineLvl")) is not None), None)
        return Style(
            level=int(found[1]) if found else _read_outline(outline),
            is_title=names[0].lower() == "title",
            hidden=is_on(next((one for s in chain if (one := s.find("rPr/vanish")) is not None), None)),
            number=next((one for style in chain if (one := style.find("pPr/numPr")) is not None), None),
            id=id,
        )


def _read_outline(outline: Element | None) -> int:
    """Return the level of a heading; Word's 9 is body text."""
    level = _read_int(outline)
    return level + 1 if outline is not None and 0 <= level < _LEVELS else 0


def _read_int(element: Element | None, default: int = 0) -> int:
    text = _get_value(element)
    return int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else default


class ParagraphNumbers:
    """Counts the numbered paragraphs of a document, as Word does."""

    def __init__(self, roots: list[Element], styles: Styles) -> None:
        self._styles = styles
        self._kinds = {one.get("abstractNumId"): one for root in roots for one in root.iter("abstractNum")}
        self._lists = {one.get("numId"): one for root in roots for one in root.iter("num")}
        self._counts: dict[str, list[int | None]] = {}
        self._begun: set[tuple[str, int]] = set()

    def count(self, paragraph: Element) -> tuple[str, int]:
        """Return the number that a paragraph shows (`-` for a bullet, "" for none) and its level from 0."""
        style = self._styles.find(paragraph)
        own = paragraph.find("pPr/numPr")
        id = own.find("numId") if own is not None else None
        by_style = id is None
        if id is None and style.number is not None:
            id = style.number.find("numId")
        name = _get_value(id)
        kind = self._find_kind(name)
        if kind is None:
            return "", 0
        levels = {one.get("ilvl", ""): one for one in kind.findall("lvl")}
        overrides = {one.get("ilvl", ""): one for one in self._lists[name].findall("lvlOverride")}
        levels |= {
            at: own_level for at, one in overrides.items() if (own_level := one.find("lvl")) is not None
        }
        level = self._find_level(own, style, levels, by_style)
        if str(level) not in levels:
            return "", level
        starts = {int(at): _read_int(one.find("start"), 0) for at, one in levels.items() if at.isdigit()}
        self._step(name, kind.get("abstractNumId", ""), level, starts, levels, overrides)
        counts = self._counts[kind.get("abstractNumId", "")]
        return _write_label(levels, counts, starts, level), level

    def _find_kind(self, name: str) -> Element | None:
        """Return the `abstractNum` of a list, which may be that of a style."""
        for _ in range(_LONGEST_CHAIN):
            if name not in self._lists:
                return None
            linked = self._lists[name].find("abstractNumId")
            kind = self._kinds.get(linked.get("val") if linked is not None else None)
            style = kind.find("numStyleLink") if kind is not None else None
            if style is None:
                return kind
            number = self._styles.find_by_id(style.get("val", "")).number
            name = "" if number is None else _get_value(number.find("numId"))
        return None

    @staticmethod
    def _find_level(own: Element | None, style: Style, levels: dict[str, Element], by_style: bool) -> int:
        given = own.find("ilvl") if own is not None else None
        if given is None and by_style:
            for at, one in levels.items():
                linked = one.find("pStyle")
                if linked is not None and linked.get("val") == style.id:
                    return int(at) if at in ("0", "1", "2", "3", "4", "5", "6", "7", "8") else 0
            given = style.number.find("ilvl") if style.number is not None else None
        return min(max(_read_int(given), 0), _LEVELS - 1)

    def _step(
        self,
        name: str,
        kind: str,
        level: int,
        starts: dict[int, int],
        levels: dict[str, Element],
        overrides: dict[str, Element],
    ) -> None:
        """Count a paragraph of a level; the levels below it begin anew."""
        counts = self._counts.setdefault(kind, [None] * _LEVELS)
        override = overrides[str(level)].find("startOverride") if str(level) in overrides else None
        before = counts[level]
        if override is not None and (name, level) not in self._begun:
            counts[level] = _read_int(override)
        else:
            counts[level] = starts.get(level, 0) if before is None else before + 1
        self._begun.add((name, level))
        for above in range(level):
            if counts[above] is None:
                counts[above] = starts.get(above, 0)
        for below in range(level + 1, _LEVELS):
            restart = levels[str(below)].find("lvlRestart") if str(below) in levels else None
            if restart is None or level < _read_int(restart):
                counts[below] = None


def _write_label(
    levels: dict[str, Element], counts: list[int | None], starts: dict[int, int], level: int
) -> str:
    shown = levels[str(level)]
    if _get_value(shown.find("numFmt"), "decimal") == "bullet":
        return "-"
    legal = is_on(shown.find("isLgl"))

    def write(found: re.Match[str]) -> str:
        at = int(found[1]) - 1
        count = counts[at]
        number = starts.get(at, 0) if count is None else count
        own = levels[str(at)].find("numFmt") if str(at) in levels and not legal else None
        kind = _get_value(own, "decimal")
        return write_number(number, kind)

    return re.sub(r"%([1-9])", write, _get_value(shown.find("lvlText"))).strip()


def _get_value(element: Element | None, default: str = "") -> str:
    """Return the value of a property; the default where the property, or its value, is missing."""
    return default if element is None else element.get("val", default)


def write_number(number: int, kind: str) -> str:
    """Return a number in one of Word's formats; formats in words are in digits.

    >>> write_number(4, "lowerRoman"), write_number(28, "upperLetter"), write_number(7, "decimalZero")
    ('iv', 'BB', '07')
    """
    match kind:
        case "none":
            return ""
        case "decimalZero":
            return f"{number:02}"
        case "lowerLetter" | "upperLetter" if 0 < number <= 26 * 20:
            letters = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
            return letters if kind == "lowerLetter" else letters.upper()
        case "lowerRoman" | "upperRoman" if 0 < number < 10_000:
            written = write_roman(number)
            return written if kind == "lowerRoman" else written.upper()
        case "ordinal":
            teen = number % 100 in (11, 12, 13)
            return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
        case _:
            return str(number)
