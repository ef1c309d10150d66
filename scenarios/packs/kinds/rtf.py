"""Text of RTF documents, by way of a page."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field, replace
from html import escape

from hallulab.scenarios.packs.kinds import Extracted, html, note_pictures

_TOKEN = re.compile(
    r"\\(?P<word>[a-zA-Z]{1,32})(?P<number>-?\d{1,10})? ?|\\'(?P<byte>[0-9a-fA-F]{2})|\\(?P<sign>[^a-zA-Z])"
    r"|(?P<brace>[{}])|[\r\n]+|(?P<text>[^\\{}\r\n]+)"
)
_NOT_SAID = {
    "fonttbl", "colortbl", "stylesheet", "info", "header", "headerl", "headerr", "headerf", "footer",
    "footerl", "footerr", "footerf", "pict", "fldinst", "themedata", "datastore", "listtable",
    "revtbl", "rsidtbl", "listoverridetable", "xmlnstbl", "latentstyles", "annotation", "atnid",
    "atnauthor", "atndate", "atnref", "bkmkstart", "bkmkend", "filetbl", "nonesttables", "tc", "tcn",
    "xe", "generator", "nonshppict", "ftnsep", "ftnsepc", "aftnsep", "aftnsepc",
}  # fmt: skip
r"""Destinations that are no part of the text, beside those of `\*`."""
_SIGNS = {
    "tab": " ", "line": "\n", "emdash": "—", "endash": "–", "bullet": "•", "lquote": "‘", "rquote": "’",
    "ldblquote": "“", "rdblquote": "”", "emspace": " ", "enspace": " ", "softline": "\n",
}  # fmt: skip
_HEADING_STYLE = re.compile(r"\{\\s(\d{1,5})\b[^{};]{0,2000}?heading (\d)[^{};]{0,200};\}", re.IGNORECASE)
_FONT = re.compile(r"\{\\f(\d{1,5})\b[^{};]{0,200}?\\fcharset(\d{1,3})")
_BULLETS = re.compile(r"[\W_o]?")
_CHARSETS = {
    77: "mac-roman", 128: "cp932", 129: "cp949", 134: "gbk", 136: "big5", 161: "cp1253", 162: "cp1254",
    163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250",
}  # fmt: skip
"""Character sets of fonts → codecs; others have the document's."""
_DEEPEST = 500
_LONGEST_MARK = 100
_LONGEST_TITLE = 1000


@dataclass
class _GroupState:
    """State until the end of a group."""

    destination: str = "text"
    """`text`, `mark` (of a list), `title`, or `none`."""
    is_hidden: bool = False
    is_raised: bool = False
    encoding: str = "cp1252"
    replaced: int = 1
    """Characters that follow a `\\u` and stand for it in older programs."""
    is_note: bool = False


@dataclass
class _BegunParagraph:
    """A paragraph, and what the next one is too, until `\\pard`."""

    texts: list[str] = field(default_factory=list)
    mark: str = ""
    level: int | None = None
    """Level of a heading, from 1."""
    in_table: bool = False


def read(content: bytes) -> Extracted:
    """Return the text with headings, lists, tables and footnotes, without what is hidden or deleted.

    Raises:
        ValueError: it is no RTF, or its groups are too deep.
    """
    if not content.lstrip().startswith(b"{\\rtf"):
        raise ValueError("it does not begin as RTF does")
    reader = _RtfReader(content.decode("latin-1"))
    reader.read()
    title = reader.title.strip() or None
    return Extracted(html.read(reader.write()).text, title, note_pictures(reader.pictures))


