"""A session's answers and ledger, the pool of models, and both replayed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import BaseModel

from hallulab.agents.models.answers import ModelError, UnparseableAnswer
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.prompt import ChatMessage
from hallulab.agents.models.recording import Recording
from hallulab.scenarios.errors import OperationalError, ReplayMiss, UsageError
from hallulab.testing.scripted import ScriptedTransport, completion, scripted_pool
from tests.agents.models.endpoints import LOCAL, QUESTION, in_turn, pool_at, refusal


class Claim(BaseModel):
    reason: str
    supported: bool


async def test_a_text_comes_back_stripped_and_its_call_is_booked() -> None:
    pool, transport = scripted_pool(lambda _: "  Because.\n")
    session = pool.session("chatbot", seed=3)
    assert await session.text("generate", QUESTION, temperature=0.5, max_tokens=9, sample=2) == "Because."
    body = transport.requests[0]
    assert [message["content"] for message in body["messages"]] == ["Be brief.", "Why?"]
    assert (body["model"], body["seed"], body["temperature"], body["max_tokens"]) == ("scripted", 5, 0.5, 9)
    (call,) = session.calls
    assert (call.purpose, call.model) == ("chatbot.generate", "scripted")
    assert (call.prompt_tokens, call.completion_tokens) == (10, 2)
    assert (call.replayed, call.finish_reason, call.error) == (False, "stop", None)
    assert call.latency_s > 0


async def test_a_structured_answer_follows_its_schema() -> None:
    pool, transport = scripted_pool(lambda _: '{"reason": "r", "supported": true}')
    answer = await pool.session("d").structured("verify", QUESTION, Claim)
    assert answer == Claim(reason="r", supported=True)
    sent = transport.requests[0]["response_format"]
    assert (sent["type"], sent["json_schema"]["name"]) == ("json_schema", "Claim")
    assert sent["json_schema"]["schema"] == {**Claim.model_json_schema(), "additionalProperties": False}


@pytest.mark.parametrize("content", ["no json", "{}", '{"reason": "r"', '["r"]', ""])
async def test_an_unparseable_answer_is_an_error_whose_cost_counts(content: str) -> None:
    pool, transport = scripted_pool(lambda _: content)
    session = pool.session("d")
    with pytest.raises(UnparseableAnswer, match="verify: the model's answer is no Claim: "):
        await session.structured("verify", QUESTION, Claim)
    assert len(transport.requests) == 1
    assert [(call.completion_tokens, call.error) for call in session.calls] == [(2, None)]


async def test_an_answer_cut_at_the_limit_says_so() -> None:
    body = completion('{"reason": "r')
    body["choices"][0]["finish_reason"] = "length"
    pool, _ = scripted_pool(lambda _: httpx2.Response(200, json=body))
    session = pool.session("d")
    with pytest.raises(UnparseableAnswer, match=r"no Claim \(cut off at the token limit\)"):
        await session.structured("verify", QUESTION, Claim)
    assert [call.finish_reason for call in session.calls] == ["length"]


async def test_a_choice_is_the_share_of_each_option() -> None:
    pool, transport = scripted_pool(lambda _: {"Yes": 0.3, " yes": 0.1, "No": 0.1, "Perhaps": 0.5})
    share = await pool.session("d").choose("verify", QUESTION, ("Yes", "No", "Maybe"))
    assert share == pytest.approx({"Yes": 0.8, "No": 0.2, "Maybe": 0.0})
    body = transport.requests[0]
    assert (body["max_tokens"], body["logprobs"], body["top_logprobs"]) == (1, True, 20)


async def test_an_endpoint_whose_answer_lacks_probabilities_is_asked_for_words_from_there_on(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    path = tmp_path / "r.jsonl"
    recording = Recording.record(path)
    pool, transport = scripted_pool(lambda _: "Yes", recording=recording)
    decided = [await pool.session("d", seed).choose("verify", QUESTION, ("Yes", "No")) for seed in (1, 2)]
    recording.close()
    assert decided == [{"Yes": 1.0, "No": 0.0}] * 2
    assert ["logprobs" in body for body in transport.requests] == [True, False, False]
    assert "gets no requests for log-probabilities, because an answer came without them" in caplog.text
    assert not pool.get().abilities.log_probabilities
    again, asked = scripted_pool(lambda _: "No", recording=Recording.replay(path))
    replayed = [await again.session("d", seed).choose("verify", QUESTION, ("Yes", "No")) for seed in (2, 1)]
    assert (replayed, asked.requests) == (decided, [])


async def test_an_empty_answer_without_probabilities_costs_no_ability() -> None:
    pool, _ = scripted_pool(in_turn("", "Yes"))
    assert await pool.session("d").choose("verify", QUESTION, ("Yes", "No")) == {"Yes": 1.0, "No": 0.0}
    assert pool.get().abilities.log_probabilities


async def _dialogue(pool: ModelPool) -> tuple[list[Any], list[Any]]:
    session = pool.session("chatbot", seed=1)
    answers: list[Any] = [
        await session.text("generate", QUESTION),
        await session.choose("verify", [*QUESTION, ChatMessage("assistant", "So.")], ("Yes", "No")),
        await session.text("generate", QUESTION, sample=1),
    ]
    with pytest.raises(ModelError) as caught:
        await session.text("generate", QUESTION, sample=2)
    await pool.close()
    return [*answers, str(caught.value)], session.calls


async def test_a_replay_gives_the_same_answers_calls_and_failures(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recording = Recording.record(path)
    script = in_turn(
        "Because.", {"Yes": 0.7, "No": 0.3}, refusal(500), "Therefore.", refusal(400, "too long")
    )
    pool, transport = scripted_pool(script, recording=recording)
    live, booked = await _dialogue(pool)
    recording.close()
    assert len(transport.requests) == 5
    assert len(path.read_text().splitlines()) == 4

    silent, unasked = scripted_pool(in_turn(), recording=Recording.replay(path))
    replayed, booked_again = await _dialogue(silent)
    assert replayed == live
    assert unasked.requests == []
    assert [call.replayed for call in booked_again] == [True] * 4
    assert [call.model_copy(update={"replayed": False, "latency_s": 0}) for call in booked_again] == [
        call.model_copy(update={"latency_s": 0}) for call in booked
    ]
    assert [call.latency_s for call in booked_again[:3]] == [round(call.latency_s, 4) for call in booked[:3]]


async def test_a_replay_needs_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.jsonl"
    remote = {"default": Endpoint("m", "https://models.example/v1")}
    texts = []
    for key, recording in (("sesame", Recording.record), ("", Recording.replay)):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        pool = ModelPool(remote, recording=recording(path), transport=ScriptedTransport(lambda _: "Because."))
        texts.append(await pool.session("a").text("x", QUESTION))
        pool.recording.close()
    assert texts == ["Because.", "Because."]


async def test_a_replay_miss_is_one_sentence_and_is_not_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"kind":"other","key":"another","answer":1}\n')
    pool, transport = scripted_pool(lambda _: "Because.", recording=Recording.replay(path))
    session = pool.session("chatbot")
    with pytest.raises(ReplayMiss) as caught:
        await session.text("generate", QUESTION)
    assert str(caught.value) == (
        f"the recording {path} has no answer to this request: the model, prompts, options or documents have "
        "changed since, or it failed when it was recorded. Run it as then, or record again with "
        "--record."
    )
    assert transport.requests == []


async def test_a_recording_on_a_full_disk_is_an_operational_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = Recording.record(tmp_path / "r.jsonl")

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.write", full)
    pool, transport = scripted_pool(lambda _: "Because.", recording=recording)
    with pytest.raises(OperationalError, match=r"r\.jsonl: No space left on device") as caught:
        await pool.session("chatbot").text("generate", QUESTION)
    assert not isinstance(caught.value, ModelError)
    assert len(transport.requests) == 1


async def test_models_are_found_by_name_and_share_a_ledger() -> None:
    transport = ScriptedTransport(lambda _: "Because.")
    pool = ModelPool(
        {"default": Endpoint("big", LOCAL), "small": Endpoint("tiny", LOCAL)}, transport=transport
    )
    session = pool.session("d", seed=4)
    await session.text("a", QUESTION)
    await session.on("small").text("b", QUESTION)
    assert [(call.purpose, call.model) for call in session.calls] == [("d.a", "big"), ("d.b", "tiny")]
    with pytest.raises(UsageError, match="no model named 'huge' under `models`; there are: default, small"):
        pool.session("d", model="huge")


def test_models_without_an_address_get_that_of_the_server() -> None:
    pool = ModelPool({"default": Endpoint("a"), "judge": Endpoint("b", "http://127.0.0.1:8/v1")})
    pool.bind("http://127.0.0.1:9/v1")
    addresses = [pool.get(name).endpoint.base_url for name in pool.names]
    assert addresses == ["http://127.0.0.1:9/v1", "http://127.0.0.1:8/v1"]


def test_a_pool_has_a_default_model() -> None:
    with pytest.raises(ValueError, match="needs a model named 'default'"):
        ModelPool({"small": Endpoint("tiny", LOCAL)})


async def test_concurrency_is_bounded_over_all_sessions() -> None:
    under_way: list[int] = [0, 0]

    class Counting(ScriptedTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            under_way[0] += 1
            under_way[1] = max(under_way)
            response = await super().handle_async_request(request)
            under_way[0] -= 1
            return response

    pool = pool_at(Counting(lambda _: "Because."), concurrency=2)
    await asyncio.gather(*(pool.session("d", seed=n).text("a", QUESTION) for n in range(8)))
    assert under_way == [0, 2]
