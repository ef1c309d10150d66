"""A coroutine's result, from code that awaits nothing."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import threading

import pytest

from hallulab.verbs import wait_for


async def doubled(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


async def failing() -> None:
    raise SystemExit(3)


def test_it_gives_what_the_coroutine_returns() -> None:
    assert wait_for(doubled(3)) == 6


async def test_it_works_where_an_event_loop_runs() -> None:
    assert wait_for(doubled(3)) == 6


def test_what_the_coroutine_raises_is_raised() -> None:
    with pytest.raises(SystemExit):
        wait_for(failing())


def test_context_variables_are_the_callers() -> None:
    said = contextvars.ContextVar("said", default="nothing")
    said.set("something")

    async def read() -> str:
        return said.get()

    assert wait_for(read()) == "something"


def test_ctrl_c_cancels_the_coroutine_and_waits_for_its_end() -> None:
    steps: list[str] = []

    async def endless() -> None:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            steps.append("cleaned up")

    # What a shell starts in the background ignores Ctrl-C, these tests, too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            wait_for(endless())
    finally:
        signal.signal(signal.SIGINT, before)
    assert steps == ["cleaned up"]
