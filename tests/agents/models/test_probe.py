"""What an endpoint can do, found out before a run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hallulab.agents.models.abilities import Capabilities, ReadHow
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.recording import Recording
from hallulab.testing.scripted import Script, ScriptedTransport, completion, scripted_pool
from tests.agents.models.endpoints import QUESTION, refusal


def able(body: dict[str, Any]) -> Any:
    """An endpoint that can do all."""
    if "response_format" in body:
        return '{"ice_is": "cold"}'
    return {"Yes": 0.9, "No": 0.1} if "logprobs" in body else "Apple, bear, chair"


def refusing(*names: str, status: int = 400) -> Script:
    return lambda body: refusal(status, "unknown") if set(names) & body.keys() else able(body)


def ignoring(name: str) -> Script:
    return lambda body: able({key: value for key, value in body.items() if key != name})


def without_seeds() -> Script:
    numbers = count()
    return lambda body: f"Word {next(numbers)}" if body["temperature"] else able(body)


async def found(script: Script, **options: Any) -> tuple[Capabilities, ScriptedTransport]:
    pool, transport = scripted_pool(script, **options)
    await pool.check()
    return pool.get().abilities, transport


def calling(*names: str, arguments: str = "{}") -> Script:
    """An endpoint whose model answers offers of functions with calls of these in turn."""
    left = list(names)

    def answer(body: dict[str, Any]) -> Any:
        if "tools" not in body:
            return able(body)
        made = completion("unused")
        call = {"id": "c", "type": "function", "function": {"name": left.pop(0), "arguments": arguments}}
        made["choices"][0] |= {
            "message": {"role": "assistant", "content": None, "tool_calls": [call]},
            "finish_reason": "tool_calls",
        }
        return httpx2.Response(200, json=made)

    return answer


CASHIER, PORTER = "transfer_to_cashier", "transfer_to_porter"


async def test_an_endpoint_that_can_do_all_is_asked_six_times() -> None:
    abilities, transport = await found(calling(CASHIER, PORTER))
    assert abilities == Capabilities(asked=True, function_calls=True)
    assert len(transport.requests) == 6
    assert sum(body["max_tokens"] for body in transport.requests) == 218


@pytest.mark.parametrize(
    ("script", "asked"),
    [
        (able, 1),
        (refusing("tools"), 1),
        (calling(PORTER), 1),
        (calling(CASHIER, CASHIER), 2),
        (calling("transfer_to_nobody"), 1),
        (calling(CASHIER, PORTER, arguments='{"type": "object"}'), 1),
    ],
)
async def test_a_model_that_does_not_hand_over_rightly_calls_no_functions(script: Script, asked: int) -> None:
    abilities, transport = await found(script)
    assert abilities == Capabilities(asked=True)
    assert sum("tools" in body for body in transport.requests) == asked


@pytest.mark.parametrize(
    ("make", "lacks"),
    [
        (lambda: refusing("logprobs"), {"log_probabilities": False}),
        (lambda: refusing("logprobs", status=404), {"log_probabilities": False}),
        (lambda: ignoring("logprobs"), {"log_probabilities": False}),
        (lambda: refusing("seed", status=422), {"seed": "refused"}),
        (without_seeds, {"seed": "ignored"}),
        (lambda: refusing("response_format"), {"json_schema": False}),
        (lambda: ignoring("response_format"), {"json_schema": False}),
        (
            lambda: refusing("logprobs", "seed", "response_format"),
            {"log_probabilities": False, "seed": "refused", "json_schema": False},
        ),
    ],
)
async def test_what_an_endpoint_lacks_is_found_out(make: Callable[[], Script], lacks: dict[str, Any]) -> None:
    abilities, transport = await found(make())
    assert abilities == Capabilities(asked=True, **lacks)
    assert len(transport.requests) <= 21


@pytest.mark.parametrize("odd", range(4))
@pytest.mark.parametrize("answer", [refusal(404), httpx2.Response(200, json={"choices": []}), "Perhaps."])
async def test_one_odd_answer_does_not_decide_how_a_run_is_read(odd: int, answer: Any) -> None:
    numbers = count()
    abilities, transport = await found(lambda body: answer if next(numbers) == odd else able(body))
    assert abilities == Capabilities(asked=abilities.asked)
    assert len(transport.requests) <= 12


@pytest.mark.parametrize("status", [400, 401, 500])
async def test_an_endpoint_that_answers_nothing_is_assumed_to_do_all(status: int) -> None:
    abilities, _ = await found(lambda _: refusal(status))
    assert abilities == Capabilities(asked=False)


@pytest.mark.parametrize("status", [400, 404])
async def test_what_was_found_out_is_replayed(tmp_path: Path, status: int) -> None:
    """A refusal with 404 is not recorded, as a wrong model name may be mended."""
    path = tmp_path / "r.jsonl"
    recording = Recording.record(path)
    recorded, _ = await found(refusing("logprobs", "response_format", status=status), recording=recording)
    recording.close()
    replayed, transport = await found(able, recording=Recording.replay(path))
    assert recorded == replayed == Capabilities(log_probabilities=False, json_schema=False, asked=True)
    assert transport.requests == []


async def test_seeds_that_are_refused_are_not_sent_and_make_different_requests() -> None:
    pool, transport = scripted_pool(lambda body: str(len(transport.requests)))
    pool.get().abilities = Capabilities(seed="refused")
    session = pool.session("d", seed=3)
    texts = [await session.text("sample", QUESTION, temperature=1.0, sample=n) for n in (0, 1, 0)]
    assert texts == ["1", "2", "1"]
    assert ["seed" in body for body in transport.requests] == [False, False]


def test_models_that_are_read_alike_are_told_once() -> None:
    endpoint = Endpoint("m", "http://127.0.0.1:9/v1")
    other = Endpoint("n", "http://127.0.0.1:9/v1")
    pool = ModelPool({"default": endpoint, "again": endpoint, "other": other}, decision_samples=3)
    pool.get("other").abilities = Capabilities(seed="ignored", asked=True)
    assert pool.read_how == (
        ReadHow(model="m", decision_samples=3),
        ReadHow(model="n", seed="ignored", asked=True, decision_samples=3),
    )


class Meeting(httpx2.AsyncBaseTransport):
    """Lists models only when as many are asked for at once as there are."""

    def __init__(self, number: int) -> None:
        self.inner = ScriptedTransport(able, "m")
        self.left = asyncio.Barrier(number)
        self.asked: list[int] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            self.asked.append(request.url.port or 0)
            await self.left.wait()
        return await self.inner.handle_async_request(request)


PORTS = {"default": 1, "judge": 2, "other": 3}
ENDPOINTS = {name: Endpoint("m", f"http://127.0.0.1:{port}/v1") for name, port in PORTS.items()}


async def test_endpoints_are_asked_side_by_side() -> None:
    pool = ModelPool(ENDPOINTS, transport=Meeting(3))
    await pool.check()
    assert [pool.get(name).abilities.asked for name in pool.names] == [True] * 3
    await pool.close()


async def test_only_the_endpoints_of_those_that_are_asked_are() -> None:
    transport = Meeting(2)
    pool = ModelPool(ENDPOINTS, transport=transport)
    await pool.check({"default", "other"})
    assert sorted(transport.asked) == [1, 3]
    assert not pool.get("judge").abilities.asked
    assert [one.asked for one in pool.read_how] == [True]
    await pool.close()
