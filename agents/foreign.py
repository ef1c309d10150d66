"""Somebody else's code in a run: whatever it raises is a failure of it, and not the run's end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from scenarios.errors import ReplayMiss

Result = TypeVar("Result")


def require_failure(error: BaseException) -> None:
    """Return where `error` is a failure of the code that it came out of; else raise what ends the run.

    Bots and detectors of others raise `SystemExit`, `GeneratorExit`, `KeyboardInterrupt` and cancellations of
    their own, too. When a run is stopped, its tasks are cancelled (`agents.machine.stopping`), and by that
    the two are told apart.

    Raises:
        ReplayMiss: `error` is one.
        asyncio.CancelledError: the task is being cancelled, whatever was raised at that.
    """
    if isinstance(error, ReplayMiss):
        raise error
    if _is_stopping():
        raise error if isinstance(error, asyncio.CancelledError | GeneratorExit) else asyncio.CancelledError()


async def as_called(function: Callable[[], Awaitable[Result]]) -> Result:
    """What somebody else's code gives or raises, awaited in a task of its own.

    Where a future that is awaited raises `GeneratorExit`, Python closes every coroutine on the way in place
    of raising it in them, and only the outermost one of a task can say what that was.
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
    """Raise CancelledError where the run is being stopped, though somebody else's code made nothing of it.

    What comes of a run that is being stopped is no result, and no task can be started in it any more.
    """
    if _is_stopping():
        raise asyncio.CancelledError


def _is_stopping() -> bool:
    """Whether the task that runs is being cancelled, or none runs and an abandoned coroutine is closed."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return True
    return task is not None and task.cancelling() > 0
