"""Extract the text of a Markdown file: without comments, its headings in one form, its code as it is."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator

_HEADING = re.compile(r"#{1,6}[ \t]+(?P<title>[^ \t\n].*)")
_ATTRIBUTES = re.compile(r"[ \t]{1,10}\{:?[ \t]{0,10}[#.][^{}\n]{1,200}\}$")
"""Name and classes of a heading, as Pandoc and its like write them: `{#fees .new}`."""
_SIGN = re.compile(
    r"(?P<code>`[^`\n]*`)|(?P<entity>&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]\w{1,31});)"
    r"|<sup>(?P<raised>[^<>\n]{1,20})</sup>|<sub>(?P<lowered>[^<>\n]{1,20})</sub>|<br[ \t]{0,5}/?>"
)
"""Entities, raised and lowered numbers and line ends that Markdown has from HTML; or code, which is kept."""
_OF_MARKDOWN = frozenset("<>&|*_`#\\[]")
_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})(?P<rest>[^\n]*)")
_UNDERLINE = re.compile(r" {0,3}(?P<sign>=+|--+)[ \t]*")
_NO_PARAGRAPH = re.compile(r"[ \t]*(?:[#>|<]|[-*+][ \t]|\d{1,9}[.)][ \t]|```|~~~)| {4}|\t")
"""Lines that no `===` or `---` turns into a heading: headings, quotes, tables, HTML, lists, code."""
_CODE = r"^ {0,3}(?P<mark>`{3,}+|~{3,}+)[^\n]*\n(?:[^\n]*\n)*?(?: {0,3}(?P=mark)[`~]*[ \t]*$|\Z)|`[^`\n]*`"
_HIDING = (
    r"(?:\s[\w:-]{1,40}=(?:\"[^\"<>]{0,200}\"|'[^'<>]{0,200}'|[^\s\"'<>]{1,200})){0,9}?"
    r"\s(?:hidden(?![\w-])|style=[\"'][^\"'<>]{0,200}display\s?:\s?none)"
)
"""Attributes of an element that is not shown."""
_COMMENTS = {
    "HTML": (re.compile(rf"(?P<code>{_CODE})|<!--", re.MULTILINE), re.compile("-->")),
    "MDX": (re.compile(rf"(?P<code>{_CODE})|\{{/\*", re.MULTILINE), re.compile(r"\*/\}")),
    "Obsidian, in a line": (
        re.compile(rf"(?P<code>{_CODE})|(?<!\S)%%(?=[^%\n]{{1,2000}}%%(?!\w))", re.MULTILINE),
        re.compile("%%"),
    ),
    "Obsidian": (
        re.compile(rf"(?P<code>{_CODE})|^%%", re.MULTILINE),
        re.compile(r"%%[ \t]*$", re.MULTILINE),
    ),
    **{
        f"HTML, {name}": (
            re.compile(rf"(?P<code>{_CODE})|<{name}\b{shown}[^<>]{{0,400}}>", re.MULTILINE | re.IGNORECASE),
            re.compile(rf"</{name}\s?>", re.IGNORECASE),
        )
        for names, shown in (
            ("script style template", ""),
            ("div p section span", _HIDING),
        )
        for name in names.split()
    },
}
"""Kind of comments, or of what no page shows → code, which is kept, or the begin of such; its end."""
_REFERENCE = re.compile(
    r" {0,3}\[(?!\^)[^\]\n]{1,200}\]:[ \t]{1,9}(?:<[^<>\n]*>|#\S*|[^\s<]*[/:.]\S*)"
    r"(?:[ \t]{1,9}(?:\"[^\"\n]*\"|'[^'\n]*'|\([^\n]*\)))?[ \t]*+"
)
_TABLE = re.compile(
    rf"(?P<code>{_CODE})|^[ \t]*<table\b(?:[^<]|<(?!/?table\b))*+</table>", re.MULTILINE | re.IGNORECASE
)
_MDX = re.compile(r"import[ \t]+(?:.*[ \t]from[ \t]+)?['\"].*|export[ \t]+(?:const|default|function|let)\b.*")
_COMPONENT = re.compile(r"</?[A-Z][\w.]*(?:\s[^<>]*)?>")


def clean_markdown(text: str, mdx: bool = False) -> str:
    """Return a text without comments, and with underlined headings written with `#`.

    Args:
        text: Markdown, with `\\n` as line end.
        mdx: whether it is MDX: what it imports and exports, its comments and the tags of components go, too.
    """
    for kind in _COMMENTS:
        if (mdx or kind != "MDX") and (kind[:5] != "HTML," or "<" in text):
            text = _drop_comments(text, *_COMMENTS[kind])
    lines = [
        line if code else _clean_line(line, mdx)
        for line, code in _mark_code(text.split("\n"))
        if code or not (mdx and _MDX.fullmatch(line))
    ]
    return "\n".join(_write_headings(lines))


def _clean_line(line: str, mdx: bool) -> str:
    """Return a line without components and its heading's attributes; entities and raised numbers as text.

    A line that only says where a link leads is empty: people write comments as such, too.
    """
    if _REFERENCE.fullmatch(line):
        return ""
    if mdx:
        line = _COMPONENT.sub("", line)
    if _HEADING.fullmatch(line):
        line = _ATTRIBUTES.sub("", line)
    return _SIGN.sub(_write_sign, line) if "&" in line or "<" in line else line


def _write_sign(found: re.Match[str]) -> str:
    if found["entity"]:
        text = html.unescape(found["entity"])
        return found["entity"] if text in _OF_MARKDOWN else text
    if found["raised"] is not None:
        mark = found["raised"].strip()
        if mark.strip("[]").isdecimal():
            return f" [{mark.strip('[]')}]" if mark.startswith("[") else f"^{mark}"
        return mark
    return found["lowered"] or found["code"] or " "


def convert_tables(text: str, convert: Callable[[str], str]) -> str:
    """Return a text in which tables that are written in HTML are converted, but those of code.

    A table in which another one stands stays as it is.
    """

    def write(found: re.Match[str]) -> str:
        return found[0] if found["code"] is not None else f"\n{convert(found[0]).strip()}\n"

    return _TABLE.sub(write, text) if "<table" in text.lower() else text


def find_heading(text: str) -> tuple[int, int, str] | None:
    """Return begin, end and title of the first heading that is no comment of code; None: there is none."""
    begin = 0
    for line, code in _mark_code(text.split("\n")):
        if not code and (found := _HEADING.fullmatch(line)):
            # Step by step: a pattern of the closing `#` takes time with the cube of the spaces in a line.
            title = _ATTRIBUTES.sub("", found["title"].rstrip(" \t").rstrip("#").rstrip(" \t"))
            return begin, begin + len(line), title or "#"
        begin += len(line) + 1
    return None


def _drop_comments(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> str:
    """Return the text without comments; one that never ends is text."""
    kept: list[str] = []
    position = looked = 0
    while found := opening.search(text, looked):
        looked = found.end()
        if found["code"] is None:
            end = closing.search(text, looked)
            if end is None:
                break
            kept.append(text[position : found.start()])
            position = looked = end.end()
    return "".join(kept) + text[position:]


def _mark_code(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield each line and whether it belongs to a fenced block of code; its fences do."""
    mark = ""
    for line in lines:
        fence = _FENCE.match(line)
        if mark:
            yield line, True
            if fence and fence["mark"].startswith(mark) and not fence["rest"].strip():
                mark = ""
        elif fence and not (fence["mark"][0] == "`" and "`" in fence["rest"]):
            mark = fence["mark"]
            yield line, True
        else:
            yield line, False


def _write_headings(lines: list[str]) -> Iterator[str]:
    """Yield the lines; one over `===` becomes `# line`, one over `---` `## line`."""
    before, waiting = "", None
    for line, code in _mark_code(lines):
        sign = None if code or waiting is None else _UNDERLINE.fullmatch(line)
        if sign and waiting and waiting.strip() and not before and not _NO_PARAGRAPH.match(waiting):
            yield f"{'#' if sign['sign'][0] == '=' else '##'} {waiting.strip()}"
            before, waiting = "", None
            continue
        if waiting is not None:
            yield waiting
            before = waiting.strip()
        waiting = line
        if code:
            yield line
            before, waiting = "", None
    if waiting is not None:
        yield waiting
