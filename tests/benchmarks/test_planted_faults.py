"""The list of planted faults fits the code, and what catches one is found."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from coverage import CoverageData

from benchmarks.planted_faults import (
    Fault,
    apply_fault,
    catch,
    find_lines,
    find_reaching_tests,
    read_faults,
    run_tests,
)
from tests.places import ROOT

FAULTS = read_faults()

CODE = "def count(values):\n    total = 0\n    for value in values:\n        total += 1\n    return total\n"
FAULT = Fault(
    file="rooms/counting.py",
    line=4,
    operator="NumberReplacer",
    before=["        total += 1"],
    after=["        total += 2"],
)


def test_there_are_forty_eight_a_floor() -> None:
    floors = [fault.file.partition("/")[0] for fault in FAULTS]
    assert {floor: floors.count(floor) for floor in floors} == dict.fromkeys(
        ("scenarios", "agents", "detectors", "chatbots", "simulator"), 8
    )


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.file}:{fault.line}")
def test_a_fault_is_other_code(fault: Fault) -> None:
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    assert ast.dump(ast.parse(apply_fault(fault, text))) != ast.dump(ast.parse(text))


def test_of_equal_lines_the_nearest_are_changed() -> None:
    text = "a\nb\n\na\nb\n\na\n"
    fault = FAULT.model_copy(update={"line": 5, "before": ["a"], "after": ["c"]})
    assert find_lines(fault, text) == range(3, 4)
    assert apply_fault(fault, text) == "a\nb\n\nc\nb\n\na\n"


def test_lines_that_are_not_there_are_told() -> None:
    with pytest.raises(ValueError, match=r"counting\.py has no lines \['        total \+= 1'\]"):
        find_lines(FAULT, "a\n")


@pytest.fixture
def data(tmp_path: Path) -> CoverageData:
    """Coverage of a file: one test reaches line 2, an import line 1; of another file an import alone."""
    data = CoverageData(str(tmp_path / "coverage"))
    data.set_context("")
    data.add_lines({"/a.py": [1], "/b.py": [1]})
    data.set_context("tests/test_a.py::test_one|run")
    data.add_lines({"/a.py": [2]})
    return data


@pytest.mark.parametrize(
    ("file", "lines", "tests"),
    [
        ("/a.py", range(1, 2), {"tests/test_a.py::test_one"}),
        ("/a.py", range(1), {"tests/test_a.py::test_one"}),
        ("/b.py", range(1), set()),
        ("/c.py", range(1), set()),
    ],
)
def test_tests_that_reach_a_line_are_found(
    data: CoverageData, file: str, lines: range, tests: set[str]
) -> None:
    assert find_reaching_tests(data, Path(file), lines) == tests


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one function and two tests of it, which run in one process."""
    monkeypatch.setattr("benchmarks.planted_faults.PROCESSES", "0")
    tests = "from rooms.counting import count\n\n\ndef test_two():\n    assert count('ab') == 2\n\n\n"
    tests += "def test_none():\n    assert count('') == 0\n"
    for name, text in {
        "rooms/counting.py": CODE,
        "tests/rooms/test_counting.py": tests,
        "pytest.ini": "[pytest]\nmarkers = live\n    slow\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


TWO, NONE = (f"tests/rooms/test_counting.py::{name}" for name in ("test_two", "test_none"))


def test_a_fault_is_caught_by_a_test_that_fails_and_taken_away_again(tree: Path) -> None:
    assert catch(FAULT, tree, {TWO, NONE}, "default") == f"FAILED {TWO}"
    assert (tree / FAULT.file).read_text() == CODE


def test_a_fault_that_no_test_fails_with_is_not_caught(tree: Path) -> None:
    assert catch(FAULT, tree, {NONE}, "default") is None


def test_a_test_that_is_not_there_is_told(tree: Path) -> None:
    with pytest.raises(RuntimeError, match="test_three"):
        run_tests(tree, {"tests/rooms/test_counting.py::test_three"}, "default")
