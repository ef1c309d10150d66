"""Several endpoints for one model: who is asked, who rests, and who comes back."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.models.errors import ModelError
from agents.models.replicas import Replicas, staying
from tests.scripted import ScriptedTransport, scripted_pool

URLS = ("http://a/v1", "http://b/v1", "http://c/v1")


class Hosts(httpx2.AsyncBaseTransport):
    """Answers with the next status of a host, 200 when there is none left."""

    def __init__(self, **statuses: list[int]) -> None:
        self.statuses = statuses
        self.asked: list[str] = []
        self.headers: dict[str, str] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(str(request.url))
        await asyncio.sleep(0)
        left = self.statuses.get(request.url.host, [])
        status = left.pop(0) if left else 200
        if status == 0:
            raise httpx2.ConnectError("refused", request=request)
        return httpx2.Response(status, headers=self.headers if status == 429 else {}, request=request)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def made(**statuses: list[int]) -> tuple[Replicas, Hosts, Clock]:
    hosts, clock = Hosts(**statuses), Clock()
    return Replicas(URLS, hosts, clock), hosts, clock


async def ask(replicas: Replicas, url: str = "http://a/v1/chat/completions", method: str = "POST") -> int:
    response = await replicas.handle_async_request(httpx2.Request(method, url, content=b"{}"))
    return response.status_code


async def test_a_conversation_stays_and_new_ones_go_where_the_fewest_are() -> None:
    replicas, hosts, _ = made()

    async def conversation() -> None:
        with staying():
            for _ in range(3):
                await ask(replicas)

    await asyncio.gather(*(conversation() for _ in range(6)))
    assert Counter(url.split("/")[2] for url in hosts.asked) == {"a": 6, "b": 6, "c": 6}
    assert [one.stays for one in replicas.replicas] == [0, 0, 0]
    assert [one.under_way for one in replicas.replicas] == [0, 0, 0]
    assert set(hosts.asked) == {f"http://{host}/v1/chat/completions" for host in "abc"}


async def test_the_list_of_models_and_other_addresses_are_asked_where_they_are() -> None:
    replicas, hosts, _ = made()
    await ask(replicas, "http://a/v1/models", "GET")
    await ask(replicas, "http://judge/v1/chat/completions")
    await ask(replicas, "http://a/v1beta/chat/completions")
    assert hosts.asked == [
        "http://a/v1/models",
        "http://judge/v1/chat/completions",
        "http://a/v1beta/chat/completions",
    ]


@pytest.mark.parametrize("failure", [500, 503, 429])
async def test_one_that_fails_rests_twice_as_long_each_time_and_comes_back(failure: int) -> None:
    replicas, hosts, clock = made(a=[failure, failure])
    first = replicas.replicas[0]
    with staying():
        assert await ask(replicas) == failure
        assert first.rests_until == 101.0
        assert await ask(replicas) == 200
        assert hosts.asked[-1].startswith("http://b")
    clock.now = 101.0
    with staying():
        assert await ask(replicas) == failure
    assert (first.rests_until, first.failed, first.answered) == (103.0, 2, 0)
    clock.now = 103.0
    with staying():
        assert await ask(replicas) == 200
    assert (first.answered, first.failures) == (1, 0)


async def test_no_answer_is_a_failure_and_the_wish_of_the_server_counts() -> None:
    replicas, hosts, _ = made(a=[0], b=[429])
    hosts.headers = {"Retry-After": "7"}
    with pytest.raises(httpx2.ConnectError):
        await ask(replicas)
    await ask(replicas)
    assert [one.rests_until for one in replicas.replicas] == [101.0, 107.0, 0.0]
    assert [one.under_way for one in replicas.replicas] == [0, 0, 0]


async def test_where_all_rest_the_first_to_wake_is_asked() -> None:
    replicas, hosts, _ = made(a=[500], b=[500], c=[500])
    for _ in range(4):
        await ask(replicas)
    assert hosts.asked[-1].startswith("http://a")


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=60), st.integers(1, 5))
def test_nobody_starves_and_nothing_is_left_under_way(steps: list[tuple[int, bool]], most: int) -> None:
    async def conversations() -> Replicas:
        replicas, hosts, _ = made(b=[500 if fails else 200 for _, fails in steps])

        async def conversation(requests: int) -> None:
            with staying():
                for _ in range(requests):
                    await ask(replicas)

        for start in range(0, len(steps), most):
            await asyncio.gather(*(conversation(requests) for requests, _ in steps[start : start + most]))
        assert len(hosts.asked) == sum(requests for requests, _ in steps)
        return replicas

    replicas = asyncio.run(conversations()).replicas
    assert [(one.stays, one.under_way) for one in replicas] == [(0, 0)] * 3
    talking = sum(1 for requests, _ in steps if requests)
    if talking >= 3 * most:
        assert replicas[0].answered > 0
        assert replicas[2].answered > 0


class Roots(ScriptedTransport):
    """Endpoints that say which model they serve, by host."""

    def __init__(self, **roots: str) -> None:
        super().__init__(lambda _: "Yes")
        self._roots = roots

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method != "GET":
            return await super().handle_async_request(request)
        served: dict[str, Any] = {"id": "scripted", "root": self._roots[request.url.host]}
        return httpx2.Response(200, json={"data": [served]}, request=request)


async def test_endpoints_that_serve_different_models_are_named() -> None:
    pool, _ = scripted_pool(lambda _: "Yes", base_urls=("http://127.0.0.1:9/v1", "http://localhost/v1"))
    pool._wire._inner._inner = Roots(**{"127.0.0.1": "small", "localhost": "large"})  # type: ignore[attr-defined]
    told = r"http://127\.0\.0\.1:9/v1 \(small\) and http://localhost/v1 \(large\) serve different models"
    with pytest.raises(ModelError, match=told):
        await pool.check()
