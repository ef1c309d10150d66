"""Write the marks of a page, which only its looks tell, as text: raised and lowered numbers, list numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bs4.element import NavigableString, Tag

from hallulab.scenarios.packs.kinds.parts import write_roman

MARK = "data-hallulab-mark"
"""Attribute of a list item with its number or letter."""

_INLINE = frozenset(("a", "b", "strong", "em", "i", "span", "font", "small", "u", "ins", "code", "abbr", "q"))
_FOOTNOTE = re.compile(r"[\[(]?(\d{1,3}|[a-z]|[*†‡§]{1,3})[\])]?")
_POWER = re.compile(r"[-+−–]?[\w.,/+−-]*\d[\w.,/+−-]*|[-+−]?[nkmxyij]")
_UNIT = re.compile(r"(?:^|[^^\W\d_]|[\d\s/·])(?:[a-zA-Zµ]{1,2}|10)$")
"""Base of a power: a unit or a variable of one or two letters, or 10."""
_SINGLE = re.compile(r"\d+(?:[.,]\d+)?|\w?")
_OVER = re.compile(r"\s*[/⁄]\s*")
_AMOUNT = re.compile(
    r"(?:[€$£₹¥]|EUR|USD|CHF|Fr\.?)\s?[\d.,]*\d\s?\x00|\d\s?\x00\s?(?:[€$£₹]|EUR|USD|CHF|zł|kr|Kč|лв|₽)"
)
"""A price whose cents, at 00, are raised."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_STYLE = re.compile(r"list-style(?:-type)?\s*:\s*(lower|upper)-(alpha|latin|roman)", re.IGNORECASE)


def write_marks(page: Tag) -> None:
    """Replace `<sup>` and `<sub>` by text, write fractions and powers of `<math>`, and number list items.

    `50<sup>1</sup>` is `50 [1]` where a paragraph begins with that mark or it is a link, else `50^1`; letters
    (`1<sup>st</sup>`) stay.
    """
    raised = page.find_all("sup")
    before = {id(element): _get_text_before(element) for element in raised}
    footnotes = {element.get_text(strip=True) for element in raised if not before[id(element)].strip()}
    for element in raised:
        element.replace_with(NavigableString(_raise(element, before[id(element)], footnotes)))
    for element in page.find_all("a"):
        kind = f"{element.get('epub:type', '')} {element.get('role', '')}"
        if "noteref" in kind and not element.find_parent("sup") and "[" not in element.get_text():
            element.replace_with(NavigableString(f" [{element.get_text(strip=True)}]"))
    for element in page.find_all("sub"):
        text = element.get_text(strip=True)
        after, said = str(element.next_sibling or ""), str(element.previous_sibling or "")
        if text[:1].isdigit() and after[:1].isdigit():
            text = f"_{text} "
        elif text and (said[-1:].isdigit() if text[:1].isdigit() else said[-1:].isalnum()):
            text = f"_{text}"
        element.replace_with(NavigableString(text))
    for name, sign in (("msup", "^"), ("msub", "_"), ("mfrac", "/")):
        for element in page.find_all(name):
            parts = element.find_all(True, recursive=False)
            if name == "mfrac" and str(element.find_previous(string=True) or "")[-1:].isdigit():
                element.insert_before(NavigableString(" "))
            if len(parts) == 2:
                for part in parts:
                    _group(part)
                parts[1].insert_before(NavigableString(sign))
    for element in page.find_all("msqrt"):
        _group(element)
        element.insert(0, NavigableString("√"))
    for numbered in page.find_all("ol"):
        for item, mark in _number_items(numbered):
            item[MARK] = mark


def _group(element: Tag) -> None:
    """Put what is more than a number or a name into brackets."""
    if not _SINGLE.fullmatch(element.get_text(strip=True)):
        element.insert(0, NavigableString("("))
        element.append(NavigableString(")"))


def _get_text_before(element: Tag) -> str:
    """Return the text right before an element in its paragraph; empty: it begins the paragraph."""
    node: Tag | None = element
    while node is not None:
        sibling = node.previous_sibling
        while sibling is not None:
            if isinstance(sibling, NavigableString) and sibling.strip():
                return str(sibling)
            if isinstance(sibling, Tag):
                return sibling.get_text() if sibling.name in _INLINE or sibling.name in ("sup", "sub") else ""
            sibling = sibling.previous_sibling
        node = node.parent if node.parent is not None and node.parent.name in _INLINE else None
    return ""


def _raise(element: Tag, before: str, footnotes: set[str]) -> str:
    text = element.get_text(strip=True)
    mark = _FOOTNOTE.fullmatch(text)
    if text.isdigit() and _OVER.fullmatch(str(element.next_sibling or "")):
        return f"{' ' if before[-1:].isdigit() else ''}{text}"  # a fraction
    if mark is not None:
        if not before.strip():
            return f"[{mark[1]}]{'' if str(element.next_sibling or '')[:1].isspace() else ' '}"
        linked = element.find("a") is not None or (element.parent is not None and element.parent.name == "a")
        if linked or text[0] in "[(*†‡§" or (text in footnotes and not _UNIT.search(before)):
            return f" [{mark[1]}]"
    if len(text) == 2 and text.isdigit() and before[-1:].isdigit() and element.parent is not None:
        around = ("\x00" if one is element else one.get_text() for one in element.parent.children)
        if _AMOUNT.search("".join(around)):
            return f".{text}"
    return f"^{text}" if _POWER.fullmatch(text) else text


def _number_items(numbered: Tag) -> Iterator[tuple[Tag, str]]:
    """Yield the items of a list, each with its number or letter."""
    items = numbered.find_all("li", recursive=False)
    step = -1 if numbered.has_attr("reversed") else 1
    number = _read_number(numbered.get("start"), len(items) if step < 0 else 1)
    style = _STYLE.search(str(numbered.get("style", "")))
    kind = str(numbered.get("type", "1"))
    if style:
        kind = "i" if style[2].lower() == "roman" else "a"
        kind = kind.upper() if style[1].lower() == "upper" else kind
    for item in items:
        number = _read_number(item.get("value"), number)
        yield item, f"{_write_number(number, kind)}."
        number += step


def _read_number(value: object, default: int) -> int:
    text = str(value).strip()
    return int(text) if re.fullmatch(r"-?\d{1,6}", text, re.ASCII) else default


def _write_number(number: int, kind: str) -> str:
    """Return a number as a list of that kind shows it.

    >>> [_write_number(28, kind) for kind in "1aAiI"]
    ['28', 'ab', 'AB', 'xxviii', 'XXVIII']
    """
    if number < 1 or kind not in "aAiI" or number > 3999:
        return str(number)
    written = "" if kind in "aA" else write_roman(number)
    while kind in "aA" and number:
        number, letter = divmod(number - 1, len(_LETTERS))
        written = _LETTERS[letter] + written
    return written if kind.islower() else written.upper()
