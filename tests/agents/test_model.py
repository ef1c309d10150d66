from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import BaseModel
from tenacity import wait_fixed, wait_none

from agents.client import Endpoint
from agents.errors import ModelError, ReplayMiss, UnparseableAnswer
from agents.model import ModelPool
from agents.prompt import ChatMessage
from scenarios.errors import OperationalError, UsageError
from scenarios.recording import Recording
from tests.scripted import ScriptedTransport, completion, scripted_pool

QUESTION = [ChatMessage("system", "Be brief."), ChatMessage("user", "Why?")]
LOCAL = "http://127.0.0.1:9/v1"


class Claim(BaseModel):
    reason: str
    supported: bool


def _status(status: int, message: str = "no") -> httpx2.Response:
    return httpx2.Response(status, json={"error": {"message": message}})


def _first(*answers: Any) -> Callable[[Any], Any]:
    """A script that gives these answers, one a request."""
    left = list(answers)
    return lambda _: left.pop(0)


def _pool(transport: httpx2.AsyncBaseTransport, url: str = LOCAL, **options: Any) -> ModelPool:
    return ModelPool({"default": Endpoint("m", url)}, transport=transport, backoff=wait_none(), **options)


async def test_a_text_comes_back_stripped_and_its_call_is_booked() -> None:
    pool, transport = scripted_pool(lambda _: "  Because.\n")
    session = pool.session("chatbot", seed=3)
    assert await session.text("generate", QUESTION, temperature=0.5, max_tokens=9, sample=2) == "Because."
    body = transport.requests[0]
    assert [message["content"] for message in body["messages"]] == ["Be brief.", "Why?"]
    assert (body["model"], body["seed"], body["temperature"], body["max_tokens"]) == ("scripted", 5, 0.5, 9)
    (call,) = session.calls
    assert (call.purpose, call.model, call.prompt_tokens, call.completion_tokens) == (
        "chatbot.generate",
        "scripted",
        10,
        2,
    )
    assert (call.replayed, call.finish_reason, call.error) == (False, "stop", None)
    assert call.latency_s > 0


async def test_equal_calls_cost_one_request_and_are_booked_twice() -> None:
    pool, transport = scripted_pool(lambda _: "Because.")
    one, other = pool.session("a"), pool.session("b")
    await asyncio.gather(one.text("x", QUESTION), other.text("y", QUESTION))
    await one.text("x", QUESTION)
    assert len(transport.requests) == 1
    assert [(call.purpose, call.replayed) for call in one.calls] == [("a.x", False), ("a.x", True)]
    assert [(call.purpose, call.replayed) for call in other.calls] == [("b.y", True)]


async def test_equal_requests_under_way_are_sent_once() -> None:
    pool, transport = scripted_pool(lambda body: "ok")
    sessions = [pool.session("user", 1) for _ in range(5)]
    texts = await asyncio.gather(*(session.text("message", QUESTION) for session in sessions))
    assert (texts, len(transport.requests)) == (["ok"] * 5, 1)
    calls = [session.calls[0] for session in sessions]
    assert sorted(call.replayed for call in calls) == [False, True, True, True, True]
    assert len({call.latency_s for call in calls}) == 1


async def test_a_failure_reaches_all_who_wait_and_the_next_request_is_sent() -> None:
    pool, transport = scripted_pool(lambda body: httpx2.Response(401, json={"error": {"message": "no"}}))
    session = pool.session("user", 1)
    failed = await asyncio.gather(*(session.text("a", QUESTION) for _ in range(3)), return_exceptions=True)
    assert [type(error) for error in failed] == [ModelError] * 3
    assert len(transport.requests) == 1
    with pytest.raises(ModelError):
        await session.text("a", QUESTION)
    assert len(transport.requests) == 2


async def test_who_waits_asks_anew_when_the_first_one_is_cancelled() -> None:
    pool, _ = scripted_pool(lambda body: "ok")
    first = asyncio.create_task(pool.session("user", 1).text("message", QUESTION))
    await asyncio.sleep(0)
    second = asyncio.create_task(pool.session("user", 1).text("message", QUESTION))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == "ok"
    with pytest.raises(asyncio.CancelledError):
        await first


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_a_passing_trouble_is_tried_again(status: int) -> None:
    pool, transport = scripted_pool(_first(_status(status), _status(status), "Because."))
    session = pool.session("chatbot")
    assert await session.text("generate", QUESTION) == "Because."
    assert len(transport.requests) == 3
    assert [call.error for call in session.calls] == [None]


