"""Text of a Word document's paragraphs: runs, fields, symbols, marks of notes and equations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hallulab.scenarios.packs.kinds.word_styles import Styles, is_on

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_DROPPED = ("del", "moveFrom", "instrText", "delText", "pPr", "rPr", "sdtPr", "Fallback", "rt")
_TICKED, _FREE = "☒", "☐"
_GREEK = dict(zip("abgdezhqiklmnxoprstufcyw", "αβγδεζηθικλμνξοπρστυφχψω", strict=True)) | dict(
    zip("ABGDEZHQIKLMNXOPRSTUFCYW", "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ", strict=True)
)
_SYMBOLS = {
    "symbol": {0xA3: "≤", 0xA5: "∞", 0xAE: "→", 0xB0: "°", 0xB1: "±", 0xB3: "≥", 0xB4: "×", 0xB7: "•",
               0xB8: "÷", 0xB9: "≠", 0xBB: "≈", 0xD6: "√", 0xD7: "·", 0xE5: "∑"}
    | {ord(letter): greek for letter, greek in _GREEK.items()},
    "wingdings": {0x6C: "●", 0x6E: "■", 0x6F: _FREE, 0x71: _FREE, 0x72: _FREE, 0x78: _TICKED, 0xA8: _FREE,
                  0xA7: "▪", 0xD8: "➢", 0xE0: "→", 0xE8: "→", 0xF0: "⇨", 0xFB: "✗", 0xFC: "✓", 0xFD: _TICKED,
                  0xFE: "☑"},
    "wingdings 2": {0x4F: "✗", 0x50: "✓", 0x51: _TICKED, 0x52: "☑", 0x53: _TICKED, 0x54: _TICKED,
                    0xA3: _FREE},
}  # fmt: skip
"""Font → code of a letter → what it shows."""


class Runs:
    """Reads the text of paragraphs.

    Attributes:
        boxes: the text boxes that the paragraphs hold, not read yet.
        hidden: words of hidden text.
        marks: kind and id of the footnotes and endnotes, in the order of their marks.
        unknown: what could not be read, a sentence each.
        grounds: tables and boxes around the paragraphs, which may be dark.
    """

    def __init__(self, styles: Styles) -> None:
        self._styles = styles
        self.boxes: list[Element] = []
        self.hidden = 0
        self.marks: list[tuple[str, str | None]] = []
        self.unknown: dict[str, None] = {}
        self.grounds = 0
        self._is_bare = False
        self._fields: list[bool] = []
        self._raised = False
        self._struck = False
        self._style_hides = False

    def read(self, parent: Element) -> str:
        """Return the text of a paragraph."""
        parts: list[str] = []
        self._is_bare = (
            parent.tag == "p" and parent.find("pPr/shd") is None and parent.find("pPr/pStyle") is None
        )
        self._style_hides = parent.tag == "p" and self._styles.find(parent).hidden
        self._add(parent, parts)
        self._close_strike(parts)
        self._raised = False
        # Damaged fields, without a result, hide one paragraph at most.
        self._fields = [True for _ in self._fields]
        return "".join(parts)

    def _add(self, parent: Element, parts: list[str]) -> None:
        for element in parent:
            name = element.tag
            if name in _DROPPED:
                continue
            if name == "r":
                self._add_run(element, parts)
            elif name in ("oMath", "oMathPara"):
                self._close_strike(parts)
                said = write_math(element)
                parts.append(f" {said}" if said[:1].isdigit() and "".join(parts)[-1:].isdigit() else said)
            elif name == "txbxContent":
                self.boxes.append(element)
            elif name == "sdt":
                self._add_control(element, parts)
            elif name == "AlternateContent":
                self._add_alternative(element, parts)
            elif name == "ruby":
                self._add(element, parts)
                above = "".join(text.text or "" for text in element.iterfind("rt//t"))
                parts.append(f"({above})" if above else "")
            else:
                self._add_sign(element, parts)

    def _add_alternative(self, element: Element, parts: list[str]) -> None:
        """Add the newer one of two ways to write something; the older where the newer holds no text."""
        before = len(parts), len(self.boxes)
        self._add(element, parts)
        fallback = element.find("Fallback")
        if fallback is not None and (len(parts), len(self.boxes)) == before:
            self._add(fallback, parts)

    def _add_control(self, control: Element, parts: list[str]) -> None:
        """Add a content control: a check box by its state, no text that only asks for one."""
        ticked = control.find("sdtPr/checkbox/checked")
        if control.find("sdtPr/checkbox") is not None:
            parts.append(_TICKED if is_on(ticked) else _FREE)
        elif control.find("sdtPr/showingPlcHdr") is None:
            self._add(control, parts)

    def _add_run(self, run: Element, parts: list[str]) -> None:
        if self._is_hidden(run):
            self.hidden += len(" ".join(text.text or "" for text in run.iter("t")).split())
            self._add(run, [])  # a field may begin or end in it
            return
        said: list[str] = []
        self._add(run, said)
        text = "".join(said)
        align, struck = run.find("rPr/vertAlign"), run.find("rPr/strike")
        struck = run.find("rPr/dstrike") if struck is None else struck
        raised = align is not None and align.get("val") == "superscript"
        if not text:
            return
        if is_on(struck) != self._struck:
            if not self._struck:
                parts.append(text[: len(text) - len(text.lstrip())] + "~~")
                text = text.lstrip()
                self._struck = True
            else:
                self._close_strike(parts)
        note = run.find("footnoteReference") is not None or run.find("endnoteReference") is not None
        if raised and not self._raised and not note and text.strip() and not text.strip().isalpha() and parts:
            text = "^" + text.lstrip()
        self._raised = raised
        parts.append(text)

    def _close_strike(self, parts: list[str]) -> None:
        if self._struck:
            end = len(parts[-1].rstrip())
            parts[-1] = f"{parts[-1][:end]}~~{parts[-1][end:]}"
            self._struck = False

    def _is_hidden(self, run: Element) -> bool:
        own = run.find("rPr/vanish")
        if own is not None:
            return is_on(own)
        colour = run.find("rPr/color")
        is_white = colour is not None and colour.get("val", "").upper() == "FFFFFF"
        is_bare = run.find("rPr/shd") is None and run.find("rPr/highlight") is None
        if self._is_bare and not self.grounds and is_white and is_bare:
            return True  # the colour of paper, and no other behind it
        style = run.find("rPr/rStyle")
        return self._style_hides or (
            style is not None and self._styles.find_by_id(style.get("val", "")).hidden
        )

    def _add_sign(self, element: Element, parts: list[str]) -> None:
        """Add what an element of a run shows."""
        name = element.tag
        if name == "fldChar":
            self._follow_field(element, parts)
        elif self._fields and not all(self._fields):
            return  # a field's instruction
        elif name == "t":
            parts.append((element.text or "").replace("\u00ad", "").replace("\u00a0", " "))
        elif name in ("tab", "ptab"):
            parts.append("\t")
        elif name in ("br", "cr"):
            parts.append("\n" if element.get("type") not in ("page", "column") else " ")
        elif name == "noBreakHyphen":
            parts.append("-")
        elif name == "sym":
            parts.append(self._read_symbol(element))
        elif name in ("footnoteReference", "endnoteReference"):
            self.marks.append((name.removesuffix("Reference"), element.get("id")))
            parts.append(f" [{len(self.marks)}]")
        else:
            self._add(element, parts)

    def _follow_field(self, element: Element, parts: list[str]) -> None:
        """Follow the marks of a field: instruction, result, end. A form's fields say what they show."""
        step = element.get("fldCharType")
        if step == "begin":
            box, chosen = element.find("ffData/checkBox"), element.find("ffData/ddList")
            if box is not None:
                checked = box.find("checked")
                parts.append(_TICKED if is_on(box.find("default") if checked is None else checked) else _FREE)
            elif chosen is not None:
                entries, result = chosen.findall("listEntry"), chosen.find("result")
                at = result.get("val", "0") if result is not None else "0"
                parts.append(
                    entries[int(at)].get("val", "") if at.isdigit() and int(at) < len(entries) else ""
                )
            self._fields.append(False)
        elif step == "separate" and self._fields:
            self._fields[-1] = True
        elif step == "end" and self._fields:
            self._fields.pop()

    def _read_symbol(self, element: Element) -> str:
        """Return what a letter of a font of symbols shows."""
        font, code = element.get("font", ""), element.get("char", "")
        if not re.fullmatch(r"[0-9A-Fa-f]{1,4}", code):
            return ""
        number = int(code, 16)
        if shown := _SYMBOLS.get(font.lower(), {}).get(number & 0xFF):
            return shown
        if not 0xE000 <= number < 0xF900:
            return chr(number)
        self.unknown[f"a symbol of the font {font} is left out ({code})"] = None
        return ""


