"""Find contacts, references, dates, amounts and names: what is right or wrong by itself in a text.

Pure text rules. Equal items have equal keys, however they are written: `Rs 1,000` and `1000 rupees`, `sixty
days` and `60 continuous days`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Literal, NamedTuple

from hallulab.scenarios.text.words import (
    MOST_DIGITS,
    NUMBER_WORDS,
    TOKEN,
    match_any,
    read_word,
    shorten_number,
)

Kind = Literal["contact", "reference", "date", "quantity", "number", "name"]
"""A phone number, e-mail or web address; a section, article or directive; a day or month; a number with its
unit; another number; a capitalised name."""

_TEENS = "thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "thirty forty fifty sixty seventy eighty ninety"
_WORDS = (
    NUMBER_WORDS
    | {word: str(number) for number, word in enumerate(_TEENS.split(), start=13)}
    | {word: str(10 * number) for number, word in enumerate(_TENS.split(), start=3)}
)
_SCALES = {
    "hundred": 100,
    "thousand": 1_000,
    "lakh": 100_000,
    "million": 1_000_000,
    "crore": 10_000_000,
    "billion": 1_000_000_000,
}
_UNITS = {
    "%": "percent",
    "percent": "percent",
    "per cent": "percent",
    "₹": "rupee",
    "rs": "rupee",
    "inr": "rupee",
    "$": "dollar",
    "usd": "dollar",
    "€": "euro",
    "eur": "euro",
    "£": "pound",
    "kg": "kilogram",
    "km": "kilometre",
    "kilometer": "kilometre",
    "liter": "litre",
    "meter": "metre",
}
_NUMBER = r"\d+(?:[.,]\d+)*"
_WORD_NUMBER = match_any([r"(?:twen|thir|for|fif|six|seven|eigh|nine)ty-[a-z]+", *_WORDS])
_SCALE = match_any(f"{scale}s?" for scale in _SCALES)
_MEASURES = (
    "days?|weeks?|months?|years?|hours?|minutes?|seconds?|per ?cent|rupees?|dollars?|euros?|pounds?"
    "|kilograms?|kg|grams?|mg|litres?|liters?|ml|kilomet(?:er|re)s?|km|met(?:er|re)s?|miles?"
)
_UNIT = rf"{match_any([_MEASURES])}\b|%"
_BETWEEN = r"(?:\s+|-)(?:(?:working|business|calendar|continuous|consecutive|full|clear)(?:\s+|-))?"
_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"

_CONTACT = re.compile(
    r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    r"|(?:https?://|www\.)[^\s,;\"'()<>]*[^\s,;\"'()<>.:!?]"
    r"|(?<![\w.@-])[a-zA-Z][\w-]*(?:\.[\w-]+)*\.(?:in|com|org|net|gov|edu|int|eu|uk|io|info)\b(?:/[\w./-]*\w)?"
    r"|(?<![\w.,/])(?:\+?\d{1,3}[ -]?)?\(\d{2,5}\)[ -]?\d{3,8}(?:[ -]\d{2,8}){0,3}(?![\w%/])"
    r"|(?<![\w.,/])\+?\d{1,5}(?:[ -]\d{2,8}){1,4}(?![\w%/])"
)
_PHONE_DIGITS = 7
"""Groups of digits with fewer digits in all are a range, or several numbers."""
_REFERENCE = re.compile(
    r"\b(?:sections?|sec\.|articles?|art\.|rules?|regulations?|clauses?|chapters?|schedules?|directives?"
    r"|conventions?|paragraphs?|circulars?)\s+(?:no\.?\s+)?(?:\((?:eu|ec|eec)\)\s+)?(?:no\.?\s+)?"
    # Whole rows of digits (`++`): behind a part of one stands a digit, and the look ahead, which reads on to
    # the end of the word, would be made for each part.
    r"(\d++(?:/\d++)*[a-z]?(?:/e[uc])?(?:\(\w{1,3}\))*)(?![\w,]*\d)",
    re.IGNORECASE,
)
_DATE = re.compile(
    rf"\b(?:(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?({_MONTH})|({_MONTH})\s+(\d{{1,2}})(?:st|nd|rd|th)?(?!\d))"
    rf"(?:,?\s+(\d{{4}}))?\b"
    rf"|\b({_MONTH})(?:,?\s+(\d{{4}}))?\b"
)
_MODAL_MAY = re.compile(
    r"\b(?:in|of|by|since|until|till|from|to|before|after|during|next|last|this)\s+\Z", re.IGNORECASE
)
_CURRENCY = "(?:" + match_any((r"rs\.?", "inr", "usd", "eur")) + r"\s*|[₹$€£]\s*)"
_QUANTITY = re.compile(
    rf"\bT\s*(?:plus|\+)\s*(?P<after>{_NUMBER}|{_WORD_NUMBER})(?:\s+(?:working\s+)?days?\b)?"
    rf"|(?<!\w)(?P<currency>{_CURRENCY})(?P<price>{_NUMBER})(?:\s+(?P<price_scale>{_SCALE}))?(?:/-)?"
    rf"|(?<![\w.,/])(?P<value>{_NUMBER}|\b{_WORD_NUMBER})(?:(?:\s+|-)(?P<scale>{_SCALE}))?"
    rf"(?:{_BETWEEN}|\s*)(?P<unit>{_UNIT})"
    rf"|(?<![\w.,/])(?P<count>{_NUMBER}|\b{_WORD_NUMBER})(?:\s+|-)(?P<count_scale>{_SCALE})\b",
    re.IGNORECASE,
)
# A row of digits is tried from its first one only: where that fails, as before a letter, the others do.
_PLAIN = re.compile(
    r"\d{1,2}(?::\d{2})? ?[ap]\.?m\b\.?|(?<!\d)\d++(?:[.,:/]\d++)*(?:st|nd|rd|th)?(?!\w)", re.IGNORECASE
)
# Of blank lines before a mark only the last one is read: each would be read again from all before it.
_LIST_MARK = re.compile(r"(?:\A\s*+|\n[^\S\n]*+)(?:[*_]{1,2})?\(?\d{1,2}[.)](?=\s)")
_NUMBERED = re.compile(r"\b(?:documents?|passages?|steps?|sources?)\s+\Z", re.IGNORECASE)
"""Things that have a number as their name."""
_CALLED = re.compile(
    r"\b(?:helplines?|hotlines?|call(?:ed|ing)?|dial(?:ling)?|phone|telephone|toll-free|sms|numbers?|contact)\b",
    re.IGNORECASE,
)
_NEAR = 40
"""Characters before and after an item that are looked at for words such as `call`."""
_BARE_PHONE = re.compile(r"\d{3,6}\Z")
_CAPITAL = r"(?:[A-Z][a-z]{0,2}\.(?=[ ]?[A-Z])|[A-Z][\w&’'-]*)"
_NAME = re.compile(rf"{_CAPITAL}(?:\s+(?:(?:of|and|for|on|&)\s+(?:the\s+)?)?{_CAPITAL})*")
# A row of blanks is tried from its first one only.
_NAME_JOINT = re.compile(r"(?<!\s)\s++(?:and|for|on|&)\s++(?:the\s++)?")
_NO_NAME = frozenset({"i", "yes", "no", "t"})
_OPENS = re.compile(r"(?:\A|[.!?:;…\n)]|\s[-•])\Z")
_POSSESSIVE = re.compile(r"['’]s?\Z")


class Item(NamedTuple):
    """A piece of a text."""

    kind: Kind
    start: int
    """First character."""
    end: int
    """One past the last character."""
    text: str
    key: str
    """Common form of equal items: `60 day`, `1930`, `12 june 2026`; for a name its stems."""


@lru_cache(maxsize=4096)
def find_items(text: str) -> tuple[Item, ...]:
    """Return the items of a text, in order, without overlap. List marks and lone first words are no items."""
    taken = bytearray(len(text))
    for mark in _LIST_MARK.finditer(text):
        taken[mark.start() : mark.end()] = b"1" * len(mark[0])
    found: list[Item] = []
    for finder in (
        _find_contacts,
        _find_references,
        _find_dates,
        _find_quantities,
        _find_numbers,
        _find_names,
    ):
        for item in finder(text):
            if not any(taken[item.start : item.end]):
                found.append(item)
                taken[item.start : item.end] = b"1" * len(item.text)
    return tuple(sorted(found, key=lambda item: item.start))


def name_parts(name: Item) -> list[Item]:
    """Split a name at `and`, `for` or `on` into the parts that name something."""
    parts = []
    at = 0
    for joint in [*_NAME_JOINT.finditer(name.text), None]:
        end = joint.start() if joint else len(name.text)
        text = name.text[at:end]
        if key := build_stems_key(text):
            parts.append(Item("name", name.start + at, name.start + end, text, key))
        at = joint.end() if joint else end
    return parts


def build_stems_key(text: str) -> str:
    """Return the stems of a text's content words, in order."""
    words = (read_word(match[0]) for match in TOKEN.finditer(text))
    return " ".join(word.stem for word in words if word.content)


