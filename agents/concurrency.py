"""Run coroutines and threads so that SIGTERM and other people's failures do not stop a run.

SIGTERM ends a command's coroutine as Ctrl-C does: it is cancelled at an `await`. An exception raised at any
other place could break the event loop's bookkeeping: it leaves tasks that nobody awaits, and libraries that
catch everything go on.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TypeVar, cast

from hallulab.scenarios.errors import HallulabError, OperationalError, ReplayMiss, get_first_error

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


@contextmanager
def saying_if_stopped(sentence: str, say: Callable[[str], object]) -> Iterator[None]:
    """Say a sentence, such as the command that goes on, if the block is interrupted or fails."""
    try:
        yield
    except (asyncio.CancelledError, KeyboardInterrupt, OperationalError):
        say(sentence)
        raise


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


def require_failure(error: BaseException) -> None:
    """Return if `error` is a failure of the code that raised it; raise if it must end the run.

    Other people's bots and detectors may raise `SystemExit`, `GeneratorExit`, `KeyboardInterrupt` and
    cancellations, too. A stopped run cancels its tasks (`hallulab.agents.concurrency`); that tells the
    two apart.

    Raises:
        ReplayMiss: `error` is one.
        asyncio.CancelledError: the task is being cancelled, whatever `error` is.
    """
    if isinstance(error, ReplayMiss):
        raise error
    if _is_stopping():
        raise error if isinstance(error, asyncio.CancelledError | GeneratorExit) else asyncio.CancelledError()


async def call_untrusted(function: Callable[[], Awaitable[Result]]) -> Result:
    """Await other people's code in its own task; return or raise what it returns or raises.

    When an awaited future raises `GeneratorExit`, Python does not raise it in the waiting coroutines but
    closes them. Only the outermost coroutine of a task sees the exception, so the code gets its own task.
    """

    async def told() -> tuple[Result, None] | tuple[None, BaseException]:
        try:
            return await function(), None
        except BaseException as error:
            if _is_stopping() and isinstance(error, asyncio.CancelledError | GeneratorExit):
                raise
            return None, error

    result, error = await asyncio.create_task(told())
    if error is not None:
        raise error
    return cast(Result, result)


def require_running() -> None:
    """Raise CancelledError if the run is being stopped, even if other people's code ignored that.

    A run that is being stopped gives no results and can start no tasks.
    """
    if _is_stopping():
        raise asyncio.CancelledError


def _is_stopping() -> bool:
    """Return whether the current task is being cancelled.

    Also True without a current task: then Python is closing an abandoned coroutine.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return True
    return task is not None and task.cancelling() > 0


async def run_in_daemon_thread(work: Callable[[], Result]) -> Result:
    """Run `work` in its own daemon thread; return or raise what it returns or raises.

    `asyncio.to_thread` does not serve: the interpreter waits for its threads at exit. An installation or a
    download would hold the exit up for half an hour.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def settle(result: Result | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # there is a result if there is no error

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - handed on, whatever it is
            failure = error
        with suppress(RuntimeError):  # the loop has ended: nobody waits any more
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, daemon=True).start()
    return await future


async def gather_results(works: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Run coroutines side by side, and return what they give, in their order. If one fails, the others end.

    Raises:
        HallulabError, ReplayMiss, OSError: the first of them that failed.
    """
    try:
        async with asyncio.TaskGroup() as tasks:
            under_way = [tasks.create_task(work) for work in works]
    except* (HallulabError, ReplayMiss, OSError) as group:
        raise get_first_error(group) from group
    return [task.result() for task in under_way]


def run_side_by_side(*works: Callable[[], Any]) -> list[Any]:
    """Do all works at once, each in a thread; return what they returned, in their order.

    The threads are daemons: an interrupted command does not wait for them. So what they start must not
    outlive this process (`hallulab.agents.machine.supervised`).

    Raises:
        BaseException: the error of the first work that has one; the others are ended before.
    """
    results: list[Any] = [None] * len(works)
    errors: list[BaseException | None] = [None] * len(works)

    def do(number: int) -> None:
        try:
            results[number] = works[number]()
        except BaseException as error:  # noqa: BLE001 (raised again below)
            errors[number] = error

    threads = [threading.Thread(target=do, args=(number,), daemon=True) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        if error is not None:
            raise error
    return results
