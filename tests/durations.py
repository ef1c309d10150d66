"""How long the tests took: `python -m tests.durations NAME=REPORT... > tests/durations.md` writes the page.

A report is one that `pytest --junit-xml` writes; `make test-slow` leaves its own in `.pytest_cache`. The page
is to be read. No test is held to its seconds, which are another machine's, or a busy one's.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

SLOWEST = 25
"""Tests that the page names of each report."""


def read_durations(report: Path) -> dict[str, list[float]]:
    """Return test → seconds of each of its cases, with the fixtures that the case was the first to need."""
    seconds: dict[str, list[float]] = defaultdict(list)
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}.{str(case.get('name')).partition('[')[0]}"
        seconds[name].append(float(case.get("time", 0.0)))
    return dict(seconds)


def render_durations(reports: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Return the page: of each report the slowest tests by the sum of their cases, and the seconds of all.

    Args:
        reports: name of the report → test → seconds of each of its cases.
    """
    return "\n".join(["# How long the tests take", "", *_render_parts(reports)])


def _render_parts(reports: Mapping[str, Mapping[str, Sequence[float]]]) -> Iterator[str]:
    for name, seconds in reports.items():
        cases = [one for taken in seconds.values() for one in taken]
        yield f"## {name}: {len(cases):,} cases, {sum(cases):,.0f} s of all processes together"
        yield from ("", "| s | cases | slowest case, s | test |", "|---:|---:|---:|---|")
        for test in sorted(seconds, key=lambda test: -sum(seconds[test]))[:SLOWEST]:
            taken = seconds[test]
            yield f"| {sum(taken):.1f} | {len(taken)} | {max(taken):.1f} | `{test.removeprefix('tests.')}` |"
        yield ""


if __name__ == "__main__":
    named = (argument.partition("=") for argument in sys.argv[1:])
    sys.stdout.write(render_durations({name: read_durations(Path(report)) for name, _, report in named}))
