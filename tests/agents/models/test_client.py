"""One served model: shared answers, tries and their end, keys."""

from __future__ import annotations

import asyncio
import errno
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tenacity import wait_none

from hallulab.agents.models.answers import ModelError, RefusedRequest
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.recording import Recording
from hallulab.scenarios.errors import UsageError
from hallulab.testing.scripted import ScriptedTransport, completion, scripted_pool
from tests.agents.models.endpoints import LOCAL, QUESTION, Dead, failure, in_turn, pool_at, refusal


async def test_equal_calls_cost_one_request_and_are_booked_twice() -> None:
    pool, transport = scripted_pool(lambda _: "Because.")
    one, other = pool.session("a"), pool.session("b")
    await asyncio.gather(one.text("x", QUESTION), other.text("y", QUESTION))
    await one.text("x", QUESTION)
    assert len(transport.requests) == 1
    assert [(call.purpose, call.replayed) for call in one.calls] == [("a.x", False), ("a.x", True)]
    assert [(call.purpose, call.replayed) for call in other.calls] == [("b.y", True)]


async def test_a_known_answer_does_not_pass_through_the_openai_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool, _ = scripted_pool(lambda _: "Because.")
    await pool.session("a").text("x", QUESTION)

    async def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the client was asked")

    monkeypatch.setattr("openai.AsyncOpenAI.post", refuse)
    again = pool.session("b")
    assert await again.text("x", QUESTION) == "Because."
    assert [call.replayed for call in again.calls] == [True]


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
    assert [type(error) for error in failed] == [RefusedRequest] * 3
    assert len(transport.requests) == 1
    with pytest.raises(ModelError):
        await session.text("a", QUESTION)
    assert len(transport.requests) == 2


