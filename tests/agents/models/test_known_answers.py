"""A recorded answer is the same by the short way and by the long one through AutoGen and openai's client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2
import pytest
from autogen_core.models import CreateResult, LLMMessage, SystemMessage, UserMessage

from agents.models.bridge import to_autogen
from agents.models.client import Endpoint, ModelClient
from agents.models.errors import ModelError
from agents.models.model import ModelPool
from agents.models.prompt import ChatMessage
from agents.models.recording import Recording
from agents.models.wire import Exchange
from tests.agents.models.endpoints import LOCAL
from tests.scripted import completion, scripted_pool

DIALOGUE = to_autogen(
    [
        ChatMessage("system", "Be brief."),
        ChatMessage("user", "Why? "),
        ChatMessage("assistant", "Därum. "),
        ChatMessage("user", "Oh."),
    ]
)
CHOICE = {"temperature": 0.0, "max_tokens": 1, "seed": 3, "logprobs": True, "top_logprobs": 20}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "A", "schema": {"type": "object"}, "strict": True}}


def told(answer: Any = "Yes.", **changes: Any) -> dict[str, Any]:
    return completion(answer) | changes


def finished(reason: str, **message: Any) -> dict[str, Any]:
    body = completion("Yes.")
    body["choices"][0]["finish_reason"] = reason
    body["choices"][0]["message"].update(message)
    return body


async def asked(client: ModelClient, messages: list[LLMMessage], extra: Mapping[str, Any]) -> Any:
    """What a client gives, and what it says of the exchange; an error's text in its place."""
    exchange = Exchange()
    try:
        result: CreateResult | str = await client.create(messages, extra, exchange)
    except ModelError as error:
        result = str(error)
    exchange.under_way_s = 0.0
    return result, exchange


def replaying(recording: Recording) -> ModelPool:
    recording.replaying = True
    return ModelPool({"default": Endpoint("scripted", LOCAL)}, recording=recording)


async def both(
    body: dict[str, Any],
    messages: list[LLMMessage],
    extra: Mapping[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[Any, Any, bool]:
    """A recorded answer by the short and by the long way, and whether the first was short."""
    recording = Recording()
    pool, _ = scripted_pool(lambda _: httpx2.Response(200, json=body), recording=recording)
    await asked(pool.get(), messages, extra)
    short, long = replaying(recording).get(), replaying(recording).get()
    monkeypatch.setattr(long, "_known", None)
    found, expected = await asked(short, messages, extra), await asked(long, messages, extra)
    return found, expected, short._autogen is None


@pytest.mark.parametrize(
    ("body", "extra"),
    [
        (told(), {}),
        (told({"Yes": 0.6, " no": 0.3}), CHOICE),
        (told('{"a": 1}'), {"response_format": SCHEMA, "max_tokens": 9}),
        (
            told(
                usage={
                    "prompt_tokens": 7,
                    "completion_tokens": 1,
                    "prompt_tokens_details": {"cached_tokens": 5},
                }
            ),
            {},
        ),
        (told(usage=None), {}),
        (finished("length"), {"temperature": 0.7}),
        (finished("stop", content=None, refusal="I will not."), {}),
        (finished("stop", content="<think>Hm.</think> Yes."), {}),
        (finished("stop", content=""), {}),
    ],
)
async def test_a_text_comes_the_short_way_and_is_the_same(
    body: dict[str, Any], extra: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, expected, short = await both(body, DIALOGUE, extra, monkeypatch)
    assert found == expected
    assert found[1].replayed
    assert short


@pytest.mark.parametrize(
    "body",
    [
        finished("content_filter"),
        finished("stop", reasoning_content="Hm."),
        finished("tool_calls", tool_calls=[{"id": "1"}]),
        finished("stop", content="<think>Hm."),
    ],
)
async def test_what_is_more_or_less_than_a_text_goes_the_long_way(
    body: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, expected, short = await both(body, DIALOGUE, {}, monkeypatch)
    assert found == expected
    assert not short


async def test_messages_that_autogen_changes_go_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    two: list[LLMMessage] = [
        SystemMessage(content="Be brief."),
        SystemMessage(content="Be kind."),
        UserMessage(content="Why?", source="user"),
    ]
    found, expected, short = await both(told(), two, {}, monkeypatch)
    assert found == expected
    assert found[0].content == "Yes."
    assert not short


async def test_bytes_that_a_recording_lacks_are_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    body = told({"Yés": 0.6, "no": 0.3})
    for token in body["choices"][0]["logprobs"]["content"][0]["top_logprobs"]:
        del token["bytes"]
    found, expected, short = await both(body, DIALOGUE, CHOICE, monkeypatch)
    assert found == expected
    assert bytes(found[0].logprobs[0].top_logprobs[0].bytes).decode() == "Yés"
    assert short
