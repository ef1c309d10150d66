from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from rich.console import Console
from rich.progress import MofNCompleteColumn, TextColumn

from hallulab.agents.concurrency import run_side_by_side
from hallulab.agents.machine.cache import Listener, StepProgress
from hallulab.agents.progress import LINE_EVERY, LoggedProgress, TimeLeft, bars, showing, shown_progress

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


@pytest.fixture(autouse=True)
def beat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have logs look at the clock when a test says so, and not by themselves."""
    monkeypatch.setattr("hallulab.agents.progress.BEAT", 1000.0)
    monkeypatch.setattr("hallulab.agents.progress.FIRST_LINE_AFTER", 1.5)


@pytest.fixture
def log(clock: Clock) -> LoggedProgress:
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeLeft())
    return LoggedProgress(*columns, console=Console(stderr=True), get_time=clock)


def test_a_log_gets_the_unfinished_now_and_then_and_all_at_the_end(
    log: LoggedProgress, clock: Clock, err: Err
) -> None:
    with log:
        turns, verdicts = log.add_task("turns", total=4), log.add_task("verdicts", total=8)
        clock.now = 1
        log.advance(turns)
        assert err() == []
        clock.now = 2
        log.update(verdicts, completed=2)
        assert err() == ["turns 1/4", "verdicts 2/8"]
        clock.now = 1 + LINE_EVERY
        log.update(turns, completed=2)
        assert err() == []
        clock.now = 2 + LINE_EVERY
        log.update(verdicts, completed=6)
        assert err() == ["turns 2/4 left 0:01:02", "verdicts 6/8 left 0:00:15"]
        log.update(turns, completed=4)
        log.update(verdicts, completed=8)
    assert err() == ["turns 4/4", "verdicts 8/8"]


def test_a_log_gets_the_first_line_of_each_phase_within_two_seconds_though_nothing_is_completed(
    log: LoggedProgress, clock: Clock, err: Err
) -> None:
    with log:
        log.add_task("turns", total=4)
        clock.now = 1.4
        log.print_when_due()
        assert err() == []
        clock.now = 1.5
        log.print_when_due()
        assert err() == ["turns 0/4"]
        clock.now = 10
        log.add_task("verdicts", total=8)
        clock.now = 11.5
        log.print_when_due()
        assert err() == ["turns 0/4", "verdicts 0/8"]
        clock.now = 11.5 + LINE_EVERY - 0.5
        log.print_when_due()
        assert err() == []
        clock.now = 11.5 + LINE_EVERY
        log.print_when_due()
        assert err() == ["turns 0/4", "verdicts 0/8"]


def test_a_log_looks_at_the_clock_by_itself(
    clock: Clock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hallulab.agents.progress.BEAT", 0.001)
    printed = threading.Event()
    shown = LoggedProgress(TextColumn("{task.description}"), console=Console(stderr=True), get_time=clock)
    monkeypatch.setattr(shown, "print_when_due", printed.set)
    with shown:
        assert printed.wait(60)


def test_a_log_gets_nothing_about_what_takes_no_time(log: LoggedProgress, err: Err) -> None:
    with log:
        log.update(log.add_task("turns", total=1), completed=1)
    assert err() == []


def left(log: LoggedProgress) -> str:
    return TimeLeft().render(log.tasks[0]).plain


def test_the_start_does_not_count_for_the_time_left(log: LoggedProgress, clock: Clock) -> None:
    task = log.add_task("turns", total=5)
    assert left(log) == ""
    clock.now = 600.0
    log.advance(task)
    assert left(log) == ""
    clock.now = 610.0
    log.advance(task)
    assert left(log) == "left 0:00:30"
    clock.now = 630.0
    log.update(task, completed=4)
    assert left(log) == "left 0:00:10"
    log.update(task, completed=5)
    assert left(log) == ""


@pytest.mark.parametrize(
    ("seconds", "range"),
    [(0.2, "20 to 60 s"), (1.0, "1 to 5 min"), (10.0, "16 to 50 min"), (60.0, "1 to 5 h")],
)
def test_the_time_left_is_a_range_until_a_tenth_is_done(
    log: LoggedProgress, clock: Clock, seconds: float, range: str
) -> None:
    task = log.add_task("turns", total=102)
    log.advance(task)
    clock.now = seconds
    log.advance(task)
    assert left(log) == f"left {range}"
    clock.now = 10.0 * seconds
    log.update(task, completed=11)
    assert left(log) == f"left {timedelta(seconds=91 * seconds)}".split(".")[0]


def test_the_time_left_outlives_a_change_of_the_total(log: LoggedProgress, clock: Clock) -> None:
    task = log.add_task("turns", total=10)
    log.advance(task)
    clock.now = 15.0
    log.update(task, total=10, completed=4)
    log.update(task, total=6, completed=4)
    assert left(log) == "left 0:00:10"


def test_what_has_no_total_has_no_time_left(log: LoggedProgress, clock: Clock) -> None:
    task = log.add_task("bytes", total=None)
    log.update(task, completed=2)
    clock.now = 20.0
    log.update(task, completed=4)
    assert left(log) == ""


def test_a_phase_without_a_count_says_how_long_it_takes(err: Err, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hallulab.agents.progress.FIRST_LINE_AFTER", 0.0)
    with showing("writing the report"):
        pass
    assert err() == []
    with bars(quiet=False) as shown:
        task = shown.add_task("writing the report", total=None)
        shown.update(task, completed=0)
    assert err() == ["writing the report 0:00:00"] * 2


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
    assert err() == ["downloading …", *["downloading 50% 0:00:00"] * 2]


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
