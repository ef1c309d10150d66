"""What a run's page follows: its state is another one after each change that the page shows."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.viewer.launcher import Launcher
from hallulab.simulator.viewer.offer import Offer
from hallulab.simulator.viewer.results import KnownReport, RunReports
from hallulab.simulator.viewer.runs import ShownRuns
from hallulab.simulator.viewer.runs_page import describe_state
from tests.builders import conversation, scored, unscored
from tests.simulator.viewer.serving import append, serving


def judge_anew(run: RunFolder) -> None:
    append(run.verdicts, [scored("a", 0)])


def hold_anew(run: RunFolder) -> None:
    append(run.conversations, [conversation("f-try2", ["Hi."], persona="f")])


def label(run: RunFolder) -> None:
    run.annotations.write_text("{}\n")


def replace(run: RunFolder) -> None:
    """As a conversation that a person holds, whose journal is written anew after each turn."""
    text = run.conversations.read_text()
    run.conversations.write_text(text)
    os.utime(run.conversations, (1, 1))


@pytest.mark.parametrize("change", [judge_anew, hold_anew, label, replace])
def test_a_change_is_another_state(tmp_path: Path, change: Callable[[RunFolder], None]) -> None:
    run, made = RunFolder(tmp_path / "run"), (RunReports(), Launcher(Offer()))
    failed = conversation("f", [], persona="f", stop_reason="error", error="no answer")
    append(run.conversations, [conversation("a", ["x"]), failed])
    append(run.verdicts, [unscored("a", 0)])
    [shown] = ShownRuns([run.path], tmp_path / "indices").list()
    before = describe_state(shown, *made)
    assert describe_state(shown, *made) == before
    change(run)
    after = describe_state(shown, *made)
    assert after != before
    assert describe_state(shown, *made) == after


@pytest.mark.parametrize(("is_late", "seen"), [(True, '""'), (False, '"{')])
def test_the_first_event_renews_a_page_whose_report_is_late(
    is_late: bool, seen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder(tmp_path / "run")
    append(run.conversations, [conversation("a", ["x"])])
    monkeypatch.setattr(RunReports, "find", lambda *_: KnownReport(None, "Wait.", is_late))
    with serving([run.path], tmp_path / "indices") as served:
        [shown] = served.runs.list()
        assert f" data-seen={seen}" in served.get(f"/runs/{shown.id}")[1]
