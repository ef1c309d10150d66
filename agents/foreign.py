"""Somebody else's code in a run: whatever it raises is a failure of it, and not the run's end."""

from __future__ import annotations

import asyncio

from scenarios.errors import ReplayMiss


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