class _RtfReader:
    """Goes through the tokens once, and collects the title, blocks of a page, and footnotes."""

    def __init__(self, source: str) -> None:
        self.title = ""
        self.pictures = 0
        self._source = source
        self._headings = {int(one[1]): int(one[2]) for one in _HEADING_STYLE.finditer(source)}
        self._fonts = {
            int(one[1]): _CHARSETS[int(one[2])] for one in _FONT.finditer(source) if int(one[2]) in _CHARSETS
        }
        self._encoding = "cp1252"
        self._state = _GroupState()
        self._stack: list[_GroupState] = []
        self._paragraph = _BegunParagraph()
        self._outer = _BegunParagraph()
        """The paragraph of the footnote that is being read."""
        self._cells: list[str] = []
        self._merged: list[str] = []
        """How each cell of a row continues another: `left`, `up` or not."""
        self._continues = ""
        self._rows: list[list[str]] = []
        self._blocks: list[str] = []
        self._notes: list[str] = []
        self._bytes = bytearray()
        self._to_skip = 0

    def read(self) -> None:
        """Read all of it."""
        position = 0
        while found := _TOKEN.match(self._source, position):
            position = found.end()
            if found["byte"] or found["text"]:
                said = bytes.fromhex(found["byte"]) if found["byte"] else found["text"].encode("latin-1")
                skipped = min(self._to_skip, len(said))
                self._to_skip -= skipped
                self._bytes += said[skipped:]
                continue
            self._flush()
            if found["word"] == "bin":
                position += max(0, int(found["number"] or 0))
            elif found["word"]:
                self._obey(found["word"], int(found["number"]) if found["number"] else None)
            elif found["sign"]:
                self._obey_sign(found["sign"])
            elif found["brace"]:
                self._to_skip = 0
                self._begin_group() if found["brace"] == "{" else self._end_group()
        self._flush()
        self._end_paragraph()
        self._end_table()

    def write(self) -> str:
        """Return the page."""
        notes = [
            f'<p id="note{number}">[{number}] {text.strip()}</p>'
            for number, text in enumerate(self._notes, start=1)
        ]
        page = "".join(["<body>", *self._blocks, *notes, "</body>"]).replace("</ul><ul>", "")
        return page.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def _begin_group(self) -> None:
        if len(self._stack) >= _DEEPEST:
            raise ValueError(f"it has more than {_DEEPEST} groups in each other")
        self._stack.append(self._state)
        self._state = replace(self._state)

    def _end_group(self) -> None:
        if not self._stack:
            return
        inner, self._state = self._state, self._stack.pop()
        if inner.is_note and not self._state.is_note:
            self._notes.append("".join(self._paragraph.texts))
            self._paragraph = self._outer
            number = len(self._notes)
            self._paragraph.texts.append(f'<sup><a href="#note{number}">{number}</a></sup>')

    def _flush(self) -> None:
        if self._bytes:
            self._say(bytes(self._bytes).decode(self._state.encoding, "replace"))
            self._bytes.clear()

    def _say(self, text: str) -> None:
        state = self._state
        if state.destination == "title":
            self.title = (self.title + text)[:_LONGEST_TITLE]
        elif state.destination == "mark":
            self._paragraph.mark = (self._paragraph.mark + text)[:_LONGEST_MARK]
        elif state.destination == "text" and not state.is_hidden:
            text = escape(text).replace("\n", "<br>")
            is_raised = state.is_raised and text.strip()
            self._paragraph.texts.append(f"<sup>{text}</sup>" if is_raised else text)

    def _obey_sign(self, sign: str) -> None:
        match sign:
            case "*":
                self._state.destination = "none"
            case "~":
                self._say("\u00a0")
            case "_":
                self._say("-")
            case "\\" | "{" | "}":
                self._say(sign)
            case "\n" | "\r":
                self._end_paragraph()

    def _obey(self, word: str, number: int | None) -> None:
        state, paragraph = self._state, self._paragraph
        is_on = number != 0
        match word:
            case "u" if number is not None:
                self._say(chr(number % 0x10000))
                self._to_skip = state.replaced
            case "uc":
                state.replaced = number or 0
            case "ansicpg":
                try:
                    self._encoding = state.encoding = codecs.lookup(f"cp{number}").name
                except LookupError:
                    self._encoding = state.encoding = "cp1252"
            case "f":
                state.encoding = self._fonts.get(number or 0, self._encoding)
            case "title":
                state.destination = "title"
            case "listtext" | "pntext" if state.destination == "text":
                state.destination = "mark"
            case "shptxt":
                state.destination = "text"
            case "footnote" if state.destination == "text" and not state.is_note:
                self._outer, self._paragraph = paragraph, _BegunParagraph()
                state.is_note, state.is_raised = True, False
            case "v" | "deleted" | "strike" | "striked":
                state.is_hidden = is_on
            case "super":
                state.is_raised = is_on
            case "plain" | "nosupersub":
                state.is_raised = False
                state.is_hidden = state.is_hidden and word != "plain"
            case "s":
                paragraph.level = self._headings.get(number or 0)
            case "outlinelevel" if number is not None and number < 6:
                paragraph.level = number + 1
            case _ if word in _SIGNS:
                self._say(_SIGNS[word])
            case "mmath" | "object" | "pict" | "shppict" if state.destination == "text" or word == "shppict":
                self.pictures += 1
                state.destination = "none"
            case _ if word in _NOT_SAID:
                state.destination = "none"
            case _ if state.destination == "text":
                self._obey_layout(word)

    def _obey_layout(self, word: str) -> None:
        """Obey what ends paragraphs and makes tables."""
        match word:
            case "pard":
                self._paragraph.level, self._paragraph.in_table = None, False
            case "intbl":
                self._paragraph.in_table = True
            case "par" | "sect" | "page":
                self._end_paragraph()
            case "trowd":
                self._merged = []
            case "clmrg" | "clvmrg":
                self._continues = "left" if word == "clmrg" else "up"
            case "cellx":
                self._merged.append(self._continues)
                self._continues = ""
            case "nestcell":
                self._paragraph.texts.append(" ")
            case "cell":
                text = "".join(self._paragraph.texts)
                self._cells.append(f"{escape(self._paragraph.mark)} {text}".strip())
                self._paragraph = replace(self._paragraph, texts=[], mark="")
            case "row":
                self._end_row()

    def _end_row(self) -> None:
        above = self._rows[-1] if self._rows else []
        for index, (how, _) in enumerate(zip(self._merged, self._cells, strict=False)):
            if how == "left" and index:
                self._cells[index] = self._cells[index - 1]
            elif how == "up" and index < len(above):
                self._cells[index] = above[index]
        self._rows.append(self._cells)
        self._cells = []

    def _end_paragraph(self) -> None:
        paragraph = self._paragraph
        if self._state.is_note or paragraph.in_table:
            paragraph.texts.append("<br>")
            return
        text, mark = "".join(paragraph.texts).strip(), paragraph.mark.strip()
        self._paragraph = replace(paragraph, texts=[], mark="")
        self._end_table()
        if not text:
            return
        if paragraph.level:
            self._blocks.append(f"<h{paragraph.level}>{escape(mark)} {text}</h{paragraph.level}>")
        elif mark and _BULLETS.fullmatch(mark):
            self._blocks.append(f"<ul><li>{text}</li></ul>")
        else:
            self._blocks.append(f"<p>{escape(mark)} {text}</p>")

    def _end_table(self) -> None:
        if self._rows:
            head, *body = self._rows
            rows = [_write_row(head, "th"), *(_write_row(row, "td") for row in body)]
            self._blocks.append(f"<table>{''.join(rows)}</table>")
            self._rows = []


def _write_row(cells: list[str], name: str) -> str:
    return f"<tr>{''.join(f'<{name}>{cell}</{name}>' for cell in cells)}</tr>"
