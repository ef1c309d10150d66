"""What the user adds to requests: fields, headers, a query and room for thoughts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import ValidationError
from tenacity import wait_none

from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.recording import Recording
from hallulab.agents.models.transport import CallRecord
from hallulab.agents.models.wire_settings import WireSettings
from hallulab.scenarios.errors import UsageError
from hallulab.testing.scripted import Script, ScriptedTransport, completion
from tests.agents.models.endpoints import LOCAL, QUESTION, failure, refusal

AZURE = "https://example.openai.azure.com/openai/deployments/gpt-4o"


class Listening(ScriptedTransport):
    """Keeps the requests themselves, too."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.heard: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.heard.append(request)
        return await super().handle_async_request(request)


def pool_with(
    script: Script, url: str = LOCAL, key: str | None = None, recording: Recording | None = None, **added: Any
) -> tuple[ModelPool, Listening]:
    """A pool whose model gets requests with what is added."""
    transport = Listening(script)
    endpoint = Endpoint("scripted", url, key, WireSettings.model_validate(added))
    pool = ModelPool({"default": endpoint}, transport=transport, backoff=wait_none(), recording=recording)
    return pool, transport


async def test_fields_are_added_to_the_body_and_null_leaves_one_out() -> None:
    pool, transport = pool_with(lambda _: "Because.", extra={"reasoning_effort": "low", "temperature": None})
    await pool.session("chatbot").text("reply", QUESTION)
    [body] = transport.requests
    assert body["reasoning_effort"] == "low"
    assert "temperature" not in body


async def test_answers_with_other_fields_are_other_answers() -> None:
    recording = Recording()
    for effort in ("low", "high", "low"):
        pool, _ = pool_with(lambda body: body["effort"], recording=recording, extra={"effort": effort})
        assert await pool.session("chatbot").text("reply", QUESTION) == effort
    assert len(recording) == 2


async def test_thoughts_are_added_to_every_limit_and_not_to_keys() -> None:
    recording = Recording()
    pool, transport = pool_with(lambda _: "Yes", recording=recording, thoughts=2000)
    await pool.session("chatbot").text("reply", QUESTION, max_tokens=8)
    assert [body["max_tokens"] for body in transport.requests] == [2008]
    plain, asked = pool_with(lambda _: "No", recording=recording)
    assert await plain.session("chatbot").text("reply", QUESTION, max_tokens=8) == "Yes"
    assert asked.requests == []


async def test_azure_gets_its_key_in_a_header_and_its_version_in_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_AZURE", "azure-secret-1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai-1")
    recording = Recording.record(tmp_path / "r.jsonl")
    pool, transport = pool_with(
        lambda _: "azure-secret-1",
        AZURE,
        recording=recording,
        headers={"api-key": "${MY_AZURE}"},
        query={"api-version": "2024-10-21"},
    )
    assert await pool.session("chatbot").text("reply", QUESTION) == "[key]"
    recording.close()
    [request] = transport.heard
    assert str(request.url) == f"{AZURE}/chat/completions?api-version=2024-10-21"
    assert request.headers["api-key"] == "azure-secret-1"
    assert "Authorization" not in request.headers
    assert "secret" not in (tmp_path / "r.jsonl").read_text()


async def test_a_header_may_hold_a_text_around_a_secret_or_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_A", "token-a-long")
    headers = {"Authorization": "Bearer ${TOKEN_A}", "anthropic-version": "2023-06-01"}
    pool, transport = pool_with(lambda _: "Because.", "https://models.example/v1", headers=headers)
    await pool.session("chatbot").text("reply", QUESTION)
    [request] = transport.heard
    assert request.headers["Authorization"] == "Bearer token-a-long"
    assert request.headers["anthropic-version"] == "2023-06-01"


async def test_a_refusal_does_not_repeat_a_headers_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSPORT", "open-sesame-1")
    pool, _ = pool_with(lambda _: refusal(401, "open-sesame-1 is wrong"), headers={"X-Pass": "${PASSPORT}"})
    assert "[key] is wrong" in await failure(pool.session("chatbot").text("reply", QUESTION))


async def test_no_key_is_sent_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai-1")
    pool, transport = pool_with(lambda _: "Because.", "https://models.example/v1", "none")
    await pool.session("chatbot").text("reply", QUESTION)
    assert "Authorization" not in transport.heard[0].headers


def test_a_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PASSPORT", raising=False)
    pool, _ = pool_with(lambda _: "Because.", headers={"X-Pass": "${PASSPORT}"})
    with pytest.raises(UsageError, match="needs a text for a header: set the environment variable PASSPORT"):
        pool.check_keys()


@pytest.mark.parametrize(
    ("added", "reason"),
    [
        ({"extra": {"model": "x"}}, "`model` is hallulab's own"),
        ({"extra": {"messages": []}}, "`messages` is hallulab's own"),
        ({"headers": {"X-Api-Key": "k"}}, r"the value of `X-Api-Key` is a secret .* write `\$\{VARIABLE\}`"),
        ({"headers": {"Cookie": "a=b"}}, "is a secret"),
        ({"headers": {"X-Pass": "Bearer abc"}}, "is a secret"),
        ({"headers": {"Host": "x"}}, "no header that can be set"),
        ({"headers": {"a b": "x"}}, "no header that can be set"),
        ({"headers": {"X-A": "x\ny"}}, "neither a text nor"),
        ({"headers": {"X-A": "${not a name}"}}, "neither a text nor"),
        ({"query": {"api-key": "x"}}, "send it in `headers`"),
        ({"thoughts": -1}, "greater than or equal to 0"),
    ],
)
def test_what_cannot_be_added_is_refused(added: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        WireSettings.model_validate(added)


async def test_bots_at_one_address_that_headers_tell_apart_have_answers_of_their_own() -> None:
    transport = Listening(lambda _: str(len(transport.heard)))
    pool = ModelPool({"default": Endpoint("m", LOCAL)}, transport=transport)
    told = []
    for name in ("a", "b", "a"):
        client = pool.at(Endpoint("bot", LOCAL, None, WireSettings(headers={"X-Bot": name})))
        asked = [{"role": "user", "content": "Why?"}]
        told.append((await client.create(asked, {}, CallRecord())).text)
    assert told == ["1", "2", "1"]
    assert [request.headers["X-Bot"] for request in transport.heard] == ["a", "b"]


async def test_a_model_that_thinks_until_its_limit_is_told_how_to_get_room() -> None:
    silent = completion("")
    silent["choices"][0]["finish_reason"] = "length"
    pool, _ = pool_with(lambda _: httpx2.Response(200, json=silent))
    with pytest.raises(ModelError, match=r"used up its limit of tokens .* thoughts \(`thoughts`\)"):
        await pool.session("chatbot").text("reply", QUESTION)
