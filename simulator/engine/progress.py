"""Show how far a run is: turns simulated, turns judged, and lines above the bars."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from hallulab.agents.models.adaptive import ReachedLimit
from hallulab.agents.progress import bars
from hallulab.simulator.engine.executors import ConversationDone, Event, TurnDone, VerdictDone


class ProgressBars:
    """An `Observer` that draws bars. Totals shrink when conversations end early; a total of 0 has no bar.

    Args:
        max_turns: turns a conversation can have at most.
        detectors: verdicts per turn.
        quiet: draw nothing.
    """

    def __init__(self, max_turns: int, detectors: int, quiet: bool) -> None:
        self._max_turns = max_turns
        self._detectors = detectors
        self._quiet = quiet
        self._open_turns = 0
        self._expected_verdicts = 0
        self._given = 0
        self._bars = bars(quiet)
        self._turns = self._bars.add_task("simulating turns", total=0, visible=False)
        self._verdicts = self._bars.add_task("judging turns   ", total=0, visible=False)
        self._turns_done = 0
        self._turns_under_way = 0

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def expect(self, conversations: int, verdicts: int) -> None:
        """Expect so many more conversations and verdicts."""
        self._open_turns += conversations * self._max_turns
        self._expected_verdicts += verdicts
        self._draw()

    def update(self, event: Event) -> None:
        """Count a simulated turn, a conversation that ended, or a judged turn."""
        match event:
            case TurnDone():
                self._turns_done += 1
                self._turns_under_way += 1
                self._open_turns -= 1
            case ConversationDone(conversation, lacking):
                # Its verdicts come now, and the turns that it did not use never come.
                self._open_turns = max(0, self._open_turns - (self._max_turns - len(conversation.turns)))
                self._turns_under_way -= len(conversation.turns)
                self._expected_verdicts += len(lacking)
            case VerdictDone():
                self._given += 1
        self._draw()

    def show_limits(self, reached: Sequence[ReachedLimit]) -> None:
        """Print a line for each endpoint: how many requests it was asked at once in the end."""
        for one in reached:
            self.show(one.describe())

    def show(self, line: str) -> None:
        """Print a line above the bars."""
        if not self._quiet:
            self._bars.console.print(line, markup=False, highlight=False)

    def _draw(self) -> None:
        turns = self._turns_done + self._open_turns
        unjudged = self._open_turns + self._turns_under_way
        verdicts = self._expected_verdicts + unjudged * self._detectors
        for task, total, done in (
            (self._turns, turns, self._turns_done),
            (self._verdicts, max(verdicts, self._given), self._given),
        ):
            self._bars.update(task, total=total, completed=done, visible=total > 0)
