"""The page of how long the tests took."""

from __future__ import annotations

from pathlib import Path

from tests.durations import read_durations, render_durations


def test_the_page_names_the_tests_by_the_sum_of_their_cases(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="tests.a.test_x" name="test_quick" time="0.75"/>'
        '<testcase classname="tests.a.test_x" name="test_long[a[b]]" time="0.5"/>'
        '<testcase classname="tests.a.test_x" name="test_long[c]" time="3.25"/></testsuite></testsuites>'
    )
    assert render_durations({"make test": read_durations(report)}).splitlines() == [
        "# How long the tests take",
        "",
        "## make test: 3 cases, 4 s of all processes together",
        "",
        "| s | cases | slowest case, s | test |",
        "|---:|---:|---:|---|",
        "| 3.8 | 2 | 3.2 | `a.test_x.test_long` |",
        "| 0.8 | 1 | 0.8 | `a.test_x.test_quick` |",
    ]