async def test_who_waits_asks_anew_when_the_first_one_is_cancelled() -> None:
    class Slow(ScriptedTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            await asyncio.sleep(0.01)
            return await super().handle_async_request(request)

    pool = pool_at(Slow(lambda _: "ok"))
    first = asyncio.create_task(pool.session("user", 1).text("message", QUESTION))
    await asyncio.sleep(0)
    second = asyncio.create_task(pool.session("user", 1).text("message", QUESTION))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == "ok"
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_tries_are_counted_and_end() -> None:
    pool, transport = scripted_pool(lambda _: refusal(429, "slow down"), attempts=3)
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


async def test_files_used_up_are_told() -> None:
    class Full(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            try:
                raise OSError(errno.EMFILE, "Too many open files")
            except OSError as error:
                raise httpx2.ConnectError("All connection attempts failed", request=request) from error

    assert await failure(pool_at(Full(), attempts=2).session("chatbot").text("generate", QUESTION)) == (
        f"model 'm' at {LOCAL} was not asked: this process has too many open files. "
        "Lower --concurrency, or raise the limit (ulimit -n)."
    )


@pytest.mark.parametrize(
    "body", ["{}", "null", "[]", '{"choices": [{}]}', '{"choices": 3}', '{"answer": "Because."}']
)
async def test_an_answer_that_is_no_completion_is_an_error(body: str) -> None:
    pool, transport = scripted_pool(lambda _: httpx2.Response(200, text=body))
    session = pool.session("chatbot")
    with pytest.raises(ModelError, match=r"v1/chat/completions gave an answer that is no chat completion: '"):
        await session.text("generate", QUESTION)
    assert (len(session.calls), len(transport.requests), len(pool.recording)) == (1, 1, 0)


def odd_answer(text: str = "Yes", model: str = "scripted", **probabilities: float) -> dict[str, Any]:
    """A completion that says `text` as `model`; the first token has these probabilities."""
    answer = completion(probabilities or text, model)
    answer["choices"][0]["message"]["content"] = text
    return answer


@pytest.mark.parametrize(
    ("answer", "flaw"),
    [
        (odd_answer("x" * 257), "257 characters where 1 tokens were asked for"),
        (odd_answer(Yes=0.9, No=0.9), "probabilities of a token that add up to 1.80"),
        (odd_answer(Yes=9.0, No=0.1), "no log-probabilities of tokens, but something else"),
        (odd_answer(model="else"), "it is from the model 'else', earlier ones from 'scripted'"),
    ],
)
async def test_an_answer_that_the_model_cannot_have_given_is_an_error_and_not_recorded(
    answer: dict[str, Any], flaw: str
) -> None:
    healthy = {"Yes": 0.75, "No": 0.25}
    pool, transport = scripted_pool(in_turn(healthy, httpx2.Response(200, json=answer), healthy))
    first, second = pool.session("judge"), pool.session("judge", seed=1)
    assert await first.choose("decide", QUESTION, ("Yes", "No")) == pytest.approx(healthy)
    assert await failure(second.choose("decide", QUESTION, ("Yes", "No"))) == (
        f"{LOCAL}/chat/completions gave an answer that no model can have given: {flaw}."
    )
    assert await second.choose("decide", QUESTION, ("Yes", "No")) == pytest.approx(healthy)
    assert len(transport.requests) == 3


async def test_a_model_may_answer_by_another_name_if_always_by_the_same() -> None:
    """As endpoints do that are asked for an alias."""
    pool, _ = scripted_pool(lambda _: httpx2.Response(200, json=odd_answer("x" * 768, "scripted-2026-01")))
    session = pool.session("chatbot")
    for sample in range(2):
        assert len(await session.text("generate", QUESTION, max_tokens=3, sample=sample)) == 768


async def test_an_answer_that_names_no_model_is_of_none() -> None:
    named = [httpx2.Response(200, json=odd_answer("Hm.", model)) for model in ("", "m-2026", "", "m-2026")]
    pool, _ = scripted_pool(in_turn(*named))
    session = pool.session("chatbot")
    assert [await session.text("generate", QUESTION, sample=sample) for sample in range(4)] == ["Hm."] * 4


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
        transport=Remote(in_turn("Because.", *[refusal(400, "what is sk-very-secret")] * 9)),
        backoff=wait_none(),
    )
    session = pool.session("chatbot")
    await session.text("generate", QUESTION)
    said = await failure(session.text("generate", QUESTION, sample=1))
    recording.close()
    assert set(sent) == {"Bearer sk-very-secret"}
    everywhere = path.read_text() + said + json.dumps([c.model_dump() for c in session.calls])
    assert "sk-very-secret" not in everywhere
    assert "sk-very-secret" not in repr(pool.get().endpoint)


async def test_a_missing_key_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    pool = pool_at(Dead(), url="https://models.example/v1")
    with pytest.raises(
        UsageError,
        match=r"models\.example/v1 needs an API key: set the environment variable OPENAI_API_KEY \(`api_key",
    ):
        await pool.session("chatbot").text("generate", QUESTION)


@pytest.mark.parametrize(
    "url", [LOCAL, "http://localhost:8000/v1", "http://[::1]:8000/v1", "http://0.0.0.0:8000/v1", ""]
)
def test_loopback_needs_no_key(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-others")
    assert Endpoint("m", url).api_key() == "EMPTY"


@pytest.mark.parametrize("key", ["sk secret", "sk\nsecret", "sk-sécret", "sk\x00secret"])
def test_what_no_header_can_hold_is_no_key_and_is_not_repeated(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.environ", {"OPENAI_API_KEY": key})
    with pytest.raises(UsageError) as caught:
        Endpoint("m", "https://models.example/v1").api_key()
    assert str(caught.value) == (
        "the environment variable OPENAI_API_KEY holds no API key: there are spaces, letters beyond ASCII or "
        "control characters in it. Set it to the key alone."
    )


def test_white_space_around_a_key_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " sk-secret\n")
    assert Endpoint("m", "https://models.example/v1").api_key() == "sk-secret"


async def test_an_unread_field_of_another_type_is_no_failure() -> None:
    odd = httpx2.Response(200, json={**completion("Because."), "id": 5, "system_fingerprint": [1]})
    pool, _ = scripted_pool(lambda _: odd)
    assert await pool.session("a").text("x", QUESTION) == "Because."
