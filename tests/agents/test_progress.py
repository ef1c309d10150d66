from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from rich.console import Console
from rich.progress import MofNCompleteColumn, TextColumn

from hallulab.agents.concurrency import run_side_by_side
from hallulab.agents.machine.cache import Listener, StepProgress
from hallulab.agents.progress import LINE_EVERY, LoggedProgress, TimeLeft, bars, shown_progress

Err = Callable[[], list[str]]


@pytest.fixture
def err(capsys: pytest.CaptureFixture[str]) -> Err:
    """What was printed on standard error since the last look, white space between words as one space."""
    return lambda: [" ".join(line.split()) for line in capsys.readouterr().err.splitlines()]


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(clock: Clock) -> LoggedProgress:
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeLeft())
    return LoggedProgress(*columns, console=Console(stderr=True), get_time=clock)


def test_a_log_gets_the_unfinished_now_and_then_and_all_at_the_end(
    log: LoggedProgress, clock: Clock, err: Err
) -> None:
    with log:
        turns, verdicts = log.add_task("turns", total=4), log.add_task("verdicts", total=8)
        clock.now = LINE_EVERY - 1
        log.advance(turns)
        assert err() == []
        clock.now = LINE_EVERY
        log.update(verdicts, completed=2)
        assert err() == ["turns 1/4 0:01:30", "verdicts 2/8 0:01:30"]
        clock.now = 2 * LINE_EVERY - 1
        log.update(turns, completed=4)
        assert err() == []
        clock.now = 2 * LINE_EVERY
        log.update(verdicts, completed=6)
        assert err() == ["verdicts 6/8 0:00:20"]
        log.update(verdicts, completed=8)
    assert err() == ["turns 4/4 0:00:00", "verdicts 8/8 0:00:00"]


def test_a_log_gets_nothing_about_what_takes_no_time(log: LoggedProgress, err: Err) -> None:
    with log:
        log.update(log.add_task("turns", total=1), completed=1)
    assert err() == []


def test_the_time_left_outlives_a_change_of_the_total(log: LoggedProgress, clock: Clock) -> None:
    log.add_task("turns", total=10)
    (task,) = log.tasks
    assert TimeLeft().render(task).plain == "-:--:--"
    clock.now = 20.0
    log.update(task.id, total=10, completed=4)
    log.update(task.id, total=6, completed=4)
    assert TimeLeft().render(task).plain == "0:00:10"


def test_what_has_no_total_has_no_time_left(log: LoggedProgress, clock: Clock) -> None:
    log.add_task("bytes", total=None)
    (task,) = log.tasks
    clock.now = 20.0
    log.update(task.id, completed=4)
    assert TimeLeft().render(task).plain == "-:--:--"


def test_quiet_is_quiet(err: Err, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hallulab.agents.progress.LINE_EVERY", 0.0)
    with bars(quiet=True) as shown:
        shown.advance(shown.add_task("lexical", total=2))
    with shown_progress(quiet=True) as show:
        show(news("downloading", 0))
    assert err() == []


def news(step: str, done: int) -> StepProgress:
    return StepProgress(step=step, done=done, total=2, unit="wheels")


def test_where_nobody_looks_each_step_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress() as show:
        for progress in (news("downloading", 0), news("downloading", 1), news("unpacking", 0)):
            show(progress)
    assert capsys.readouterr().err == "downloading …\nunpacking …\n"


def test_where_nobody_looks_a_long_step_says_what_is_left(err: Err, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hallulab.agents.progress.LINE_EVERY", 0.0)
    with shown_progress() as show:
        show(news("downloading", 1))
    assert err() == ["downloading …", *["downloading 50% 0:00:00 left 0:00:00"] * 2]


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


def test_steps_of_two_threads_are_announced_once_each(capsys: pytest.CaptureFixture[str]) -> None:
    turn = threading.Barrier(2, timeout=120)

    def work(step: str, show: Listener) -> None:
        for done in range(3):
            turn.wait()
            show(news(step, done))

    with shown_progress() as show:
        run_side_by_side(lambda: work("environment", show), lambda: work("weights", show))
    assert sorted(capsys.readouterr().err.splitlines()) == ["environment …", "weights …"]
