"""Progress bars of a run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rich.text import Text

from hallulab.simulator.engine.executors import ConversationDone, TurnDone, VerdictDone
from hallulab.simulator.engine.progress import ProgressBars
from hallulab.simulator.records.journal_lines import VerdictKey
from tests.builders import conversation, scored

Err = Callable[[], list[str]]


@pytest.fixture
def err(capsys: pytest.CaptureFixture[str]) -> Err:
    """The lines of standard error, without the spaces between columns."""
    return lambda: [" ".join(line.split()) for line in capsys.readouterr().err.splitlines()]


def lacking(id: str, number: int) -> tuple[VerdictKey, ...]:
    return tuple(VerdictKey(id, turn, "d", "1") for turn in range(number))


def hold(quiet: bool) -> None:
    """Two conversations of at most two turns, of which one ends after the first, with one detector."""
    with ProgressBars(max_turns=2, detectors=1, quiet=quiet) as shown:
        shown.expect(2, 0)
        for id, replies in (("a", ["x"]), ("b", ["y", "z"])):
            held = conversation(id, replies)
            for turn in held.turns:
                shown.update(TurnDone("a", turn))
            shown.update(ConversationDone(held, lacking(id, len(replies))))
            for turn in held.turns:
                shown.update(VerdictDone(scored(id, turn.index)))


def test_a_run_without_a_terminal_says_how_far_it_is(err: Err, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hallulab.agents.progress.LINE_EVERY", 0.0)
    hold(quiet=False)
    lines = err()
    assert "simulating turns 1/4 0:00:00" in lines
    assert lines[-2:] == ["simulating turns 3/3 0:00:00", "judging turns 3/3 0:00:00"]


def test_turns_of_a_conversation_under_way_are_still_to_be_judged(
    err: Err, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hallulab.agents.progress.LINE_EVERY", 0.0)
    with ProgressBars(max_turns=2, detectors=3, quiet=False) as shown:
        shown.expect(2, 1)
        shown.update(TurnDone("a", conversation("a", ["x"]).turns[0]))
        assert err()[-1] == "judging turns 0/13 0:00:00"
        shown.update(ConversationDone(conversation("a", ["x"]), lacking("a", 3)))
        assert err()[-1] == "judging turns 0/10 0:00:00"


def test_a_quiet_run_draws_nothing(err: Err, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hallulab.agents.progress.LINE_EVERY", 0.0)
    hold(quiet=True)
    assert err() == []


def test_a_terminal_gets_bars(err: Err, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    hold(quiet=False)
    turns, verdicts = [Text.from_ansi(line).plain.rstrip() for line in err() if "3/3" in line]
    assert turns == f"simulating turns {'━' * 40} 3/3 0:00:00"
    assert verdicts == f"judging turns {'━' * 40} 3/3 0:00:00"


def test_a_run_that_only_judges_has_no_line_of_simulated_turns(
    err: Err, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hallulab.agents.progress.LINE_EVERY", 0.0)
    with ProgressBars(max_turns=2, detectors=1, quiet=False) as shown:
        shown.expect(0, 1)
        shown.update(VerdictDone(scored("a", 0)))
    assert set(err()) == {"judging turns 0/1 0:00:00", "judging turns 1/1 0:00:00"}
