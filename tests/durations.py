"""The list of tests that take long, and the limit for those that it does not name (`tests/durations.md`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

FILE = Path(__file__).with_name("durations.md")

LIMIT_S = 2.0
"""Seconds that a new test may take, on the machine of the file."""

_EXEMPT = ("slow", "live")
_PIECES = 25
_ROW = re.compile(r"\| [\d.]+ \| `(?P<test>[^`]+)` \|")
_YARDSTICK = re.compile(r"a fixed piece of work takes (?P<seconds>[\d.]+) s")


def known_tests(text: str) -> frozenset[str]:
    """Return the tests that the text of `durations.md` names, without parameters."""
    return frozenset(row["test"] for row in _ROW.finditer(text))


def yardstick(text: str) -> float:
    """Return the seconds of `time_fixed_work` on the machine of `durations.md`."""
    found = _YARDSTICK.search(text)
    if found is None:
        raise ValueError("tests/durations.md does not say how long a fixed piece of work takes")
    return float(found["seconds"])


def time_fixed_work() -> float:
    """Return the seconds that this machine takes now for a fixed piece of work.

    It goes on for some tenths of a second, so that other work on the machine shows, too.
    """
    started = perf_counter()
    for _ in range(_PIECES):
        sum(number * number % 7 for number in range(200_000))
    return (perf_counter() - started) / _PIECES


def name_of(nodeid: str) -> str:
    """Return a test's name without its parameters."""
    return nodeid.partition("[")[0]


def is_exempt(keywords: Iterable[str]) -> bool:
    """Return whether the markers say that a test may take its time."""
    return not set(_EXEMPT).isdisjoint(keywords)


def seconds_of(properties: Iterable[tuple[str, object]]) -> float | None:
    """Return the seconds that a report of a test tells; None where it does not."""
    told: Mapping[str, Any] = dict(properties)
    return told.get("own_seconds")


def complaint(name: str, seconds: float, limit: float) -> str:
    """Say what is wrong with a new test, and what to do."""
    return (
        f"{name} takes {seconds:.1f} s, and a new test may take {limit:.1f} s here. Make it quicker, or mark "
        "it `slow`. If it has a good reason, `python -m tests.write_durations` names it in durations.md."
    )
