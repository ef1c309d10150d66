"""What was found out of an endpoint holds for further requests, and is told and replayed."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tenacity import wait_fixed

from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.recording import Recording
from hallulab.scenarios.errors import OperationalError
from hallulab.testing.scripted import ScriptedTransport, completion, scripted_pool
from tests.agents.models.endpoints import QUESTION, pool_at, refusal
from tests.agents.models.test_needs import RULES, YES, Request, Told, reset, says
from tests.agents.models.test_probe import able
from tests.virtual_time import at_once


async def test_an_ability_that_is_lost_in_the_middle_of_a_run_is_dropped_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, lost = tmp_path / "r.jsonl", [False]
    script = says(lambda body: "logprobs is not supported" if lost[0] and "logprobs" in body else None)
    recording = Recording.record(path)
    pool, transport = scripted_pool(script, recording=recording)
    await pool.check()
    decided = [await pool.session("judge", seed=0).choose("decide", QUESTION, ("Yes", "No"))]
    lost[0] = True
    decided += [
        await pool.session("judge", seed=seed).choose("decide", QUESTION, ("Yes", "No")) for seed in (1, 2)
    ]
    recording.close()
    assert decided == [pytest.approx(YES), {"Yes": 1.0, "No": 0.0}, {"Yes": 1.0, "No": 0.0}]
    assert sum("logprobs" in body for body in transport.requests[-4:]) == 1
    assert "From here on, model 'scripted' at" in caplog.text
    assert "gets no requests for log-probabilities" in caplog.text
    assert not pool.read_how[0].log_probabilities
    again, asked = scripted_pool(script, recording=Recording.replay(path))
    await again.check()
    replayed = [
        await again.session("judge", seed=seed).choose("decide", QUESTION, ("Yes", "No"))
        for seed in (2, 0, 1)
    ]
    assert replayed == [decided[2], decided[0], decided[1]]
    assert asked.requests == []


async def test_a_schema_that_is_refused_in_the_middle_of_a_run_is_asked_for_in_the_prompt() -> None:
    def answer(body: Request) -> Any:
        return refusal(500, "no") if "response_format" in body else 'Here: {"ice": "cold"}'

    pool, _ = scripted_pool(answer)
    assert await pool.session("judge").structured("ask", QUESTION, Told) == Told(ice="cold")
    assert not pool.get().abilities.json_schema


async def test_a_passing_trouble_costs_no_ability() -> None:
    numbers = count()
    pool, _ = scripted_pool(lambda body: refusal(500) if next(numbers) == 0 else YES)
    assert await pool.session("judge").choose("decide", QUESTION, ("Yes", "No")) == pytest.approx(YES)
    assert pool.get().abilities.log_probabilities


@pytest.mark.parametrize(
    "faults",
    [
        {0: refusal(500), 2: refusal(500)},
        {0: refusal(500), 2: refusal(429)},
        {0: refusal(500), 2: refusal(502)},
        {0: refusal(500), 2: None},
    ],
)
async def test_an_endpoint_that_fails_now_and_then_keeps_its_abilities(faults: dict[int, Any]) -> None:
    numbers = count()

    def answer(body: Request) -> Any:
        return faults.get(next(numbers), YES) or reset()

    pool, _ = scripted_pool(answer)
    assert await pool.session("judge").choose("decide", QUESTION, ("Yes", "No")) == pytest.approx(YES)
    assert pool.get().abilities.log_probabilities


@pytest.mark.parametrize("status", [500, 502])
@pytest.mark.parametrize(
    "words",
    [
        "System error",
        "stream error: stream ID 3; INTERNAL_ERROR",
        "Name or service not known",
        "Error during sampling",
        "the worker of seed 7 crashed",
    ],
)
async def test_a_server_that_fails_once_needs_nothing_whatever_its_words_name(
    words: str, status: int
) -> None:
    numbers = count()
    pool, _transport = scripted_pool(lambda _: refusal(status, words) if next(numbers) == 0 else "Yes.")
    assert await pool.session("chatbot").text("reply", QUESTION) == "Yes."
    assert pool.get().fitting.tell_needs(seed=True) == ()


async def test_an_endpoint_that_breaks_off_is_looked_into_again() -> None:
    numbers = count()

    def answer(body: Request) -> Any:
        if next(numbers) == 1:
            reset()
        return refusal(500, "no") if "logprobs" in body else "Yes"

    pool, _ = scripted_pool(answer)
    for seed in (0, 1):
        decided = await pool.session("judge", seed=seed).choose("decide", QUESTION, ("Yes", "No"))
    assert decided == {"Yes": 1.0, "No": 0.0}
    assert not pool.get().abilities.log_probabilities


async def test_what_an_endpoint_needs_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recording = Recording.record(path)
    pool, _ = scripted_pool(says(RULES[1][0]), recording=recording)
    await pool.check()
    recording.close()
    again, transport = scripted_pool(able, recording=Recording.replay(path))
    await again.check()
    assert again.read_how == pool.read_how
    assert transport.requests == []


@at_once
async def test_an_endpoint_that_loads_its_model_is_waited_for() -> None:
    numbers = count()

    def answer(body: Request) -> Any:
        if next(numbers) < 30:
            return refusal(503, "Model is loading")
        return refusal(400, "logprobs is not supported") if "logprobs" in body else able(body)

    pool, _ = scripted_pool(answer, timeout_s=120.0, attempts=None, backoff=wait_fixed(1))
    await pool.check()
    assert (pool.get().abilities.asked, pool.get().abilities.log_probabilities) == (True, False)


@at_once
async def test_an_endpoint_that_stays_busy_ends_the_check_with_a_reason() -> None:
    pool, _ = scripted_pool(lambda _: refusal(503, "Model is loading"), timeout_s=20.0)
    with pytest.raises(
        OperationalError,
        match=r"status 503: Model is loading\. It stays busy, or its quota is used up: ask again later",
    ):
        await pool.check()


async def test_strict_schemas_are_sent_whatever_a_schema_says() -> None:
    def strict(body: Request) -> Any:
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
        if schema and schema.get("additionalProperties") is not False:
            return refusal(400, "Invalid schema for response_format: 'additionalProperties' is required")
        return able(body)

    pool, _ = scripted_pool(strict)
    await pool.check()
    assert pool.get().abilities.json_schema


async def test_an_endpoint_without_a_list_of_models_is_asked_for_an_answer() -> None:
    class Listless(ScriptedTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            if request.method == "GET":
                return httpx2.Response(404, json={"detail": "Not Found"})
            return await super().handle_async_request(request)

    pool = pool_at(Listless(able))
    await pool.check()
    assert pool.get().abilities.asked


@pytest.mark.parametrize("served", ["m:latest", "models/m", "M", "models/M:latest"])
async def test_a_near_name_is_the_endpoints_name_of_the_model(served: str) -> None:
    transport = ScriptedTransport(able, model=served)
    pool = pool_at(transport)
    await pool.check()
    assert {body["model"] for body in transport.requests} == {served}
    assert pool.read_how[0].model == "m"


async def test_a_stream_that_comes_unasked_is_joined() -> None:
    def stream(body: Request) -> httpx2.Response:
        pieces = [{"role": "assistant", "content": "Yes, "}, {"content": "it is."}, {}]
        events = [
            {"choices": [{"index": 0, "delta": piece, "finish_reason": None if piece else "stop"}]}
            for piece in pieces
        ]
        lines = [*(json.dumps(event) for event in events), "[DONE]"]
        text = "".join(f"data: {line}\n\n" for line in lines)
        return httpx2.Response(200, text=text, headers={"Content-Type": "text/event-stream"})

    pool, _ = scripted_pool(stream)
    assert await pool.session("chatbot").text("reply", QUESTION) == "Yes, it is."


async def test_content_in_parts_is_read() -> None:
    answer = completion("unused")
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    answer["choices"][0]["message"]["content"] = [
        thought,
        {"type": "text", "text": "Yes, "},
        {"type": "text", "text": "it is."},
    ]
    pool, _ = scripted_pool(lambda _: httpx2.Response(200, json=answer))
    assert await pool.session("chatbot").text("reply", QUESTION) == "Yes, it is."


def test_a_pool_tells_what_the_endpoints_of_bots_need() -> None:
    pool = ModelPool({"default": Endpoint("m", "http://127.0.0.1:9/v1")})
    pool.at(Endpoint("quiet", "http://127.0.0.1:8/v1"))
    assert [how.model for how in pool.read_how] == ["m"]
