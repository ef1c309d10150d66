from __future__ import annotations

import threading

import pytest

from hallulab.agents.concurrency import run_side_by_side
from hallulab.agents.machine.cache import Listener, StepProgress
from hallulab.agents.progress import shown_progress


def news(step: str, done: int) -> StepProgress:
    return StepProgress(step=step, done=done, total=2, unit="wheels")


def test_where_nobody_looks_each_step_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress() as show:
        for progress in (news("downloading", 0), news("downloading", 1), news("unpacking", 0)):
            show(progress)
    assert capsys.readouterr().err == "downloading …\nunpacking …\n"


def test_where_nobody_looks_a_long_step_says_what_is_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hallulab.agents.progress.LINE_EVERY", 0.0)
    with shown_progress() as show:
        show(news("downloading", 1))
    lines = [" ".join(line.split()) for line in capsys.readouterr().err.splitlines()]
    assert lines == ["downloading …", *["downloading 50% 0:00:00 left 0:00:00"] * 2]


def test_on_a_terminal_each_step_is_a_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with shown_progress() as show:
        for progress in (news("downloading", 1), news("unpacking", 1)):
            show(progress)
    printed = capsys.readouterr().err
    assert "downloading" in printed
    assert "100%" in printed
    assert " 50%" in printed


def test_quiet_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress(quiet=True) as show:
        show(news("downloading", 0))
    assert capsys.readouterr().err == ""


def test_steps_of_two_threads_are_announced_once_each(capsys: pytest.CaptureFixture[str]) -> None:
    turn = threading.Barrier(2, timeout=120)

    def work(step: str, show: Listener) -> None:
        for done in range(3):
            turn.wait()
            show(news(step, done))

    with shown_progress() as show:
        run_side_by_side(lambda: work("environment", show), lambda: work("weights", show))
    assert sorted(capsys.readouterr().err.splitlines()) == ["environment …", "weights …"]
