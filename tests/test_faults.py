"""What `python -m tests.faults` shows, in its short form."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import at_faulty_endpoint, compared
from tests.kit.kill_points import kill_and_resume
from tests.kit.recorded_run import make_workspace, record_run


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with make_workspace() as folder:
        yield folder


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, int]:
    return at_faulty_endpoint(folder, repeats=3)


def test_every_failure_is_recorded_none_is_clean_and_no_verdict_differs(found: dict[str, int]) -> None:
    wrong = ("without_record", "without_reason", "counted_clean", "different_verdicts")
    assert {name: found[name] for name in wrong} == dict.fromkeys(wrong, 0)
    assert found["failed_conversations"] > 0
    assert found["failed_verdicts"] > 0
    assert found["scored_verdicts"] > 0


def test_a_healthy_endpoint_makes_the_run_whole(found: dict[str, int]) -> None:
    assert found["different_after_resuming"] == 0


def test_the_key_that_every_fault_repeats_is_nowhere(found: dict[str, int], folder: Path) -> None:
    assert found["files_with_the_key"] == 0
    assert "[key]" in (folder / "faulty" / "conversations.jsonl").read_text()


@pytest.fixture
def whole(found: dict[str, int], folder: Path, tmp_path: Path) -> Path:
    """A copy of the run without faults."""
    return Path(shutil.copytree(folder / "whole", tmp_path / "whole"))


@pytest.mark.parametrize(
    ("change", "counted"),
    [
        ({}, {}),
        ({"flagged": None}, {"different_verdicts": 1}),
        ({"score": 0.125}, {"different_verdicts": 1}),
        ({"outcome": "failed"}, {"failed": 1, "without_reason": 1, "counted_clean": 2}),
        ({"turn": 7}, {"without_record": 2, "counted_clean": 1, "different_verdicts": 1}),
    ],
)
def test_what_is_wrong_is_counted(
    folder: Path, whole: Path, change: dict[str, object], counted: dict[str, int]
) -> None:
    path = whole / "verdicts.jsonl"
    first, *others = path.read_text().splitlines()
    assert json.loads(first)["outcome"] == "scored"
    path.write_text("\n".join([json.dumps(json.loads(first) | change), *others]) + "\n")
    wrong = compared(whole, folder / "whole", repeats=3)
    names = ("failed", "without_record", "without_reason", "counted_clean", "different_verdicts")
    assert {name: wrong[name] for name in names} == dict.fromkeys(names, 0) | counted


@pytest.mark.slow
@pytest.mark.timeout(1800)  # two hundred runs, one after the other: four minutes beside other work, or more
def test_killed_at_a_hundred_points_a_run_goes_on_without_loss_or_double(folder: Path) -> None:
    found = kill_and_resume(record_run(folder), folder / "killed", 100)
    assert (found.points, found.lost, found.doubled) == (100, 0, 0)
    assert found.unfinished > 50
    assert found.torn > 20
