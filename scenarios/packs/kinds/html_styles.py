"""Elements of a page that its styles hide: `style` attributes and the rules of `<style>`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from bs4 import BeautifulSoup, Tag

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_BRACE = re.compile(r"[{}]")
_DECLARATION = re.compile(r"(?:^|;)\s*([a-zA-Z-]{1,40})\s*:\s*([^;]*)")
_IMPORTANT = re.compile(r"\s*!\s*important\s*$", re.IGNORECASE)
_WIDTH = re.compile(r"\(\s*(min|max)-width\s*:\s*(\d{1,5})(?:\.\d+)?(px|em|rem)\s*\)", re.IGNORECASE)
_MEDIA = re.compile(r"(?:only\s+)?(?:screen|all)?(?:\s*\band\b)?", re.IGNORECASE)
_NAME = re.compile(r"([.#])(-?[_a-zA-Z][\w-]*)")
_CLASS, _TYPE = re.compile(r"\.[\w-]|\[|(?<!:):[\w-]"), re.compile(r"(?:^|[\s>+~])[a-zA-Z]")
"""Parts of a selector that make it specific."""
_ELEMENT = re.compile(r"[a-zA-Z][\w-]*")
_CONDITION = re.compile(r":[\w-]+\([^()]*\)|\[[^\]]*\]|:[\w-]+")
"""Parts of a selector beside names: `:not(.open)`, `[href]`, `:first-child`."""
_STATES = re.compile(r":(?:has|hover|focus|active|checked|target)\b")
_COMMA = re.compile(r",(?![^()]*\))(?![^\[\]]*\])")
_LONGEST_HEAD = 2000
"""Characters of a rule's selectors that are read."""
_MOST_RULES = 5000
"""Rules of a page that are looked at, at most."""
_MOST_TRIES = 100_000
"""Elements that are compared with a rule, at most."""
_SCREEN = 1280
"""Pixels of the screen on which a page is read."""
_HIDING = {
    "display": re.compile(r"none$"),
    "visibility": re.compile(r"(?:hidden|collapse)$"),
    "text-decoration": re.compile(r".*\bline-through\b"),
    "text-decoration-line": re.compile(r".*\bline-through\b"),
    "font-size": re.compile(r"0(?:\.0*)?[a-z%]*$"),
    "color": re.compile(r"transparent$|#fff(?:fff)?$|white$|rgba?\(\s*255\s*,\s*255\s*,\s*255\s*[,)]"),
    "text-indent": re.compile(r"-\d{3,}"),
    "left": re.compile(r"-\d{3,}"),
    "top": re.compile(r"-\d{3,}"),
}
"""Property → values of it with which a text is not seen."""
_MAIN_PART = 0.9
"""Share of a page's text that is its main part: where a style hides it, a script shows it."""
_GROUNDS = ("background", "background-color")
_OF_TEXT = ("font-size", "color")
"""Properties that other ones within an element may take back."""
_FOR_READERS = re.compile(r"(?:^|[-_\s])(?:sr|screen-?reader|visually-?hidden|offscreen|a11y)", re.IGNORECASE)
"""Names of texts that are read out where others see a sign."""
OPENED = re.compile(
    r"accordion|(?:^|[-_\s])acc[-_]|collaps|faq|panel|answer|toggl|expand|spoiler|(?:^|[-_\s])tab",
    re.IGNORECASE,
)
"""Names of what opens when one clicks on its head."""


class _Rule(NamedTuple):
    selector: str
    weight: tuple[bool, int, int, int, int]
    """Important, specificity by ids, classes and elements, and place in the page."""
    value: str


def find_hidden(soup: BeautifulSoup) -> list[Tag]:
    """Return the elements that are not shown, or are struck out, without those that a click opens."""
    rules: dict[str, list[_Rule]] = {}
    styles = "\n".join(str(part) for style in soup.find_all("style") for part in style.contents)
    for place, (head, body) in enumerate(islice(_list_rules(_COMMENT.sub("", styles), 0), _MOST_RULES)):
        for name, value, important in _read_style(body):
            for selector in _COMMA.split(head[:_LONGEST_HEAD]) if name in _HIDING or name in _GROUNDS else ():
                ids, classes = selector.count("#"), len(_CLASS.findall(selector))
                weight = important, ids, classes, len(_TYPE.findall(selector.strip())), place
                rules.setdefault(name, []).append(_Rule(selector.strip(), weight, value))
    page = _StyledPage(soup)
    hidden: dict[int, Tag] = {}
    for name, pattern in _HIDING.items():
        decided: dict[int, tuple[tuple[bool, int, int, int, int], bool, Tag]] = {}
        for rule in rules.get(name, ()):
            if not pattern.match(rule.value):
                continue
            for element in page.select(rule.selector):
                _decide(decided, element, rule.weight, True)
        for element in soup.find_all(style=True):
            for own, value, important in _read_style(str(element["style"])):
                if own == name:
                    _decide(decided, element, (important, 1 << 20, 0, 0, 0), bool(pattern.match(value)))
        for rule in rules.get(name, ()) if decided else ():
            if not pattern.match(rule.value):
                for element in page.select(rule.selector):
                    if id(element) in decided:
                        _decide(decided, element, rule.weight, False)
        for _, hides, element in decided.values():
            if hides and _is_out_of_sight(element, name, page, rules):
                hidden[id(element)] = element
    for element in soup.find_all(hidden=True):
        if element["hidden"] != "until-found":
            hidden[id(element)] = element
    openers = {
        name.lstrip("#")
        for one in soup.find_all(("button", "a", "summary", "label", "h2", "h3", "h4", "div", "span", "li"))
        if one.get("aria-haspopup") is None
        for key in ("aria-controls", "data-target", "data-bs-target")
        for name in str(one.get(key, "")).split()
    }
    code = (part for one in soup.find_all(("script", "style", "title")) for part in one.contents)
    most = _MAIN_PART * (len("".join(soup.strings)) - sum(map(len, map(str, code))))
    return [one for one in hidden.values() if not _is_opened(one, openers) and len(one.get_text()) <= most]


