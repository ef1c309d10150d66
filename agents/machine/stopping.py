"""Running a command's coroutine so that SIGTERM ends it as Ctrl-C does: by cancelling it, at an `await`.

An exception raised wherever the signal happens to come would tear the event loop's own bookkeeping: tasks
are left that nobody awaits, and libraries that catch everything go on.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from types import FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")

GRACE_SECONDS = 2.0
"""What work that does not await gets to come to an end."""


def run_until_stopped(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """What `asyncio.run` gives, in the main thread.

    Raises:
        KeyboardInterrupt: SIGTERM or Ctrl-C came, and the coroutine has ended; or it came a second time, or
            the coroutine awaited nothing for `GRACE_SECONDS`.
    """
    stop = _Stop()
    before = signal.signal(signal.SIGTERM, stop)
    try:
        return asyncio.run(stop.stoppable(coroutine))
    finally:
        signal.signal(signal.SIGTERM, before)
        stop.settle()
        if stop.asked:
            # Whatever came of it, such as an error while connections were closed, came of the signal.
            raise KeyboardInterrupt


class _Stop:
    """A handler of SIGTERM, and of the alarm that goes off when nothing came of it."""

    def __init__(self) -> None:
        self.asked = False
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._alarm: Any = None

    async def stoppable(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """The coroutine, which the signal cancels, also one that came before."""
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        if self.asked:
            self._cancel()
        return await coroutine

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """The signal came."""
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self._cancel()

    def settle(self) -> None:
        """Take the alarm back, if it was set."""
        if self._alarm is not None:
            _set_alarm(0)
            signal.signal(signal.SIGALRM, self._alarm)

    def _cancel(self) -> None:
        if self._task is None or self._loop is None or self._task.done():
            return
        self._task.cancel()
        self._alarm = signal.signal(signal.SIGALRM, self)
        _set_alarm(GRACE_SECONDS)
        self._loop.call_soon_threadsafe(_set_alarm, 0)  # also wakes a loop that waits


def _set_alarm(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds)
