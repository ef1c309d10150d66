"""Read from headers when an endpoint wants to be asked again: in seconds, as a time or as a date."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

PAUSE_HEADERS = ("retry-after-ms", "retry-after")
"""Headers that say when to come again, the finer one first."""

_DELAY = re.compile(
    r"(?:(\d{1,6})\s?h(?:ours?)?\s?)?(?:(\d{1,6})\s?m(?:in(?:ute)?s?)?(?!s)\s?)?"
    r"(?:(\d{1,9}(?:\.\d{1,9})?)\s?(m?s|sec(?:ond)?s?|milliseconds?)?)?",
    re.IGNORECASE,
)
"""A time: `25s`, `1m30s`, `6m0s`, `250ms`, `12 seconds`, or seconds alone."""

_EPOCH_S, _EPOCH_MS = 1e9, 1e12
"""Numbers from which on a time to wait is a date instead: seconds or milliseconds since 1970."""


def read_pause(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return the seconds after which an endpoint wants to be asked again; None if its headers do not say.

    Args:
        headers: `retry-after-ms`, or `Retry-After` in seconds or as a date.
        now: seconds since 1970; None: the system's time.
    """
    if not any(name in headers for name in PAUSE_HEADERS):
        return None
    now = time.time() if now is None else now
    for name, divisor in zip(PAUSE_HEADERS, (1000.0, 1.0), strict=True):
        told = headers.get(name, "").strip().strip('"')
        # A proxy that adds its own header makes a list of both.
        numbers = [read_seconds(part.strip()) for part in told.split(",")]
        if numbers and None not in numbers:
            return max(_until(number, now) / divisor for number in numbers if number is not None)
    told = headers.get("retry-after", "").strip()
    with suppress(ValueError, TypeError, OverflowError, IndexError):
        return max(0.0, parsedate_to_datetime(told).timestamp() - now)
    with suppress(ValueError, OverflowError):
        date = datetime.fromisoformat(told)
        return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now)
    return None


def _until(seconds: float, now: float) -> float:
    """Return the seconds until a date, if they are so many that they are one."""
    if seconds < _EPOCH_S:
        return seconds
    return max(0.0, seconds / (1000.0 if seconds >= _EPOCH_MS else 1.0) - now)


def read_seconds(told: str) -> float | None:
    """Return the seconds of a time in text, such as `1m30s` or `12 seconds`; None: it is none."""
    with suppress(ValueError):
        return seconds if 0 <= (seconds := float(told)) < math.inf else None
    found = _DELAY.fullmatch(told)
    if found is None or not any(found.groups()):
        return None
    hours, minutes, rest, unit = found.groups()
    share = 1000.0 if unit and unit.lower().startswith("m") else 1.0
    return 3600.0 * int(hours or 0) + 60.0 * int(minutes or 0) + float(rest or 0) / share
