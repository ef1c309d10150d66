"""Run a coroutine from code that cannot await it: notebooks run their cells in an event loop already."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

Result = TypeVar("Result")


def result_of(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run the coroutine in an event loop in its own thread, wait, and return its result or raise its error.

    Raises:
        KeyboardInterrupt: Ctrl-C came, or the kernel was interrupted. The coroutine was cancelled and has
            ended. A second interrupt does not wait for that.
    """
    result: Future[Result] = Future()
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def stoppable() -> Result:
        task = asyncio.current_task()
        assert task is not None
        begun.set_result((asyncio.get_running_loop(), task))
        return await coroutine

    def work() -> None:
        try:
            result.set_result(asyncio.run(stoppable()))
        except BaseException as raised:  # noqa: BLE001 - whatever it is, it is raised where it is waited for
            result.set_exception(raised)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    thread.start()
    try:
        return result.result()
    except KeyboardInterrupt:
        if not result.done():
            loop, task = begun.result()
            with suppress(RuntimeError):  # the loop was closed just now
                loop.call_soon_threadsafe(task.cancel)
            thread.join()
        raise
