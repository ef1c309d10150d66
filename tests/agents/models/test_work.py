"""When nothing but models' answers is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hallulab.agents.models.work import WorkUnderWay, waiting_for_model
from tests.virtual_time import at_once


@asynccontextmanager
async def asking(work: WorkUnderWay) -> AsyncIterator[asyncio.Event]:
    """A piece of work that asks a model; the event is the answer."""
    answer = asyncio.Event()

    async def piece() -> None:
        with work.piece():
            with waiting_for_model():
                await answer.wait()
            await asyncio.sleep(0.05)  # does something else

    task = asyncio.create_task(piece())
    await asyncio.sleep(0)
    yield answer
    answer.set()
    await task


async def all_wait(work: WorkUnderWay) -> bool:
    """Whether `until_all_wait` returns soon."""
    try:
        async with asyncio.timeout(0.03):
            await work.until_all_wait()
    except TimeoutError:
        return False
    return True


@at_once
async def test_without_work_nothing_is_waited_for() -> None:
    assert await all_wait(WorkUnderWay())


@at_once
async def test_pieces_that_have_asked_all_wait() -> None:
    work = WorkUnderWay()
    async with asking(work), asking(work):
        assert await all_wait(work)


@at_once
async def test_a_piece_that_does_something_else_is_waited_for() -> None:
    work = WorkUnderWay()
    async with asking(work), asking(work) as answer:
        answer.set()
        await asyncio.sleep(0)
        assert not await all_wait(work)


@at_once
async def test_a_piece_that_ended_is_not_waited_for() -> None:
    work = WorkUnderWay()
    async with asking(work) as answer:
        answer.set()
    assert await all_wait(work)


@at_once
async def test_a_piece_waits_as_long_as_one_of_its_questions_is_open() -> None:
    work = WorkUnderWay()
    with work.piece(), waiting_for_model():
        with waiting_for_model():
            assert await all_wait(work)
        assert await all_wait(work)


@at_once
async def test_a_question_outside_any_piece_is_none() -> None:
    with waiting_for_model():
        assert await all_wait(WorkUnderWay())


@at_once
async def test_a_piece_that_never_goes_on_is_waited_for_only_so_long() -> None:
    work = WorkUnderWay(patience_s=0.01)
    with work.piece():
        assert await all_wait(work)


@pytest.mark.parametrize("turns", [1, 10])
@at_once
async def test_a_piece_that_follows_after_a_few_turns_is_waited_for(turns: int) -> None:
    work = WorkUnderWay()
    begun = False

    async def follow() -> None:
        nonlocal begun
        for _ in range(turns):
            await asyncio.sleep(0)
        with work.piece(), waiting_for_model():
            begun = True
            await asyncio.sleep(0.02)

    async with asking(work):
        follower = asyncio.create_task(follow())
        await work.until_all_wait()
        assert begun
        await follower
