"""What tests have worker processes do first."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any
from unittest.mock import patch


def die_in(place: str, mark: Path | None = None, only: str = "", after_s: float = 0.0) -> None:
    """Have this process end by SIGKILL where it first calls a function.

    Args:
        place: the function as a module of `simulator` sees it, such as `engine.executors.converse`.
        mark: a file that is made then; only the process that makes it dies. None: each one dies.
        only: it must stand in the function's arguments.
        after_s: seconds in which what the process said before may arrive.
    """

    async def killing(*arguments: Any) -> Any:
        if only in repr(arguments) and (mark is None or _made(mark)):
            await asyncio.sleep(after_s)
            os.kill(os.getpid(), signal.SIGKILL)
        return await usual(*arguments)

    patcher = patch(f"hallulab.simulator.{place}", killing)
    usual, _ = patcher.get_original()
    patcher.start()


def leave_once(mark: Path) -> None:
    """End this process before its worker can begin, if it is the first that makes the mark."""
    if _made(mark):
        os._exit(3)


def _made(mark: Path) -> bool:
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
