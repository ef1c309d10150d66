"""Extract the text of a Markdown file: without comments, its headings in one form, its code as it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_HEADING = re.compile(r"#{1,6}[ \t]+(?P<title>[^ \t\n].*)")
_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})(?P<rest>[^\n]*)")
_UNDERLINE = re.compile(r" {0,3}(?P<sign>=+|--+)[ \t]*")
_NO_PARAGRAPH = re.compile(r"[ \t]*(?:[#>|<]|[-*+][ \t]|\d{1,9}[.)][ \t]|```|~~~)| {4}|\t")
"""Lines that no `===` or `---` turns into a heading: headings, quotes, tables, HTML, lists, code."""
_CODE = r"^ {0,3}(?P<mark>`{3,}+|~{3,}+)[^\n]*\n(?:[^\n]*\n)*?(?: {0,3}(?P=mark)[`~]*[ \t]*$|\Z)|`[^`\n]*`"
_COMMENTS = {
    "-->": re.compile(rf"(?P<code>{_CODE})|<!--", re.MULTILINE),
    "*/}": re.compile(rf"(?P<code>{_CODE})|\{{/\*", re.MULTILINE),
}
"""End of a comment → code, which is kept, or the begin of such a comment."""
_MDX = re.compile(r"import[ \t]+(?:.*[ \t]from[ \t]+)?['\"].*|export[ \t]+(?:const|default|function|let)\b.*")
_COMPONENT = re.compile(r"</?[A-Z][\w.]*(?:\s[^<>]*)?>")


def clean_markdown(text: str, mdx: bool = False) -> str:
    """Return a text without comments, and with underlined headings written with `#`.

    Args:
        text: Markdown, with `\\n` as line end.
        mdx: whether it is MDX: what it imports and exports, its comments and the tags of components go, too.
    """
    text = _drop_comments(text, "-->")
    if not mdx:
        return "\n".join(_write_headings(text.split("\n")))
    lines = [
        line if code else _COMPONENT.sub("", line)
        for line, code in _mark_code(_drop_comments(text, "*/}").split("\n"))
        if code or not _MDX.fullmatch(line)
    ]
    return "\n".join(_write_headings(lines))


def find_heading(text: str) -> tuple[int, int, str] | None:
    """Return begin, end and title of the first heading that is no comment of code; None: there is none."""
    begin = 0
    for line, code in _mark_code(text.split("\n")):
        if not code and (found := _HEADING.fullmatch(line)):
            # Step by step: a pattern of the closing `#` takes time with the cube of the spaces in a line.
            title = found["title"].rstrip(" \t").rstrip("#").rstrip(" \t")
            return begin, begin + len(line), title or "#"
        begin += len(line) + 1
    return None


def _drop_comments(text: str, closing: str) -> str:
    """Return the text without comments; one that never ends is text."""
    kept: list[str] = []
    position = looked = 0
    while found := _COMMENTS[closing].search(text, looked):
        looked = found.end()
        if found["code"] is None:
            end = text.find(closing, looked)
            if end < 0:
                break
            kept.append(text[position : found.start()])
            position = looked = end + len(closing)
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
