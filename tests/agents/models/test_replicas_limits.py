"""What an endpoint is asked at most."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.agents.models.replicas import WINDOW_S, Limits, RateLimit, most_tokens


class Time:
    """A clock that pauses move on."""

    def __init__(self) -> None:
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    async def pause(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


def begun(limits: Limits, requests: list[int]) -> list[tuple[float, int]]:
    """When requests of so many tokens begin, all of which want to begin now."""
    time, found = Time(), list[tuple[float, int]]()
    allowance = RateLimit(limits, time.clock, time.pause)

    async def ask(tokens: int) -> None:
        async with allowance.spending(tokens):
            found.append((time.now, tokens))

    async def ask_all() -> None:
        await asyncio.gather(*map(ask, requests))

    asyncio.run(ask_all())
    return found


def test_what_does_not_fit_into_the_minute_waits_for_the_next() -> None:
    assert begun(Limits(tokens_per_minute=100), [60, 40, 10, 90]) == [(0, 60), (0, 40), (60, 10), (60, 90)]


def test_one_that_is_too_large_for_any_minute_has_one_for_itself() -> None:
    assert begun(Limits(tokens_per_minute=100), [10, 500, 10]) == [(0, 10), (60, 500), (120, 10)]


def test_without_limits_all_begin_at_once() -> None:
    assert begun(Limits(), [1_000_000] * 3) == [(0, 1_000_000)] * 3


@given(st.lists(st.integers(1, 120), max_size=30))
def test_no_minute_has_more_and_none_overtakes(requests: list[int]) -> None:
    found = begun(Limits(tokens_per_minute=100), requests)
    assert [tokens for _, tokens in found] == requests
    for start, _ in found:
        within = [min(tokens, 100) for at, tokens in found if start <= at < start + WINDOW_S]
        assert sum(within) <= 100


async def test_so_many_are_under_way_at_once_and_the_next_begins_when_one_ends() -> None:
    allowance, under_way, most = RateLimit(Limits(requests=2)), 0, 0

    async def ask() -> None:
        nonlocal under_way, most
        async with allowance.spending(1):
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0)
            under_way -= 1

    await asyncio.gather(*(ask() for _ in range(7)))
    assert (under_way, most) == (0, 2)


async def test_a_cancelled_request_gives_its_place_back() -> None:
    allowance = RateLimit(Limits(requests=1))
    with pytest.raises(RuntimeError):
        async with allowance.spending(1):
            raise RuntimeError
    async with asyncio.timeout(1), allowance.spending(1):
        pass


def test_processes_share_the_limits() -> None:
    whole = Limits(requests=5, tokens_per_minute=1001)
    assert whole.shared_by(2) == Limits(requests=2, tokens_per_minute=500)
    assert whole.shared_by(8).requests == 1
    assert Limits().shared_by(3) == Limits()


def test_the_tokens_of_a_request_are_at_least_those_that_it_takes() -> None:
    assert most_tokens(b"x" * 300, 50) == 150
