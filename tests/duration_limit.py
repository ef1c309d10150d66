"""How long a test may take: a new one over two seconds is named, and over four it fails the run.

A test that is marked `slow` may take longer. New is what `tests/durations.md` does not name;
`python -m tests.durations` writes that file. A test's time is that of its own fixtures and its call. What
others share (a fixture of a module or the session) does not count. A test over the limit is run once more and
the quicker time counts: the first use of a library takes seconds. Where the machine is slower than the one of
the file, or busy, the limit grows with it. A run fails only at twice the limit: a test that drives a browser
took up to 1.8 times as long on another machine, beyond what that machine's speed explains.
"""

from __future__ import annotations

from collections.abc import Generator
from time import perf_counter  # a name of our own: tests may replace the clock of `time`
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from tests import durations
from tests.durations import complaint, is_exempt, known_tests, name_of, seconds_of, yardstick

_OWN = pytest.StashKey[float]()
"""Seconds of a test's own fixtures and call."""
_SHARED = pytest.StashKey[float]()
"""Seconds of fixtures that others share, within its set-up."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option with which `tests.durations` measures."""
    parser.addoption("--any-duration", action="store_true", help="a test may take as long as it likes")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Note the time of fixtures that others share, the outermost ones."""
    item = request._pyfuncitem
    if fixturedef.scope == "function":
        return (yield)
    before, started = item.stash.get(_SHARED, 0.0), perf_counter()
    try:
        return (yield)
    finally:
        item.stash[_SHARED] = before + perf_counter() - started


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Note the time of a test's own fixtures."""
    item.stash[_SHARED] = 0.0
    started = perf_counter()
    try:
        return (yield)
    finally:
        item.stash[_OWN] = perf_counter() - started - item.stash[_SHARED]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Note the time of a test, and tell it with the report."""
    started = perf_counter()
    try:
        return (yield)
    finally:
        item.stash[_OWN] += perf_counter() - started
        item.user_properties = [("own_seconds", item.stash[_OWN])]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Fail a new test that takes too long twice."""
    result = yield
    seconds = item.stash.get(_OWN, 0.0)
    if seconds > durations.LIMIT_S and not is_exempt(item.keywords) and not item.config.option.any_duration:
        text = durations.FILE.read_text(encoding="utf-8")
        name = name_of(item.nodeid)
        if name not in known_tests(text):
            item._initrequest()  # type: ignore[attr-defined] # as pytest-rerunfailures does
            runtestprotocol(item, nextitem=nextitem, log=False)
            seconds = min(seconds, item.stash[_OWN])
            limit = durations.LIMIT_S * max(1.0, durations.time_fixed_work() / yardstick(text))
            if seconds > durations.MARGIN * limit:
                _fail(item, complaint(name, seconds, limit))
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name the new tests that took longer than the limit, but did not fail the run."""
    if config.option.any_duration:
        return
    known = known_tests(durations.FILE.read_text(encoding="utf-8"))
    long = [
        (seconds, report.nodeid)
        for report in terminalreporter.getreports("passed")
        if (seconds := seconds_of(report.user_properties) or 0.0) > durations.LIMIT_S
        and not is_exempt(report.keywords)
        and name_of(report.nodeid) not in known
    ]
    if long:
        title = f"took over {durations.LIMIT_S:g} s, and tests/durations.md does not name them"
        terminalreporter.section(title)
        for seconds, nodeid in sorted(long, reverse=True):
            terminalreporter.write_line(f"{seconds:.1f} s  {nodeid}")


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
