"""Answers of a server of ours are waited for while it works; in virtual time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.token_watch import parse_counts
from hallulab.testing.scripted import completion
from tests.agents.models.endpoints import QUESTION
from tests.virtual_time import at_once

OURS = "http://127.0.0.1:9/v1"


class SlowServer(httpx2.AsyncBaseTransport):
    """Answers after some seconds, and tells at `/metrics` how many tokens it has written by then.

    Args:
        answers_after: seconds that an answer takes.
        tokens: from the seconds that have passed to the text of the numbers; None: they are not there.
    """

    def __init__(self, answers_after: float, tokens: Callable[[float], str | None]) -> None:
        self.answers_after, self.tokens = answers_after, tokens
        self.looks = 0
        self.tries = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            assert str(request.url) == "http://127.0.0.1:9/metrics"
            assert "Authorization" not in request.headers
            self.looks += 1
            told = self.tokens(time.perf_counter())
            return httpx2.Response(404) if told is None else httpx2.Response(200, text=told)
        self.tries += 1
        await asyncio.sleep(self.answers_after)
        return httpx2.Response(200, json=completion("Because.", "m"))


def tell(tokens: float, name: str = "vllm:generation_tokens_total") -> str:
    return f'# HELP {name} Number.\n# TYPE {name} counter\n{name}{{engine="0",model_name="m"}} {tokens}\n'


def our_pool(server: httpx2.AsyncBaseTransport, **options: Any) -> ModelPool:
    pool = ModelPool({"default": Endpoint("m")}, transport=server, timeout_s=60.0, **options)
    pool.bind(OURS)
    return pool


async def ask(pool: ModelPool, seed: int = 0) -> str:
    return await pool.session("chatbot", seed).text("generate", QUESTION)


@at_once
async def test_an_answer_is_waited_for_while_tokens_are_written() -> None:
    server = SlowServer(3000.0, lambda now: tell(now // 100))
    assert await ask(our_pool(server)) == "Because."
    assert time.perf_counter() == pytest.approx(3000.0)


@pytest.mark.parametrize(
    "name", ["vllm:prompt_tokens_total", "vllm:kv_cache_usage_perc", "vllm:num_requests_running"]
)
def test_reading_a_prompt_is_work_too(name: str) -> None:
    @at_once
    async def run() -> None:
        assert await ask(our_pool(SlowServer(3000.0, lambda now: tell(now // 100, name)))) == "Because."

    run()


@at_once
async def test_two_minutes_without_a_token_end_it() -> None:
    server = SlowServer(3000.0, lambda now: tell(min(now, 500.0)))
    with pytest.raises(ModelError) as caught:
        await ask(our_pool(server))
    assert str(caught.value) == (
        f"model 'm' at {OURS} has read and written no token for 120 seconds. Look into its log."
    )
    assert (time.perf_counter(), server.tries) == (pytest.approx(620.0, abs=15.0), 1)


@at_once
async def test_a_batch_of_prompts_may_be_read_for_minutes_and_a_server_that_hangs_is_given_up() -> None:
    running = tell(1, "vllm:num_requests_running")
    slow = SlowServer(800.0, lambda now: tell(7) + running)
    assert await ask(our_pool(slow)) == "Because."
    with pytest.raises(ModelError, match=r"has read and written no token for 900 seconds"):
        await ask(our_pool(SlowServer(9000.0, lambda now: tell(7) + running)))


@at_once
async def test_a_number_that_is_no_work_does_not_count() -> None:
    server = SlowServer(3000.0, lambda now: tell(7) + tell(now, "process_cpu_seconds_total"))
    with pytest.raises(ModelError, match="no token for 120 seconds"):
        await ask(our_pool(server))


@at_once
async def test_many_requests_look_together() -> None:
    server = SlowServer(1000.0, lambda now: tell(now))
    pool = our_pool(server, concurrency=64)
    await asyncio.gather(*(ask(pool, seed) for seed in range(64)))
    assert server.looks <= 100


@at_once
async def test_a_server_whose_numbers_cannot_be_read_has_the_usual_limit() -> None:
    pool = our_pool(SlowServer(3000.0, lambda now: None))
    with pytest.raises(ModelError, match="no token for 120 seconds"):
        await ask(pool)
    assert time.perf_counter() == pytest.approx(120.0, abs=15.0)


@at_once
async def test_an_endpoint_of_others_keeps_its_limit() -> None:
    server = SlowServer(3000.0, lambda now: tell(now))
    pool = ModelPool({"default": Endpoint("m", OURS)}, transport=server, timeout_s=60.0)
    with pytest.raises(ModelError, match="did not answer in time"):
        await ask(pool)
    assert (time.perf_counter(), server.looks) == (pytest.approx(60.0), 0)


def test_the_numbers_of_all_engines_are_added_up() -> None:
    text = (
        tell(3)
        + 'vllm:generation_tokens_total{engine="1",model_name="m}"} 4.0\n'
        + "vllm:num_requests_waiting 2\nvllm:prompt_tokens_total NaN\nother 9\n"
    )
    assert parse_counts(text) == {"vllm:generation_tokens_total": 7.0, "vllm:num_requests_waiting": 2.0}


def test_a_text_without_such_numbers_has_none() -> None:
    assert parse_counts("<html>") is None
