"""The order of the rows of a conversation: their turns or times, checked, else their order in the file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Literal, NamedTuple

from hallulab.scenarios.chats.values import FormatError, GroupedPart

LATEST = 1e11
"""Seconds after which a number of a time counts smaller units: until the year 5138."""
_DOTTED = re.compile(r"(\d{1,9})\.(\d{1,6})")
_ZONE = re.compile(r" ?(?:UTC|GMT)$")
_FIX = (
    "Give each a number or a time such as 2026-10-01T09:30:00, or delete the column: then rows stand in "
    "their order"
)


class RowPlace(NamedTuple):
    """Where a row stands in its conversation."""

    by: Literal["turn", "time"] | None
    """The column that says it; None: none does."""
    given: str
    at: float | None
    """The place; None: the cell cannot be read."""
    clock: str
    """Values that may be compared: numbers, times with a zone, or times without one."""


def read_row_place(turn: str | None, time: str | None) -> RowPlace:
    """Return where a row stands; its turn says it before its time does.

    A time without a zone is read as if in UTC: all of a table are then in their order, on every machine.

    >>> read_row_place("1.10", None).at > read_row_place("1.2", None).at
    True
    """
    if turn is None and time is None:
        return RowPlace(None, "", None, "")
    given = (turn or time or "").strip()
    by: Literal["turn", "time"] = "time" if turn is None else "turn"
    if by == "turn" and (dotted := _DOTTED.fullmatch(given)):  # `1.10` stands behind `1.2`
        return RowPlace(by, given, int(dotted[1]) + int(dotted[2]) / 1e6, "numbers")
    with suppress(ValueError):
        if isfinite(number := float(given)):
            # Of a time, thousandths to billionths of seconds: browsers and servers count differently.
            while by == "time" and abs(number) > LATEST:
                number /= 1000
            return RowPlace(by, given, number, "numbers")
    with suppress(ValueError, OverflowError):
        when = datetime.fromisoformat(_ZONE.sub("+00:00", given))
        zoned = when.tzinfo is not None
        clock = "times with a time zone" if zoned else "times without a time zone"
        return RowPlace(by, given, (when if zoned else when.replace(tzinfo=UTC)).timestamp(), clock)
    return RowPlace(by, given, None, "")


def read_timestamp(value: Any) -> float | None:
    """Return a time in seconds: of a number of seconds to billionths, or of ISO 8601; None for anything else.

    >>> read_timestamp("1790843400000000000") == read_timestamp(1790843400000) == 1790843400
    True
    """
    return read_row_place(None, str(value)).at


def check_row_order(session: str, parts: Sequence[GroupedPart]) -> bool:
    """Check that the order of the rows of a conversation is known.

    Args:
        session: its name.
        parts: its rows, sorted; each has its `place` in the file and its `order`.

    Returns:
        True if all have different turns or times, or none has any.

    Raises:
        FormatError: some have none, or one that cannot be read or compared; or some are equal, and the file
            runs from new to old.
    """
    orders = [RowPlace(*part.value["order"]) for part in parts]
    if len(parts) < 2 or all(order.by is None for order in orders):
        return True
    first = orders[0]
    for order, part in zip(orders, parts, strict=True):
        place = part.value["place"]
        if order.by is None:
            raise FormatError(
                f"other rows of the conversation {session[:40]!r} have a turn or time, and this one has "
                f"none. {_FIX}.",
                place,
            )
        if order.at is None:
            raise FormatError(
                f"{order.given[:40]!r} is no {order.by} by which rows are ordered. {_FIX}.", place
            )
        if (order.by, order.clock) != (first.by, first.clock):
            raise FormatError(
                f"rows of the conversation {session[:40]!r} have {first.by}s and {order.by}s that cannot be "
                f"compared: {first.given[:40]!r} and {order.given[:40]!r}. {_FIX}.",
                place,
            )
    if len({order.at for order in orders}) == len(orders):
        return True
    if orders[0].at != orders[-1].at and parts[0].line > parts[-1].line:
        raise FormatError(
            f"rows of the conversation {session[:40]!r} run from new to old, and some have the same "
            f"{first.by}, so which came first is not known. Sort them from old to new.",
            parts[0].value["place"],
        )
    return False
