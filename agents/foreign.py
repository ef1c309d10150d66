"""Other people's code in a run: what it raises counts as its failure and does not end the run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from hallulab.scenarios.errors import ReplayMiss

Result = TypeVar("Result")


def require_failure(error: BaseException) -> None:
    """Return if `error` is a failure of the code that raised it; raise if it must end the run.

    Other people's bots and detectors may raise `SystemExit`, `GeneratorExit`, `KeyboardInterrupt` and
    cancellations, too. A stopped run cancels its tasks (`hallulab.agents.machine.stopping`); that tells the
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
