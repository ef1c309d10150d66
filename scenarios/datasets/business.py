"""Structured records of local businesses as passages: profile, hours, attributes, one per review.

RAGTruth's Data2txt sources are such records (of Yelp). A record is flattened as EvidenceChain does
("Method"): profile, hours, attributes and review chunks. Field names and values become words that a text
would use, because detectors compare words: `RestaurantsTakeOut: true` becomes `restaurants take out: yes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from hallulab.scenarios.transcript import Frozen

_CLOCK = re.compile(r"(\d{1,2}):(\d{1,2})")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WORDS = {True: "yes", False: "no", None: "not stated"}


class Review(Frozen):
    """A customer's review."""

    review_stars: float | None
    """Stars given, 1 to 5."""
    review_date: str | None
    """The date as in the record."""
    review_text: str
    """The review itself."""


class Business(Frozen):
    """A record; None: not stated."""

    name: str | None
    """Its name."""
    address: str | None
    """Street and number."""
    city: str | None
    """City."""
    state: str | None
    """State."""
    categories: str | None
    """Kinds of business, separated by commas."""
    hours: dict[str, str | None] | None
    """Weekday → opening hours, such as `17:30-23:0`."""
    attributes: dict[str, Any] | None
    """Features: booleans, texts, or mappings of these."""
    business_stars: float | None
    """Mean rating, 1 to 5."""
    review_info: tuple[Review, ...] = Field(default=())
    """Some reviews."""


def render_business_chunks(business: Business) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of each non-empty chunk: `profile`, `hours`, `attributes`, `review-1` …"""
    yield "profile", _render_lines(business.model_dump(include=set(_PROFILE)), _PROFILE)
    if business.hours:
        yield "hours", "\n".join(f"{day}: {_format_hours(hours)}" for day, hours in business.hours.items())
    if business.attributes:
        yield "attributes", _render_lines(business.attributes)
    for number, review in enumerate(business.review_info, start=1):
        about = {"review stars": review.review_stars, "review date": review.review_date}
        yield f"review-{number}", f"{_render_lines(about)}\n{review.review_text}".strip()


_PROFILE = {
    "name": "name",
    "address": "address",
    "city": "city",
    "state": "state",
    "categories": "categories",
    "business_stars": "stars",
}


def _render_lines(values: Mapping[str, Any], names: Mapping[str, str] | None = None) -> str:
    said = names or {key: _name(key) for key in values}
    return "\n".join(f"{name}: {_render_value(values[key])}" for key, name in said.items())


def _name(key: str) -> str:
    return key if key == "WiFi" else _HUMP.sub(" ", key).lower()


def _render_value(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return _WORDS[value]
    if isinstance(value, Mapping):
        return ", ".join(f"{_name(str(key))} {_render_value(item)}" for key, item in value.items())
    if isinstance(value, float) and value.is_integer():
        return f"{value:.1f} ({value:.0f})"
    return str(value)


def _format_hours(hours: str | None) -> str:
    """Format `17:30-23:0` as `17:30-23:00 (5:30 PM - 11 PM)`, because texts write both."""
    if hours is None:
        return _WORDS[None]
    twelve = _CLOCK.sub(_format_twelve_hours, hours).replace("-", " - ")
    padded = _CLOCK.sub(lambda clock: f"{clock[1]}:{int(clock[2]):02}", hours)
    return padded if twelve == hours else f"{padded} ({twelve})"


def _format_twelve_hours(clock: re.Match[str]) -> str:
    hour, minute = int(clock[1]) % 24, int(clock[2])
    half = "PM" if hour >= 12 else "AM"
    return f"{hour % 12 or 12}{f':{minute:02}' if minute else ''} {half}"
