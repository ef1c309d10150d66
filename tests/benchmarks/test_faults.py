"""What `python -m benchmarks.faults` shows, in its short form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.faults import KEY, at_faulty_endpoint, bench, compared, recorded
from tests.faulty_endpoint import FAULTS
from tests.kill_points import Found, kill_and_resume


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with bench() as folder:
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


def test_the_endpoint_fails_in_every_way(found: dict[str, int]) -> None:
    assert found["kinds_of_faults"] == len(FAULTS)


def test_what_is_wrong_is_counted(found: dict[str, int], folder: Path) -> None:
    """The comparison would see a failure that is counted clean, a changed verdict, and a lost one."""
    faulty = folder / "faulty"
    ...


def test_killed_at_a_hundred_points_a_run_goes_on_without_loss_or_double(folder: Path) -> None:
    found = kill_and_resume(recorded(folder), folder / "killed", 100)
    assert (found.points, found.lost, found.doubled) == (100, 0, 0)
    assert found.unfinished > 90
    assert found.torn > 20
