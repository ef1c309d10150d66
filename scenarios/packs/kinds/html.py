"""Text of HTML pages, as Markdown: what a person reads in a browser, without what surrounds it."""

from __future__ import annotations

import re

from bs4 import BeautifulSoup, Comment, Tag

from hallulab.scenarios.packs.kinds import Extracted, html_fields, html_markdown, html_marks, html_styles
from hallulab.scenarios.packs.kinds.spaced_letters import join_spaced_letters
from hallulab.scenarios.packs.kinds.text import decode

_NOT_SAID = (
    *("head", "script", "style", "template", "noscript", "img", "iframe", "object", "annotation"),
    *("del", "s", "strike", "nav", "dialog", "annotation-xml", "canvas", "video", "audio"),
)
"""Elements that are no part of a page's text, or are struck out."""
_AROUND = ("aside", "footer")
"""Elements that stand beside the text, unless they are in it."""
_ROLES = ("navigation", "banner", "contentinfo", "complementary", "search", "dialog", "alertdialog")
_ICONS = re.compile(
    r"(?:^|[-_\s])(?:icons?|fa|fas|far|glyphicon|material-(?:icons|symbols))(?:$|[-_\s])", re.IGNORECASE
)
"""Names of elements whose letters are shown as a sign."""
_READ_OUT = re.compile(
    r"(?:^|\s)(?:sr-only|[\w-]*visually-?hidden|screen-reader\S*|a-offscreen|katex-mathml)(?:$|\s)"
)
"""Names of a text that is read out in place of one that is shown."""
_NOTES = re.compile(
    r"(?:^|[-_\s])(?:note|admonition|callout|warning|tip|info|important)(?:$|[-_\s])", re.IGNORECASE
)
"""Names of what stands beside a text and belongs to it."""
_ROLES_OF_TABLES = {
    "table": "table", "grid": "table", "row": "tr", "columnheader": "th", "rowheader": "th", "cell": "td",
    "gridcell": "td", "rowgroup": "tbody",
}  # fmt: skip
_CODE = ("pre", "code")
_BESIDE = frozenset(
    ["footer", "site-footer", "page-footer", "nav", "navbar", "navigation", "mw-navigation", "breadcrumbs"]
)
"""Ids of parts that stand around the text in pages that do not use the elements for it."""
_COOKIES = re.compile(
    r"(?:^|[-_\s])(?:cookies?|gdpr|consent|onetrust|cc-(?:banner|window))(?:$|[-_\s])", re.IGNORECASE
)
_DECLARED = re.compile(
    rb"<\?xml[^>]{1,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})|<meta[^>]{1,400}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})",
    re.IGNORECASE,
)
_BEGIN = re.compile(r"[^\W_]|[$€£₹¥]")
"""How a word or a price begins."""
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_BLOCKS = ("p", "div", "ul", "ol", "dl", "table", "pre", "blockquote", "section")
_HEAD = 4096
"""Bytes at the begin of a page in which it declares its encoding."""
_XML = re.compile(r"\s*(?:<\?xml\b|<!DOCTYPE[^>]{1,200}XHTML)|\s*<html[^>]{1,400}xmlns=", re.IGNORECASE)
_XML_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*>")
_CLOSED_AT_ONCE = re.compile(r"<(script|style|title|textarea|iframe|a|p|div|span|td|th|li)((?:\s[^<>]*)?)/>")
"""In XML these are empty; in HTML they would hold what follows."""
_BLANKS = 100
"""Blanks of a row in a page that are read, at most."""
_MANY_BLANKS = re.compile(rf"[ \t]{{{_BLANKS},}}+")


