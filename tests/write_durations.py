"""Writes how long the tests take: `python -m tests.write_durations [--to FILE] [ARGUMENTS OF PYTEST]`.

It runs the tests of `make test` and writes `tests/durations.md`: the 50 slowest, and the total by folder. A
test that the file does not name may take two seconds (`tests/duration_limit.py`). So whoever makes a test
that takes longer shows it by a changed file.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.durations import FILE, name_of, seconds_of, time_fixed_work

SLOWEST = 50


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
    folders: Counter[str] = Counter()
    cases: Counter[str] = Counter()
    for test, taken in seconds.items():
        folder = str(Path(test.partition("::")[0]).parent)
        folders[folder] += sum(taken)  # type: ignore[assignment] # a Counter may count seconds
        cases[folder] += len(taken)
    lines = [
        "# How long the tests take",
        "",
        "Written by `python -m tests.write_durations`. Seconds are those of a test's own fixtures and",
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
        *(f"| {folder} | {cases[folder]:,} | {total:.1f} |" for folder, total in folders.most_common()),
        f"| all | {cases.total():,} | {sum(folders.values()):.1f} |",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
