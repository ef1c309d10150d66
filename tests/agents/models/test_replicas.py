"""Several endpoints for one model: who is asked, who rests, and who comes back."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import ExitStack
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tenacity import wait_none

from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.prompt import ChatMessage
from hallulab.agents.models.replicas import Limits, Replicas, sticky_session
from hallulab.testing.scripted import ScriptedTransport, completion
from tests.virtual_time import at_once

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
    return Replicas(URLS, clock), hosts, clock


async def ask(replicas: Replicas, hosts: Hosts, url: str = "http://a/v1/chat/completions") -> int:
    request = httpx2.Request("POST", url, content=b"{}")
    with replicas.request_to(request) as asking:
        response = await hosts.handle_async_request(request if asking is None else asking.request)
        if asking is not None:
            asking.status = response.status_code
            asking.retry_after = float(response.headers["Retry-After"]) if response.headers else None
    return response.status_code


async def test_a_conversation_stays_and_new_ones_go_where_the_fewest_are() -> None:
    replicas, hosts, _ = made()

    async def conversation() -> None:
        with sticky_session():
            for _ in range(3):
                await ask(replicas, hosts)

    await asyncio.gather(*(conversation() for _ in range(6)))
    assert Counter(url.split("/")[2] for url in hosts.asked) == {"a": 6, "b": 6, "c": 6}
    assert [one.stays for one in replicas.replicas] == [0, 0, 0]
    assert [one.under_way for one in replicas.replicas] == [0, 0, 0]
    assert set(hosts.asked) == {f"http://{host}/v1/chat/completions" for host in "abc"}


async def test_other_addresses_are_asked_where_they_are() -> None:
    replicas, hosts, _ = made()
    await ask(replicas, hosts, "http://judge/v1/chat/completions")
    await ask(replicas, hosts, "http://a/v1beta/chat/completions")
    assert hosts.asked == ["http://judge/v1/chat/completions", "http://a/v1beta/chat/completions"]


def test_addresses_are_compared_in_their_usual_form() -> None:
    assert [one.base_url for one in Replicas(["http://A:80/v1/", "http://b:81/v1"]).replicas] == [
        "http://a/v1",
        "http://b:81/v1",
    ]


async def test_a_cancelled_request_is_no_failure() -> None:
    replicas, _, _ = made()
    with (
        pytest.raises(asyncio.CancelledError),
        replicas.request_to(httpx2.Request("POST", "http://a/v1/x", content=b"")),
    ):
        raise asyncio.CancelledError
    assert [(one.failed, one.answered, one.under_way) for one in replicas.replicas] == [(0, 0, 0)] * 3


@pytest.mark.parametrize("failure", [500, 503, 429, 401, 404])
async def test_one_that_fails_rests_twice_as_long_each_time_and_comes_back(failure: int) -> None:
    replicas, hosts, clock = made(a=[failure, failure])
    first = replicas.replicas[0]
    with sticky_session():
        assert await ask(replicas, hosts) == failure
        assert first.cooldown_until == 101.0
        assert await ask(replicas, hosts) == 200
        assert hosts.asked[-1].startswith("http://b")
    clock.now = 101.0
    with sticky_session():
        assert await ask(replicas, hosts) == failure
    assert (first.cooldown_until, first.failed, first.answered) == (103.0, 2, 0)
    clock.now = 103.0
    with sticky_session():
        assert await ask(replicas, hosts) == 200
    assert (first.answered, first.failures) == (1, 0)


def test_what_was_under_way_when_it_failed_makes_no_longer_rest() -> None:
    clock = Clock()
    replicas = Replicas(URLS[:1], clock)
    request = httpx2.Request("POST", "http://a/v1/chat/completions", content=b"{}")
    [one] = replicas.replicas
    for began, failed, number in ((100.0, 100.5, 3), (101.5, 102.0, 2)):
        clock.now = began
        with ExitStack() as under_way:
            for _ in range(number):
                asking = under_way.enter_context(replicas.request_to(request))
                assert asking is not None
                asking.status = 500
            clock.now = failed
    assert (one.failed, one.failures, one.cooldown_until) == (5, 2, 104.0)


async def test_no_answer_is_a_failure_and_the_wish_of_the_server_counts() -> None:
    replicas, hosts, _ = made(a=[0], b=[429])
    hosts.headers = {"Retry-After": "7"}
    with pytest.raises(httpx2.ConnectError):
        await ask(replicas, hosts)
    await ask(replicas, hosts)
    assert [one.cooldown_until for one in replicas.replicas] == [101.0, 107.0, 0.0]
    assert [one.under_way for one in replicas.replicas] == [0, 0, 0]


async def test_where_all_rest_the_first_to_wake_is_asked() -> None:
    replicas, hosts, _ = made(a=[500], b=[500], c=[500])
    for _ in range(4):
        await ask(replicas, hosts)
    assert hosts.asked[-1].startswith("http://a")


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=60), st.integers(1, 5))
def test_nobody_starves_and_nothing_is_left_under_way(steps: list[tuple[int, bool]], most: int) -> None:
    async def conversations() -> Replicas:
        replicas, hosts, _ = made(b=[500 if fails else 200 for _, fails in steps])

        async def conversation(requests: int) -> None:
            with sticky_session():
                for _ in range(requests):
                    await ask(replicas, hosts)

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


class Two(ScriptedTransport):
    """Endpoints that answer as they are told, by the port."""

    def __init__(self, **answers: Any) -> None:
        super().__init__(lambda _: "Yes")
        self.answers = answers
        self.asked: list[int | None] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        port = request.url.port
        if request.method == "GET":
            served: dict[str, Any] = {"id": "scripted", "root": self.answers.get(f"root_{port}")}
            return httpx2.Response(200, json={"data": [served]}, request=request)
        self.asked.append(port)
        made = self.answers.get(f"at_{port}")
        if made is not None:
            return httpx2.Response(request=request, **made)
        answer = {**completion("Yes"), "model": f"served at {port}"}
        return httpx2.Response(200, json=answer, request=request)


BOTH = ("http://127.0.0.1:9/v1", "http://127.0.0.1:8/v1")


def pool_of(transport: Two, **options: Any) -> ModelPool:
    endpoint = Endpoint("scripted", BOTH[0])
    return ModelPool(
        {"default": endpoint}, transport=transport, base_urls=BOTH, backoff=wait_none(), **options
    )


async def said(pool: ModelPool, text: str) -> str:
    return await pool.session("user").text("message", [ChatMessage("user", text)])


async def test_endpoints_that_serve_different_models_are_named() -> None:
    told = r"http://127\.0\.0\.1:9/v1 \(small\) and http://127\.0\.0\.1:8/v1 \(large\) serve different models"
    with pytest.raises(ModelError, match=told):
        await pool_of(Two(root_9="small", root_8="large")).check()


async def test_nobody_waits_for_an_endpoint_that_asks_for_a_pause_while_another_is_free() -> None:
    transport = Two(at_9={"status_code": 429, "json": {}, "headers": {"Retry-After": "100"}})
    pool = pool_of(transport, timeout_s=5.0)
    assert await said(pool, "When?") == "Yes"
    assert transport.asked == [9, 8]
    assert [(one.answered, one.failed) for one in pool.replicas] == [(0, 1), (1, 0)]


async def test_a_body_that_is_no_answer_to_read_is_a_failure() -> None:
    transport = Two(at_9={"status_code": 200, "content": b"x" * (17 << 20)})
    pool = pool_of(transport)
    with pytest.raises(ModelError):
        await said(pool, "When?")
    assert await said(pool, "Where?") == "Yes"
    assert [(one.answered, one.failed) for one in pool.replicas] == [(0, 1), (1, 0)]


async def test_endpoints_may_call_the_model_by_different_names() -> None:
    transport = Two()
    pool = pool_of(transport)
    assert [await said(pool, text) for text in ("When?", "Where?", "Who?")] == ["Yes"] * 3
    assert set(transport.asked) == {9, 8}


class Slow(Two):
    """Counts the requests under way at each port."""

    def __init__(self) -> None:
        super().__init__()
        self.under_way: Counter[int | None] = Counter()
        self.most: Counter[int | None] = Counter()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        port = request.url.port
        self.under_way[port] += 1
        self.most[port] = max(self.most[port], self.under_way[port])
        await asyncio.sleep(0.05)  # until all that may be under way are
        self.under_way[port] -= 1
        return await super().handle_async_request(request)


@pytest.mark.parametrize(("limits", "most"), [(Limits(requests=2), 2), (None, 6)])
@at_once
async def test_each_endpoint_has_its_own_limit(limits: Limits | None, most: int) -> None:
    transport = Slow()
    pool = pool_of(transport, limits=limits)
    await asyncio.gather(*(said(pool, f"How many? {number}") for number in range(12)))
    assert transport.most == {9: most, 8: most}
    assert sum(one.answered for one in pool.replicas) == 12


@at_once
async def test_one_endpoint_alone_may_have_limits() -> None:
    transport = Slow()
    endpoint = Endpoint("scripted", BOTH[0])
    pool = ModelPool({"default": endpoint}, transport=transport, limits=Limits(requests=3))
    await asyncio.gather(*(said(pool, f"How many? {number}") for number in range(12)))
    assert transport.most == {9: 3}
    assert pool.replicas == ()


@at_once
async def test_a_call_took_no_longer_for_having_waited_for_its_turn() -> None:
    pool = pool_of(Two(), limits=Limits(requests=1))
    [first, *_] = pool.replicas
    session = pool.session("user")
    async with first.allowance.spending(1):
        asked = asyncio.create_task(session.text("message", [ChatMessage("user", "Now?")]))
        await asyncio.sleep(0.3)
        assert not asked.done()
    await asked
    assert session.calls[0].latency_s == 0.0