def read(content: bytes | str) -> Extracted:
    """Return the text of a page; its title is the first `<h1>` of its main text, else its `<title>`."""
    notes: tuple[str, ...] = ()
    if isinstance(content, bytes):
        found = _DECLARED.search(content, 0, _HEAD)
        declared = found and (found[1] or found[2]).decode("ascii")
        content, encoding = decode(content, declared)
        if declared is None and encoding != "utf-8" and not encoding.startswith("utf-16"):
            notes = (f"declares no encoding, and was read as {encoding}",)
    if _XML.match(content):
        content = _CLOSED_AT_ONCE.sub(r"<\1\2></\1>", _XML_DECLARATION.sub("", content))
    import html5lib  # noqa: F401 - the parser that BeautifulSoup is told by its name

    # A page shows a row of blanks as one, and markdownify's time grows with the square of its length.
    soup = BeautifulSoup(_MANY_BLANKS.sub(" " * _BLANKS, content), "html5lib")
    named = soup.head.title.get_text() if soup.head and soup.head.title else ""
    hidden = html_styles.find_hidden(soup)
    for unsaid in (
        *hidden,
        *soup.find_all(_is_unsaid),
        *soup.find_all(string=lambda text: isinstance(text, Comment)),
    ):
        unsaid.extract()
    # The part of a page that says of itself that it is the main one; else all of it.
    mains = (one for one in soup.find_all(True) if one.name == "main" or one.get("role") == "main")
    page = next((one for one in mains if one.get_text(strip=True)), soup)
    _end_headings(page)
    _part_boxes(page)
    html_fields.write_fields(page)
    html_marks.write_marks(page)
    heading = page.find("h1")
    title = " ".join(join_spaced_letters(heading.get_text() if heading else named).split())
    return Extracted(html_markdown.convert(page), title or None, notes)


def _end_headings(page: Tag) -> None:
    """End each heading where a paragraph begins in it: its end tag is missing."""
    for heading in page.find_all(_HEADINGS):
        first = heading.find(_BLOCKS, recursive=False)
        if first is not None:
            for element in reversed([first, *first.next_siblings]):
                heading.insert_after(element.extract())


def _part_boxes(page: Tag) -> None:
    """Write tables out of other elements as tables, and a space between boxes that only styles part."""
    for element in page.find_all(role=tuple(_ROLES_OF_TABLES)):
        element.name = _ROLES_OF_TABLES[str(element["role"])]
    for box in page.find_all("span", class_=True):
        after = box.next_sibling
        if (
            isinstance(after, Tag)
            and after.name == "span"
            and after.has_attr("class")
            and not box.find_parent(_CODE)
        ):
            before, behind = box.get_text(), after.get_text()
            if min(len(before), len(behind)) > 1 and before[-1].isalnum() and _BEGIN.match(behind):
                box.insert_after(" ")


def _is_unsaid(element: Tag) -> bool:
    """Return whether an element is not shown, is struck out, or stands around the text."""
    if element.name in _NOT_SAID:
        return True
    names = " ".join([str(element.get("id", "")), *map(str, element.get_attribute_list("class"))])
    if element.get("aria-hidden") == "true":
        beside = element.parent.find_all(True, recursive=False) if element.parent else []
        # A text beside it may be read out in its place.
        if _ICONS.search(names) or any(
            _READ_OUT.search(" ".join(one.get_attribute_list("class"))) for one in beside
        ):
            return True
    if element.name == "button":
        # One that opens a text is its question, as in lists of questions; others only do something.
        opens = element.has_attr("aria-expanded") or html_styles.OPENED.search(names)
        return element.find_parent(_HEADINGS) is None and not (
            opens and " " in element.get_text(" ", strip=True)
        )
    if element.name == "title" or (element.name == "desc" and element.find_parent("svg")):
        return True
    if element.get("role") in _ROLES or (element.name == "div" and element.get("id") in _BESIDE):
        return True
    if element.name in _AROUND and not element.find_parent(("main", "article")):
        # A book has its footnotes there, by their kind.
        kind = f"{element.get('epub:type', '')} {element.get('role', '')}"
        if element.name == "footer" or not (kind.strip() or _NOTES.search(names)):
            return True
    if "mw-editsection" in names:
        return True
    if element.name == "a" and element.find_parent(_HEADINGS) is not None:
        text = element.get_text(strip=True)
        if len(text) < 3 and not any(map(str.isalnum, text)):
            return True  # a sign for the address of the heading, as `¶`
    return element.name in ("div", "section", "aside") and _COOKIES.search(names) is not None