def _decide(
    decided: dict[int, tuple[tuple[bool, int, int, int, int], bool, Tag]],
    element: Tag,
    weight: tuple[bool, int, int, int, int],
    hides: bool,
) -> None:
    if id(element) not in decided or decided[id(element)][0] <= weight:
        decided[id(element)] = weight, hides, element


def _read_style(style: str) -> Iterator[tuple[str, str, bool]]:
    for name, value in _DECLARATION.findall(style):
        plain = _IMPORTANT.sub("", value.strip().lower())
        yield name.lower(), plain, plain != value.strip().lower()


def _list_rules(css: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield selectors and declarations of the rules that hold on a screen."""
    at = start = level = 0
    for brace in _BRACE.finditer(css):
        if brace[0] == "{":
            start = start if level else brace.end()
            level += 1
        elif level:
            level -= 1
            if not level:
                head, body = css[at : start - 1].rpartition(";")[2].strip(), css[start : brace.start()]
                at = brace.end()
                if not head.startswith("@"):
                    yield head, body
                elif depth < 3 and _holds(head):
                    yield from _list_rules(body, depth + 1)


def _holds(head: str) -> bool:
    """Return whether a block of rules holds on a screen: `@media print` does not."""
    kind, _, condition = head.partition(" ")
    if kind.lower() in ("@supports", "@layer"):
        return True
    if kind.lower() != "@media" or "," in condition:
        return False
    for side, number, unit in _WIDTH.findall(condition):
        pixels = int(number) * (1 if unit.lower() == "px" else 16)
        if (pixels > _SCREEN) if side.lower() == "min" else (pixels < _SCREEN):
            return False
    return _MEDIA.fullmatch(" ".join(_WIDTH.sub("", condition).split())) is not None


class _StyledPage:
    """A page, with its elements by name, class and id.

    Attributes:
        soup: the page.
        grounds: ids of the elements whose ground has a colour or picture; None: not looked for yet.
    """

    def __init__(self, soup: BeautifulSoup) -> None:
        self.soup = soup
        self._elements: dict[str, list[Tag]] = defaultdict(list)
        self._left = _MOST_TRIES
        self.grounds: set[int] | None = None
        for element in soup.find_all(True):
            names = {f".{name}" for name in element.get_attribute_list("class") if name}
            for name in (element.name, f"#{element.get('id', '')}", *names):
                self._elements[name].append(element)

    def select(self, selector: str) -> list[Tag]:
        """Return the elements that a selector means; none for a state that only a reader brings about."""
        if selector in ("html", "body") or _STATES.search(selector):
            return []
        plain = _CONDITION.sub("", selector)
        if not all(f"{sign}{name}" in self._elements for sign, name in _NAME.findall(plain)):
            return []
        last = re.split(r"[\s>+~]", plain.strip())[-1]
        found = _NAME.search(last) or _ELEMENT.match(last)
        tried = self._elements.get(found[0], []) if found else []
        self._left -= len(tried)
        try:
            compiled = self.soup.css.compile(selector)
            return [element for element in tried if compiled.match(element)] if self._left > 0 else []
        except (self.soup.css.api.SelectorSyntaxError, NotImplementedError):
            return []


def _is_out_of_sight(element: Tag, name: str, page: _StyledPage, rules: dict[str, list[_Rule]]) -> bool:
    """Return whether a property hides an element indeed: white is seen on a ground of another colour."""
    if name in _OF_TEXT and element.find(True) is not None:
        return False
    if name in ("left", "top", "text-indent"):
        return not _FOR_READERS.search(" ".join(map(str, element.get_attribute_list("class"))))
    if name != "color":
        return True
    if page.grounds is None:
        selectors = [rule.selector for ground in _GROUNDS for rule in rules.get(ground, ())]
        page.grounds = {id(one) for selector in selectors for one in page.select(selector)}
    return not any(
        "stylesheet" in one.get_attribute_list("rel") for one in page.soup.find_all("link")
    ) and not any(
        one.has_attr("bgcolor") or "background" in str(one.get("style", "")) or id(one) in page.grounds
        for one in (element, *element.parents)
    )


def _is_opened(element: Tag, openers: set[str]) -> bool:
    """Return whether a click on another element shows a hidden one, as in a list of questions."""
    if element.get("role") == "tabpanel" or element.get("id") in openers:
        return True
    names = " ".join([str(element.get("id", "")), *map(str, element.get_attribute_list("class"))])
    before = element.find_previous_sibling()
    if before is None:
        return False
    if before.name == "button" or before.get("role") == "button" or before.has_attr("onclick"):
        return True
    return bool(OPENED.search(names) or OPENED.search(" ".join(before.get_attribute_list("class"))))
