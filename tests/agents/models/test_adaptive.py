"""How many requests an endpoint is asked at once is found out from its answers."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import TypeVar

import httpx2
import pytest
from tenacity import wait_fixed

from hallulab.agents.models.adaptive import (
    COOL_DOWN_S,
    MOST,
    START,
    AdaptiveLimit,
    AdaptiveLimits,
    AdaptiveTransport,
    ReachedLimit,
    ResizableGate,
    join_reached,
)
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.prompt import ChatMessage
from hallulab.agents.models.transport import make_network
from tests.kit.busy_endpoint import BusyEndpoint, busy_endpoint
from tests.virtual_time import run_at_once

Result = TypeVar("Result")


class Server:
    """Makes `capacity` answers at once, each in `seconds`; of `most` under way it refuses a further one."""

    def __init__(self, seconds: float, capacity: int = MOST, most: int = MOST, status: int = 429) -> None:
        self.seconds, self.most, self.status = seconds, most, status
        self.places = asyncio.Semaphore(capacity)
        self.under_way = self.refused = self.answered = 0

    async def send(self) -> tuple[httpx2.Response, float]:
        now = asyncio.get_running_loop().time
        began = now()
        if self.under_way >= self.most:
            self.refused += 1
            return httpx2.Response(self.status, headers={"Retry-After": "1"}), 0.0
        self.under_way += 1
        async with self.places:
            await asyncio.sleep(self.seconds)
        self.under_way -= 1
        self.answered += 1
        return httpx2.Response(200), now() - began


async def ask_for(seconds: float, server: Server, askers: int = 2 * MOST) -> tuple[AdaptiveLimit, list[int]]:
    """Ask as much as the limit allows for so many seconds; return the limit, and all that it was."""
    loop, reached = asyncio.get_running_loop(), [START]
    limit = AdaptiveLimit(clock=loop.time, on_change=lambda: reached.append(limit.limit))
    until = loop.time() + seconds

    async def ask() -> None:
        while loop.time() < until:
            await limit.ask("kind", nullcontext(), server.send)

    await asyncio.gather(*(ask() for _ in range(askers)))
    return limit, reached


def test_a_clean_round_doubles_the_limit_up_to_the_most() -> None:
    _, reached = run_at_once(ask_for(8.5, Server(1.0)))
    assert reached == [20, 40, 80, 160, 320, 512, *[512] * (len(reached) - 6)]


def test_a_limit_that_is_not_reached_does_not_grow() -> None:
    assert run_at_once(ask_for(20.0, Server(1.0), askers=START - 1))[1] == [START]


@pytest.mark.parametrize("status", [429, 503])
def test_refusals_cut_it_once_per_cool_down_and_then_it_grows_by_one(status: int) -> None:
    _, reached = run_at_once(ask_for(40.0, Server(1.0, most=50, status=status)))
    assert reached[:18] == [20, 40, 80, 64, 51, 40, *range(41, 52), 40]


@pytest.mark.parametrize("most", [5, 17, 50, 120])
def test_it_stays_between_six_tenths_of_what_is_admitted_and_all_of_it(most: int) -> None:
    limit, _ = run_at_once(ask_for(12 * COOL_DOWN_S, Server(2.0, most=most)))
    assert 0.6 * most <= limit.limit <= most + 1


@pytest.mark.parametrize("capacity", [30, 64, 100])
def test_it_stops_at_the_knee(capacity: int) -> None:
    limit, reached = run_at_once(ask_for(5.0, Server(0.05, capacity)))
    assert capacity <= limit.limit <= 2 * capacity
    assert max(reached) <= 4 * capacity
    assert limit.cuts == 0


def test_a_mixture_of_short_and_long_answers_is_no_knee() -> None:
    async def ask_alternately() -> int:
        loop = asyncio.get_running_loop()
        limit, servers = AdaptiveLimit(clock=loop.time), [Server(0.1), Server(2.0)]

        async def ask() -> None:
            for turn in range(8):
                await limit.ask(turn % 2, nullcontext(), servers[turn % 2].send)

        await asyncio.gather(*(ask() for _ in range(MOST)))
        return limit.limit

    assert run_at_once(ask_alternately()) == MOST


def test_a_request_that_fails_keeps_the_limit() -> None:
    async def fail_once() -> int:
        loop = asyncio.get_running_loop()
        limit, server = AdaptiveLimit(clock=loop.time), Server(1.0)

        async def break_off() -> tuple[httpx2.Response, float]:
            raise httpx2.ReadError("broken")

        with pytest.raises(httpx2.ReadError):
            await limit.ask("kind", nullcontext(), break_off)
        await asyncio.gather(*(limit.ask("kind", nullcontext(), server.send) for _ in range(START)))
        return limit.limit

    assert run_at_once(fail_once()) == START


def test_a_refusal_is_a_try_only_where_the_endpoint_answers_nobody() -> None:
    async def ask_both() -> list[bool]:
        loop = asyncio.get_running_loop()
        limit = AdaptiveLimit(clock=loop.time)
        _, before = await limit.ask("kind", nullcontext(), Server(1.0, most=0).send)
        await limit.ask("kind", nullcontext(), Server(1.0).send)
        _, after = await limit.ask("kind", nullcontext(), Server(1.0, most=0).send)
        await asyncio.sleep(COOL_DOWN_S)
        _, later = await limit.ask("kind", nullcontext(), Server(1.0, most=0).send)
        return [before, after, later]

    assert run_at_once(ask_both()) == [False, True, False]


async def test_places_are_kept_in_order_and_cancelled_ones_are_not_lost() -> None:
    places, order = ResizableGate(1), list[int]()

    async def take(number: int) -> None:
        async with places:
            order.append(number)
            await asyncio.sleep(0)

    async with places:
        tasks = [asyncio.create_task(take(number)) for number in range(5)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        places.resize(2)
        tasks[0].cancel()  # it has been given its place just now
        await asyncio.sleep(0)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [2, 3, 4]
    async with places, places:
        pass


def test_work_has_twice_as_many_places_as_all_limits_together() -> None:
    limits = AdaptiveLimits(["http://a/v1", "http://b/v1"], sharers=2)
    places = limits.make_places()
    assert places.number == 40
    limits.get("http://c/v1/chat/completions")
    assert places.number == 60
    assert limits.get("http://C/v1") is limits.get("http://c/v1/")


def test_what_was_reached_is_told_in_one_line() -> None:
    parts = [[ReachedLimit("http://a/v1", 10, 40, 0)], [ReachedLimit("http://a/v1", 10, 40, 2)]]
    assert [one.describe() for one in join_reached(parts)] == [
        "concurrency at http://a/v1: 20 → 80, cut twice by 429"
    ]
    assert parts[0][0].describe() == "concurrency at http://a/v1: 10 → 40"


async def ask_fast(endpoint: BusyEndpoint, number: int) -> int:
    """Ask so much, with a clock that is 40 times as fast; return the number of answers."""
    limits = AdaptiveLimits(
        [endpoint.url],
        clock=lambda: asyncio.get_running_loop().time() * 40,
        pause=lambda seconds: asyncio.sleep(seconds / 40),
    )
    pool = ModelPool(
        {"default": Endpoint("stub", endpoint.url)},
        concurrency=MOST,
        backoff=wait_fixed(0.02),
        transport=AdaptiveTransport(limits, make_network()),
    )
    session = pool.session("d")
    said = await asyncio.gather(
        *(session.text("s", [ChatMessage("user", f"{n}?")], max_tokens=90) for n in range(number))
    )
    await pool.close()
    return len(said)


def test_no_request_is_lost_at_an_endpoint_that_refuses_too_many() -> None:
    with busy_endpoint(0.05, 30, most=30) as endpoint:
        assert asyncio.run(ask_fast(endpoint, 500)) == endpoint.answered == 500
        assert endpoint.refused > 0
