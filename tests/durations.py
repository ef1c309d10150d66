"""How long a test may take: a new one over two seconds fails the run, unless it is marked `slow`.

New is what `tests/durations.md` does not name; `python -m benchmarks.test_durations` writes that file. A
test's time is that of its own fixtures and its call. What others share (a fixture of a module or the session)
does not count. A test over the limit is run once more and the quicker time counts: the first use of a library
takes seconds. Where the machine is slower than the one of the file, the limit grows with it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

FILE = Path(__file__).with_name("durations.md")

LIMIT_S = 2.0
"""Seconds that a new test may take, on the machine of the file."""

_EXEMPT = ("slow", "live")
_OWN = pytest.StashKey[float]()
"""Seconds of a test's own fixtures and call."""
_SHARED = pytest.StashKey[float]()
"""Seconds of fixtures that others share, within its set-up."""
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
    """Return the seconds that this machine takes now for a fixed piece of work, the best of five."""
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        sum(number * number % 7 for number in range(200_000))
        best = min(best, time.perf_counter() - started)
    return best


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
        "it `slow`. If it has a good reason, `python -m benchmarks.test_durations` names it in durations.md."
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option with which `benchmarks.test_durations` measures."""
    parser.addoption("--any-duration", action="store_true", help="a test may take as long as it likes")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Note the time of fixtures that others share, the outermost ones."""
    item = request._pyfuncitem
    if fixturedef.scope == "function":
        return (yield)
    before, started = item.stash.get(_SHARED, 0.0), time.perf_counter()
    try:
        return (yield)
    finally:
        item.stash[_SHARED] = before + time.perf_counter() - started


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Note the time of a test's own fixtures."""
    item.stash[_SHARED] = 0.0
    started = time.perf_counter()
    try:
        return (yield)
    finally:
        item.stash[_OWN] = time.perf_counter() - started - item.stash[_SHARED]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Note the time of a test, and tell it with the report."""
    started = time.perf_counter()
    try:
        return (yield)
    finally:
        item.stash[_OWN] += time.perf_counter() - started
        item.user_properties = [("own_seconds", item.stash[_OWN])]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Fail a new test that takes too long twice."""
    result = yield
    seconds = item.stash.get(_OWN, 0.0)
    if seconds > LIMIT_S and not is_exempt(item.keywords) and not item.config.option.any_duration:
        text = FILE.read_text(encoding="utf-8")
        name = name_of(item.nodeid)
        if name not in known_tests(text):
            item._initrequest()  # type: ignore[attr-defined] # as pytest-rerunfailures does
            runtestprotocol(item, nextitem=nextitem, log=False)
            seconds = min(seconds, item.stash[_OWN])
            limit = LIMIT_S * max(1.0, time_fixed_work() / yardstick(text))
            if seconds > limit:
                _fail(item, complaint(name, seconds, limit))
    return result


def _fail(item: pytest.Item, why: str) -> None:
    report = pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords={},
        outcome="failed",
        longrepr=why,
        when="call",
    )
    item.ihook.pytest_runtest_logreport(report=report)
