"""Tell whether the evidence has an item in another form: no reason may call that absent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from hallulab.detectors.explanations.evidence import EvidenceIndex, Sentence
from hallulab.scenarios.text.items import Item
from hallulab.scenarios.text.numbers import list_word_values, write_number

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_NUMERIC_DATE = re.compile(
    r"(?<!\d)(?:(\d{4})-(\d{1,2})-(\d{1,2})|(\d{1,2})[./](\d{1,2})[./](\d{4}))(?!\d)", re.ASCII
)
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_PARTS = {
    "year": (12, "month"),
    "week": (7, "day"),
    "day": (24, "hour"),
    "hour": (60, "minute"),
    "minute": (60, "second"),
    "kilometre": (1_000, "metre"),
    "kilogram": (1_000, "gram"),
    "gram": (1_000, "mg"),
    "litre": (1_000, "ml"),
}
"""Unit → how many of which smaller one it has."""
_OTHER_WORDS = {
    "12": "dozen",
    "12:00": "noon",
    "15 minute": "quarter",
    "30 minute": "half",
    "14 day": "fortnight",
    "3 month": "quarter",
    "6 month": "half",
    "10 year": "decade",
    "25 percent": "quarter",
    "50 percent": "half",
}
"""Item → a word that may say it."""
_SPELT_OUT = 100
"""Numbers up to it are often spelt out, and words for them are known in English only."""


def is_written(item: Item, evidence: EvidenceIndex, near: Sentence | None) -> bool:
    """Return whether the evidence has, in another form, an item that no sentence has by its key.

    It may be in a name, the number of a list, with a unit that is unknown or of another size, a date in
    digits, a word such as `third` or `noon`, or a number as another language writes it.

    Args:
        near: the evidence sentence that has most of the claim. Where it has no digit, it may have a word for
            a small number.
    """
    if item.key in evidence.words or evidence.has_text(item.text):
        return True
    if _OTHER_WORDS.get(item.key) in evidence.spellings:
        return True
    if item.kind == "quantity" and _has_quantity(item.key, evidence):
        return True
    if item.kind == "date":
        dated = (key for text in evidence.texts for key in _read_dates(text))
        return any(set(item.key.split()) <= set(key.split()) for key in dated)
    if any(evidence.holding(item._replace(kind="date", key=key)) for key in _read_dates(item.text)):
        return True
    if item.text[-2:].lower() in ("st", "nd", "rd", "th") and item.key in map(str, range(1, 11)):
        return _ORDINALS[int(item.key) - 1] in evidence.spellings
    if evidence.language in (None, "en"):
        return False
    values = [value for value in list_word_values(item.text, evidence.language) if value[0].isdigit()]
    spelt_out = near is not None and not re.search(r"\d", near.text)
    return bool(values) and all(
        value in evidence.values or (spelt_out and value.isdigit() and int(value) <= _SPELT_OUT)
        for value in values
    )


def _has_quantity(key: str, evidence: EvidenceIndex) -> bool:
    number, _, unit = key.partition(" ")
    if number in evidence.bare_numbers:
        return True  # behind it is another unit, or the same one in letters that are not known
    if not number.replace(".", "").isdigit():
        return False
    value, same = Decimal(number), []
    if unit in _PARTS:
        many, smaller = _PARTS[unit]
        same.append(f"{write_number(value * many)} {smaller}")
    same += [
        f"{write_number(value / many)} {larger}"
        for larger, (many, smaller) in _PARTS.items()
        if smaller == unit
    ]
    return any(known in sentence.keys for known in same for sentence in evidence.sentences)


def _read_dates(text: str) -> Iterator[str]:
    """Yield the keys of dates in digits; of `03/04/2026` both readings."""
    for match in _NUMERIC_DATE.finditer(text):
        year = match[1] or match[6]
        readings = [(match[3], match[2])] if match[1] else [(match[4], match[5]), (match[5], match[4])]
        for day, month in readings:
            if 1 <= int(month) <= len(_MONTHS):
                yield f"{int(day)} {_MONTHS[int(month) - 1]} {year}"