async def test_tries_are_counted_and_end() -> None:
    pool, transport = scripted_pool(lambda _: _status(429, "slow down"), attempts=3)
    session = pool.session("chatbot")
    with pytest.raises(ModelError, match="status 429: slow down"):
        await session.text("generate", QUESTION)
    assert len(transport.requests) == 3
    (call,) = session.calls
    assert (call.prompt_tokens, call.completion_tokens, call.finish_reason) == (None, None, None)
    assert (
        call.error
        == "model 'scripted' at http://127.0.0.1:9/v1 refused the request with status 429: slow down"
    )


@pytest.mark.parametrize("status", [400, 401, 404, 422])
async def test_a_refusal_is_not_tried_again(status: int) -> None:
    pool, transport = scripted_pool(lambda _: _status(status, "too long"))
    with pytest.raises(ModelError, match=f"refused the request with status {status}: too long"):
        await pool.session("chatbot").text("generate", QUESTION)
    assert len(transport.requests) == 1


class Silent(httpx2.AsyncBaseTransport):
    """Never answers."""

    def __init__(self) -> None:
        self.tries = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.tries += 1
        await asyncio.Event().wait()
        raise AssertionError


class Dead(httpx2.AsyncBaseTransport):
    """Nobody listens."""

    def __init__(self) -> None:
        self.tries = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.tries += 1
        raise httpx2.ConnectError("All connection attempts failed", request=request)


async def test_a_silent_server_runs_into_the_time_limit() -> None:
    pool = _pool(Silent(), timeout_s=0.01, attempts=2)
    session = pool.session("chatbot")
    with pytest.raises(
        ModelError, match=r"did not answer in time\. Raise --timeout or lower --concurrency\."
    ):
        await session.text("generate", QUESTION)
    assert len(session.calls) == 1
    assert "did not answer in time" in (session.calls[0].error or "")


async def test_no_try_begins_that_could_end_after_the_deadline() -> None:
    """The deadline is three time limits; two went by, and a little more."""
    transport = Silent()
    pool = _pool(transport, timeout_s=0.2, attempts=9)
    with pytest.raises(ModelError, match="did not answer in time"):
        await pool.session("chatbot").text("generate", QUESTION)
    assert transport.tries == 2


async def test_pauses_count_towards_the_deadline() -> None:
    pool, transport = scripted_pool(lambda _: _status(503), timeout_s=5.0, backoff=wait_fixed(11))
    with pytest.raises(ModelError, match="status 503"):
        await pool.session("chatbot").text("generate", QUESTION)
    assert len(transport.requests) == 1


