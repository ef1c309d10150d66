"""A new test that takes too long fails the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import durations
from tests.durations import complaint, format_durations, known_tests, name_of, yardstick

pytest_plugins = ["pytester"]

SECONDS = {"tests/a/test_x.py::test_long": [0.5, 3.25], "tests/b/test_y.py::test_short": [0.25]}


def test_the_file_names_tests_by_their_slowest_case_and_folders_by_their_sum() -> None:
    text = format_durations(SECONDS, 0.0123)
    assert text.splitlines()[7:] == [
        "| slowest case, s | test | cases |",
        "|---|---|---|",
        "| 3.25 | `tests/a/test_x.py::test_long` | 2 |",
        "| 0.25 | `tests/b/test_y.py::test_short` | 1 |",
        "",
        "| folder | cases | s |",
        "|---|---|---|",
        "| tests/a | 2 | 3.8 |",
        "| tests/b | 1 | 0.2 |",
        "| all | 3 | 4.0 |",
    ]


def test_what_is_written_is_read_again() -> None:
    text = format_durations(SECONDS, 0.0123)
    assert known_tests(text) == frozenset(SECONDS)
    assert yardstick(text) == 0.0123


def test_the_file_of_the_repository_can_be_read() -> None:
    text = durations.FILE.read_text(encoding="utf-8")
    assert len(known_tests(text)) == 50
    assert yardstick(text) > 0


def test_a_case_has_the_name_of_its_test() -> None:
    assert name_of("tests/a.py::test_x[a[b]]") == "tests/a.py::test_x"


PLUGINS = ("-p", "tests.duration_limit", "-p", "no:xdist", "-p", "no:asyncio")

SLEEPS = """
import time
import pytest

@pytest.fixture(scope="module")
def shared():
    time.sleep(0.1)

@pytest.fixture
def own():
    time.sleep(0.1)

def test_quick(): pass
def test_shares(shared): pass
def test_long(): time.sleep(0.1)
def test_known(): time.sleep(0.1)
def test_own_fixture(own): pass
@pytest.mark.slow
def test_marked(): time.sleep(0.1)
@pytest.mark.parametrize("value", [1, 2])
def test_case(value): time.sleep(0.1 * (value == 2))
times = []
def test_long_at_first():
    times.append(1)
    if len(times) == 1: time.sleep(0.1)
"""


@pytest.fixture
def limited(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.Pytester:
    """A folder of tests in which a new one may take a twentieth of a second."""
    known = tmp_path / "durations.md"
    known.write_text(format_durations({"test_it.py::test_known": [0.3]}, fixed=100.0))
    monkeypatch.setattr(durations, "FILE", known)
    monkeypatch.setattr(durations, "LIMIT_S", 0.05)
    monkeypatch.setattr(durations, "MARGIN", 1.0)
    pytester.makeini("[pytest]\nmarkers = slow")
    pytester.makepyfile(test_it=SLEEPS)
    return pytester


def test_only_new_unmarked_tests_that_take_long_twice_fail(limited: pytest.Pytester) -> None:
    result = limited.inline_run(*PLUGINS, "test_it.py")
    passed, _, failed = result.listoutcomes()
    assert {report.nodeid for report in failed} == {
        "test_it.py::test_long",
        "test_it.py::test_own_fixture",
        "test_it.py::test_case[2]",
    }
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert len(passed) == 9
    assert complaint("test_it.py::test_long", 0.1, 0.05) in {str(report.longrepr) for report in failed}


def test_whoever_measures_may_let_them(limited: pytest.Pytester) -> None:
    result = limited.inline_run(*PLUGINS, "--any-duration", "test_it.py")
    assert result.ret == pytest.ExitCode.OK


def test_on_a_slower_machine_the_limit_is_longer(
    limited: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durations, "time_fixed_work", lambda: 400.0)
    result = limited.inline_run(*PLUGINS, "test_it.py")
    assert result.ret == pytest.ExitCode.OK


def test_a_test_within_the_margin_is_named_and_fails_nothing(
    limited: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durations, "MARGIN", 20.0)
    result = limited.runpytest_inprocess(*PLUGINS, "test_it.py")
    assert result.ret == pytest.ExitCode.OK
    text = result.stdout.str()
    section = text[text.index("took over 0.05 s, and tests/durations.md does not name them") :]
    assert {line.split()[-1] for line in section.splitlines() if " s  test_it.py" in line} == {
        "test_it.py::test_long",
        "test_it.py::test_own_fixture",
        "test_it.py::test_case[2]",
        "test_it.py::test_long_at_first",
    }
