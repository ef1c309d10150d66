"""Run a command's coroutine so that SIGTERM ends it as Ctrl-C does: it is cancelled at an `await`.

An exception raised at any other place could break the event loop's bookkeeping: it leaves tasks that nobody
awaits, and libraries that catch everything go on.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from types import FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")

GRACE_SECONDS = 2.0
"""Time for work that does not await to end."""


def run_until_stopped(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run the coroutine with `asyncio.run` in the main thread; return its result.

    Raises:
        KeyboardInterrupt: SIGTERM or Ctrl-C came, and the coroutine has ended. Also if the signal came a
            second time, or the coroutine awaited nothing for `GRACE_SECONDS`.
    """
    stop = _Stop()
    before = signal.signal(signal.SIGTERM, stop)
    try:
        return asyncio.run(stop.stoppable(coroutine))
    finally:
        signal.signal(signal.SIGTERM, before)
        stop.settle()
        if stop.asked:
            # Any other outcome, such as an error while closing connections, follows from the signal.
            raise KeyboardInterrupt


class _Stop:
    """A handler of SIGTERM, and of the alarm that rings if the coroutine does not stop."""

    def __init__(self) -> None:
        self.asked = False
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._alarm: Any = None

    async def stoppable(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Await the coroutine; the signal cancels it, also if it came before."""
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        if self.asked:
            self._cancel()
        return await coroutine

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal or the alarm."""
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self._cancel()

    def settle(self) -> None:
        """Cancel the alarm, if it was set."""
        if self._alarm is not None:
            _set_alarm(0)
            signal.signal(signal.SIGALRM, self._alarm)

    def _cancel(self) -> None:
        if self._task is None or self._loop is None or self._task.done():
            return
        self._task.cancel()
        self._alarm = signal.signal(signal.SIGALRM, self)
        _set_alarm(GRACE_SECONDS)
        self._loop.call_soon_threadsafe(_set_alarm, 0)  # also wakes a waiting loop


def _set_alarm(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds)