def _find_contacts(text: str) -> Iterator[Item]:
    for match in _CONTACT.finditer(text):
        plain = match[0].lower()
        if not re.search(r"[a-z]", plain):
            plain = re.sub(r"\D", "", plain)
            if len(plain) < _PHONE_DIGITS:
                continue
        yield Item("contact", *match.span(), match[0], re.sub(r"^(?:https?://)?(?:www\.)?", "", plain))


def _find_references(text: str) -> Iterator[Item]:
    for match in _REFERENCE.finditer(text):
        yield Item("reference", *match.span(), match[0], re.sub(r"/e[uc]\Z", "", match[1].lower()))


def _find_dates(text: str) -> Iterator[Item]:
    for match in _DATE.finditer(text):
        day = match[1] or match[4]
        month = (match[2] or match[3] or match[6]).lower()
        year = match[5] or match[7]
        if month == "may" and not (day or year or _MODAL_MAY.search(_get_text_before(text, match.start()))):
            continue
        key = " ".join(part for part in (day and str(int(day)), month, year) if part)
        yield Item("date", *match.span(), match[0], key)


def _find_quantities(text: str) -> Iterator[Item]:
    for match in _QUANTITY.finditer(text):
        if match["count"]:
            yield Item(
                "number", *match.span(), match[0], _normalize_value(match["count"], match["count_scale"])
            )
            continue
        if match["after"]:
            key = f"t+{_normalize_value(match['after'])}"
        elif match["currency"]:
            price = _normalize_value(match["price"], match["price_scale"])
            key = f"{price} {_normalize_unit(match['currency'])}"
        else:
            key = f"{_normalize_value(match['value'], match['scale'])} {_normalize_unit(match['unit'])}"
        yield Item("quantity", *match.span(), match[0], key)


