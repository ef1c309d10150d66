"""The reports of runs for the viewer: made in the background, and anew when a run has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.viewer import results
from hallulab.simulator.viewer.results import RunReports
from hallulab.simulator.viewer.runs import ShownRun, ShownRuns
from tests.builders import conversation, scored
from tests.simulator.viewer.serving import append


@pytest.fixture
def run(tmp_path: Path) -> ShownRun:
    folder = RunFolder(tmp_path / "run")
    append(folder.conversations, [conversation("a", ["x"])])
    append(folder.verdicts, [scored("a", 0, [(0, 1)])])
    [shown] = ShownRuns([folder.path], tmp_path / "indices").list()
    shown.updater.update()
    return shown


def count_conversations(found: results.KnownReport) -> object:
    assert found.document is not None
    return next(number for number, noun in found.document.facts if noun.startswith("conversation"))


def test_a_page_does_not_wait_for_a_slow_report(run: ShownRun, monkeypatch: pytest.MonkeyPatch) -> None:
    made = RunReports()
    monkeypatch.setattr(results, "WAIT_S", 0.01)
    with made._working:  # so that the report cannot be made yet
        found = made.find(run)
        assert (found.document, found.reason, found.is_late) == (None, results._MAKING, True)
        assert made.is_making(run)
    monkeypatch.setattr(results, "WAIT_S", 60)
    assert count_conversations(made.find(run)) == 1
    assert not made.find(run).is_late
    assert not made.is_making(run)


def test_the_report_before_is_shown_until_the_next_one_is_made(
    run: ShownRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = RunReports()
    monkeypatch.setattr(results, "WAIT_S", 60)
    assert count_conversations(made.find(run)) == 1
    append(run.folder.conversations, [conversation("b", ["x"], persona="ravi")])
    monkeypatch.setattr(results, "WAIT_S", 0.01)
    with made._working:
        assert count_conversations(made.find(run)) == 1
    monkeypatch.setattr(results, "WAIT_S", 60)
    assert count_conversations(made.find(run)) == 2


def test_a_report_is_made_once(run: ShownRun, monkeypatch: pytest.MonkeyPatch) -> None:
    made = RunReports()
    monkeypatch.setattr(results, "WAIT_S", 60)
    assert made.find(run) is made.find(run)


def test_a_run_of_too_many_conversations_is_told(run: ShownRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MOST", 0)
    found = RunReports().find(run)
    assert found.document is None
    assert found.reason is not None
    assert f"`hallulab report {run.folder.path}`" in found.reason
