"""Time that passes at once, for tests of what waits: on a busy machine, too, they take no second."""

from __future__ import annotations

import asyncio
import functools
import selectors
import time
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar
from unittest.mock import patch

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class _Jumping(selectors.DefaultSelector):
    """Waits no time, but says that it has passed."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += timeout or 0.0
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    """Has the time of its selector, and no threads, which would take time of another kind."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        done = self.create_future()
        done.set_result(func(*args))
        return done


def run_at_once(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run on a loop whose time passes at once, as that of `time.perf_counter` does; await nothing outside."""
    loop = _Loop()
    with patch.object(time, "perf_counter", loop.time):
        try:
            return loop.run_until_complete(coroutine)
        finally:
            loop.close()


def at_once(test: Callable[Parameters, Coroutine[Any, Any, Result]]) -> Callable[Parameters, Result]:
    """Make a test of it that `run_at_once` runs."""

    @functools.wraps(test)
    def run(*given: Parameters.args, **named: Parameters.kwargs) -> Result:
        return run_at_once(test(*given, **named))

    return run