def write_math(element: Element) -> str:
    """Return an equation in one line: `(a+b)/2`, `x^2`, `√(x)`."""
    inner = [child for child in element if not child.tag.endswith("Pr")]
    said = [write_math(child) for child in inner]

    def get(name: str) -> str:
        found = element.find(name)
        return write_math(found) if found is not None else ""

    def find_sign(path: str, default: str) -> str:
        found = element.find(path)
        return default if found is None else found.get("val", "")

    match element.tag:
        case "t":
            return element.text or ""
        case "f":
            return f"{_group(get('num'))}/{_group(get('den'))}"
        case "sSup":
            return f"{get('e')}^{_group(get('sup'))}"
        case "sSub":
            return f"{get('e')}_{_group(get('sub'))}"
        case "sSubSup":
            return f"{get('e')}_{_group(get('sub'))}^{_group(get('sup'))}"
        case "rad":
            return f"{get('deg')}√{_group(get('e'))}"
        case "d":
            parts = find_sign("dPr/sepChr", "|").join(map(write_math, element.findall("e")))
            return find_sign("dPr/begChr", "(") + parts + find_sign("dPr/endChr", ")")
        case "nary":
            limits = "".join(
                f"{sign}{_group(get(name))}" for name, sign in (("sub", "_"), ("sup", "^")) if get(name)
            )
            return f"{find_sign('naryPr/chr', '∫')}{limits} {get('e')}"
        case "func":
            return f"{get('fName')} {get('e')}"
        case "limLow" | "limUpp":
            return f"{get('e')}{'_' if element.tag == 'limLow' else '^'}{_group(get('lim'))}"
        case "mr":
            return ", ".join(said)
        case "m":
            return f"[{'; '.join(said)}]"
        case "eqArr":
            return "; ".join(said)
        case _:
            text = ""
            for child, part in zip(inner, said, strict=True):
                text += f" {part}" if child.tag == "f" and text[-1:].isdigit() else part
            return text


def _group(text: str) -> str:
    return text if re.fullmatch(r"\w*(?:\.\w+)?", text) else f"({text})"
