"""Blocking work beside the event loop, in threads that do not keep the program from ending."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

Result = TypeVar("Result")


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
