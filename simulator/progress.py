"""Progress bars on stderr: turns simulated, verdicts given, time left. Silent where nobody looks."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from scenarios.transcript import Conversation, Turn, Verdict


def bars(quiet: bool) -> Progress:
    """Bars on stderr with the time left; nothing when `quiet` or when stderr is no terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=quiet or not sys.stderr.isatty(),
    )


class ProgressBars:
    """An `Observer` that draws. Totals shrink when conversations end early.

    Args:
        max_turns: turns a conversation can have.
        detectors: verdicts a turn will get.
        quiet: draw nothing.
    """

    def __init__(self, max_turns: int, detectors: int, quiet: bool) -> None:
        self._max_turns = max_turns
        self._detectors = detectors
        self._open_turns = 0
        self._expected_verdicts = 0
        self._given = 0
        self._bars = bars(quiet)
        self._turns = self._bars.add_task("simulating turns", total=0)
        self._verdicts = self._bars.add_task("judging turns   ", total=0)
        self._turns_done = 0

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def expect(self, conversations: int, verdicts: int) -> None:
        """So many more conversations and verdicts are to come."""
        self._open_turns += conversations * self._max_turns
        self._expected_verdicts += verdicts
        self._draw()

    def turn_done(self, turn: Turn) -> None:
        """A turn was simulated."""
        self._turns_done += 1
        self._open_turns -= 1
        self._draw()

    def conversation_done(self, conversation: Conversation, verdicts: int) -> None:
        """It ended: turns it did not use are no longer expected, its verdicts are."""
        self._open_turns = max(0, self._open_turns - (self._max_turns - len(conversation.turns)))
        self._expected_verdicts += verdicts
        self._draw()

    def verdict_done(self, verdict: Verdict) -> None:
        """A turn was judged."""
        self._given += 1
        self._draw()

    def _draw(self) -> None:
        turns = self._turns_done + self._open_turns
        verdicts = self._expected_verdicts + self._open_turns * self._detectors
        self._bars.update(self._turns, total=turns, completed=self._turns_done)
        self._bars.update(self._verdicts, total=max(verdicts, self._given), completed=self._given)