async def test_waiting_for_others_does_not_count_towards_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half a second is left for tries before the last one; the other request takes longer."""
    monkeypatch.setattr("agents.client.DEADLINE", 1.1)

    class Slow(ScriptedTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            await asyncio.sleep(0.0 if self.requests else 0.7)
            return await super().handle_async_request(request)

    pool = _pool(Slow(_first("First.", _status(503), "Second.")), timeout_s=5.0, concurrency=1)
    sessions = [pool.session("chatbot", seed) for seed in range(2)]
    assert await asyncio.gather(*(session.text("a", QUESTION) for session in sessions)) == [
        "First.",
        "Second.",
    ]


async def test_an_unreachable_server_is_one_sentence() -> None:
    transport = Dead()
    pool = _pool(transport, attempts=2)
    with pytest.raises(ModelError) as caught:
        await pool.session("chatbot").text("generate", QUESTION)
    assert str(caught.value) == f"model 'm' at {LOCAL} cannot be reached. Is the server running?"
    assert transport.tries == 2


@pytest.mark.parametrize(
    "body", ["{}", '{"choices": []}', "<html>", "null", "[]", '{"choices": [{}]}', '{"choices": 3}']
)
async def test_an_answer_that_is_no_completion_is_an_error(body: str) -> None:
    pool, transport = scripted_pool(lambda _: httpx2.Response(200, text=body))
    session = pool.session("chatbot")
    with pytest.raises(ModelError, match=r"v1/chat/completions gave an answer that is no chat completion: '"):
        await session.text("generate", QUESTION)
    assert (len(session.calls), len(transport.requests), len(pool.recording)) == (1, 1, 0)


async def test_an_empty_answer_is_an_empty_text() -> None:
    body = completion("x")
    body["choices"][0]["message"]["content"] = None
    pool, _ = scripted_pool(lambda _: httpx2.Response(200, json=body))
    assert await pool.session("chatbot").text("generate", QUESTION) == ""


async def test_a_structured_answer_follows_its_schema() -> None:
    pool, transport = scripted_pool(lambda _: '{"reason": "r", "supported": true}')
    answer = await pool.session("d").structured("verify", QUESTION, Claim)
    assert answer == Claim(reason="r", supported=True)
    sent = transport.requests[0]["response_format"]
    assert (sent["type"], sent["json_schema"]["name"]) == ("json_schema", "Claim")
    assert sent["json_schema"]["schema"] == Claim.model_json_schema()


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


async def test_no_option_among_the_tokens_is_an_error() -> None:
    pool, _ = scripted_pool(lambda _: {"Perhaps": 1.0})
    with pytest.raises(UnparseableAnswer, match="verify: the model answered with none of Yes, No"):
        await pool.session("d").choose("verify", QUESTION, ("Yes", "No"))


async def test_an_endpoint_without_probabilities_is_an_error() -> None:
    pool, _ = scripted_pool(lambda _: "Yes")
    with pytest.raises(UnparseableAnswer, match="verify: the endpoint gives no log-probabilities"):
        await pool.session("d").choose("verify", QUESTION, ("Yes", "No"))


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
    script = _first("Because.", {"Yes": 0.7, "No": 0.3}, _status(500), "Therefore.", _status(400, "too long"))
    pool, transport = scripted_pool(script, recording=recording)
    live, booked = await _dialogue(pool)
    recording.close()
    assert len(transport.requests) == 5
    assert len(path.read_text().splitlines()) == 4

    silent, unasked = scripted_pool(_first(), recording=Recording.replay(path))
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
    path.write_text("")
    pool, transport = scripted_pool(lambda _: "Because.", recording=Recording.replay(path))
    session = pool.session("chatbot")
    with pytest.raises(ReplayMiss) as caught:
        await session.text("generate", QUESTION)
    assert str(caught.value) == (
        f"the recording {path} has no answer to this request: prompts, options or documents have changed "
        "since, or it failed when it was recorded. Record again with --record."
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


async def test_the_key_comes_from_the_environment_and_goes_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY", "sk-very-secret")
    sent: list[str] = []

    class Remote(ScriptedTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            sent.append(request.headers["Authorization"])
            return await super().handle_async_request(request)

    path = tmp_path / "r.jsonl"
    recording = Recording.record(path)
    pool = ModelPool(
        {"default": Endpoint("m", "https://models.example/v1", "TEST_KEY")},
        recording=recording,
        transport=Remote(_first("Because.", _status(400, "what is sk-very-secret"))),
        backoff=wait_none(),
    )
    session = pool.session("chatbot")
    await session.text("generate", QUESTION)
    with pytest.raises(ModelError) as caught:
        await session.text("generate", QUESTION, sample=1)
    recording.close()
    assert sent == ["Bearer sk-very-secret"] * 2
    everywhere = path.read_text() + str(caught.value) + json.dumps([c.model_dump() for c in session.calls])
    assert "sk-very-secret" not in everywhere
    assert "sk-very-secret" not in repr(pool.get().endpoint)


async def test_a_missing_key_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    pool = _pool(Dead(), url="https://models.example/v1")
    with pytest.raises(
        UsageError,
        match=r"models\.example/v1 needs an API key: set the environment variable OPENAI_API_KEY",
    ):
        await pool.session("chatbot").text("generate", QUESTION)


@pytest.mark.parametrize("url", [LOCAL, "http://localhost:8000/v1", "http://[::1]:8000/v1"])
def test_loopback_needs_no_key(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-others")
    assert Endpoint("m", url).api_key() == "EMPTY"


async def test_check_passes_when_the_model_is_served() -> None:
    pool, _ = scripted_pool(lambda _: "Because.")
    await pool.check()


async def test_check_names_the_models_that_are_served() -> None:
    pool = _pool(ScriptedTransport(lambda _: "Because.", model="other"))
    with pytest.raises(ModelError, match=r"does not serve model 'm'; it serves: other\. Correct --model\."):
        await pool.check()


async def test_check_says_that_nobody_answers() -> None:
    with pytest.raises(
        ModelError, match=f"no OpenAI-compatible endpoint answers at {LOCAL} .*Start a server"
    ):
        await _pool(Dead()).check()


async def test_nothing_is_checked_when_a_recording_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("")
    await _pool(Dead(), recording=Recording.replay(path)).check()


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

    pool = _pool(Counting(lambda _: "Because."), concurrency=2)
    await asyncio.gather(*(pool.session("d", seed=n).text("a", QUESTION) for n in range(8)))
    assert under_way == [0, 2]