def _find_numbers(text: str) -> Iterator[Item]:
    for match in _PLAIN.finditer(text):
        start, end = match.span()
        if (start and text[start - 1].isalnum()) or _NUMBERED.search(_get_text_before(text, start)):
            continue
        number = re.sub(r"(?:st|nd|rd|th)\Z", "", match[0])
        near = _get_text_before(text, start) + " | " + text[end : end + _NEAR]
        called = _BARE_PHONE.match(number) and _CALLED.search(near)
        yield Item(
            "contact" if called else "number", start, end, match[0], read_word(number.rstrip(".")).stem
        )


def _find_names(text: str) -> Iterator[Item]:
    for match in _NAME.finditer(text):
        start, end = match.span()
        if start and (text[start - 1].isalnum() or text[start - 1] in "'’@"):
            continue
        words = list(TOKEN.finditer(text, start, end))
        named = (word[0].lower() not in _NO_NAME and read_word(word[0]).content for word in words)
        first = next((place for place, is_named in enumerate(named) if is_named), None)
        if first is None:
            continue
        before = _get_text_before(text, start).rstrip(" \t\"'“‘(*_")
        opens = first == 0 and _OPENS.search(before[-2:])
        start = words[first].start()
        end = start + len(_POSSESSIVE.sub("", text[start:end]))
        piece = text[start:end]
        if opens and len(words) - first == 1 and not (piece.isupper() and len(piece) > 1):
            continue
        if build_stems_key(piece):
            yield Item("name", start, end, piece, build_stems_key(piece))


def _get_text_before(text: str, at: int) -> str:
    """Return a few words before a place; to look at all of a long text each time would take too long."""
    return text[max(0, at - _NEAR) : at]


def _normalize_value(number: str, scale: str | None = None) -> str:
    lower = number.lower()
    tens, _, ones = lower.partition("-")
    if lower in _WORDS or tens in _WORDS:
        value = Decimal(_WORDS[tens]) + Decimal(_WORDS.get(ones, "0"))
    else:
        plain = shorten_number(lower)
        value = Decimal(plain if plain.count(".") < 2 else plain.replace(".", ""))
        if value.adjusted() >= MOST_DIGITS:
            return f"{lower} {scale}" if scale else lower
    if scale:
        value *= _SCALES[scale.lower().removesuffix("s")]
    return f"{value.normalize():f}"


def _normalize_unit(unit: str) -> str:
    lower = unit.strip().rstrip(".").lower()
    return _UNITS.get(lower) or _UNITS.get(lower.removesuffix("s")) or lower.removesuffix("s")
