"""The list of tests that take long, and the limit for those that it does not name (`tests/durations.md`).

`python -m tests.durations [--to FILE] [ARGUMENTS OF PYTEST]` runs the tests of `make test` and writes the
list: the 50 slowest, and the total by folder. A test that the file does not name may take two seconds
(`tests/duration_limit.py`, which fails the run at four). So whoever makes a test that takes longer
shows it by a changed file.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

FILE = Path(__file__).with_name("durations.md")

SLOWEST = 50
"""Tests that the file names."""

LIMIT_S = 2.0
"""Seconds that a new test may take, on the machine of the file."""

MARGIN = 2.0
"""How many times the limit a test takes before it fails the run."""

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
        "it `slow`. If it has a good reason, `python -m tests.durations` names it in durations.md."
    )


@dataclass
class Collector:
    """A plug-in of pytest that keeps each test's time."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    """Test without its parameters → seconds of each of its cases."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the time of a test that has ended."""
        taken = seconds_of(report.user_properties)
        if report.when == "call" and taken is not None:
            self.seconds.setdefault(name_of(report.nodeid), []).append(taken)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests and write the file; return pytest's exit code, and write nothing where it is not 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--to", type=Path, default=FILE, metavar="FILE", help="default: tests/durations.md")
    given, of_pytest = parser.parse_known_args(arguments)
    fixed = time_fixed_work()
    collector = Collector()
    code = int(pytest.main(["-q", "--any-duration", *of_pytest], plugins=[collector]))
    if code == 0:
        given.to.write_text(format_durations(collector.seconds, fixed), encoding="utf-8")
    return code


def format_durations(seconds: Mapping[str, Sequence[float]], fixed: float) -> str:
    """Return the file's text.

    Args:
        seconds: test → seconds of each of its cases.
        fixed: seconds of `time_fixed_work`.
    """
    slowest = sorted(seconds, key=lambda test: -max(seconds[test]))[:SLOWEST]
    by_folder: dict[str, list[float]] = defaultdict(list)
    for test, taken in seconds.items():
        by_folder[str(Path(test.partition("::")[0]).parent)] += taken
    folders = sorted(by_folder.items(), key=lambda item: -sum(item[1]))
    cases = [one for _, taken in folders for one in taken]
    lines = [
        "# How long the tests take",
        "",
        "Written by `python -m tests.durations`. Seconds are those of a test's own fixtures and",
        "its call, beside another process that tests. What a module's tests share does not count. On the",
        f"machine of this file a fixed piece of work takes {fixed:.4f} s. A test that is neither named here",
        "nor marked `slow` may take two seconds (`tests/duration_limit.py`).",
        "",
        "| slowest case, s | test | cases |",
        "|---|---|---|",
        *(f"| {max(seconds[test]):.2f} | `{test}` | {len(seconds[test])} |" for test in slowest),
        "",
        "| folder | cases | s |",
        "|---|---|---|",
        *(f"| {folder} | {len(taken):,} | {sum(taken):.1f} |" for folder, taken in folders),
        f"| all | {len(cases):,} | {sum(cases):.1f} |",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
