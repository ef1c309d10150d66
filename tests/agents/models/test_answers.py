"""Answers of servers that have their own ideas of the format, and JSON that is asked for in the prompt."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from pydantic import BaseModel

from hallulab.agents.models.abilities import Capabilities
from hallulab.agents.models.answers import (
    Completion,
    ModelError,
    ToolCall,
    UnparseableAnswer,
    ask_for_json,
    is_completion,
    parse_answer,
    read_completion,
)
from hallulab.agents.models.log_probabilities import Likely
from hallulab.agents.models.prompt import ChatMessage
from hallulab.testing.scripted import completion, scripted_pool

ASK = [ChatMessage("user", "Well?")]


def answer(message: dict[str, Any], **choice: Any) -> dict[str, Any]:
    body = completion("unused")
    body["choices"][0] |= {"message": {"role": "assistant", **message}, **choice}
    return body


def said(message: dict[str, Any], **choice: Any) -> str:
    return read_completion(answer(message, **choice)).text


async def text_of(body: dict[str, Any]) -> str:
    pool, _ = scripted_pool(lambda _: httpx2.Response(200, json=body))
    return await pool.session("chatbot").text("reply", ASK)


@pytest.mark.parametrize("body", [{}, {"choices": None}, {"choices": []}, {"choices": ["text"]}])
def test_what_has_no_message_is_no_completion(body: dict[str, Any]) -> None:
    assert not is_completion(body)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "The courier pays."}, "The courier pays."),
        ({"content": "<think>He wants money.</think>\n\nThe courier pays."}, "The courier pays."),
        ({"content": "He wants money.\n</think>\n\nThe courier pays."}, "The courier pays."),
        (
            {"content": "Reason before </think>. The courier pays."},
            "Reason before </think>. The courier pays.",
        ),
        ({"content": "\ufeffThe courier pays."}, "The courier pays."),
        ({"content": {"type": "text", "text": "The courier pays."}}, "The courier pays."),
        ({"content": ["The courier ", {"text": "pays."}]}, "The courier pays."),
        ({"content": [{"text": "Hm.", "thought": True}, {"text": "The courier pays."}]}, "The courier pays."),
        ({"content": [{"type": "text", "text": {"value": "The courier pays."}}]}, "The courier pays."),
        ({"content": {"parts": [{"text": "The courier pays."}]}}, "The courier pays."),
        ({"content": [{"type": "refusal", "refusal": "I cannot tell."}]}, "I cannot tell."),
        ({"content": None, "refusal": "I cannot tell."}, "I cannot tell."),
        ({"content": None, "audio": {"id": "a", "transcript": "The courier pays."}}, "The courier pays."),
        ({"content": None}, ""),
        ({}, ""),
    ],
)
def test_what_is_said_to_the_user(message: dict[str, Any], text: str) -> None:
    assert said(message) == text


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"content": "<think>He wants"}, "nothing but its reasoning"),
        ({"content": "<think>He wants money.</think>"}, "nothing but its reasoning"),
        ({"content": None, "reasoning_content": "He wants money."}, "nothing but its reasoning"),
        ({"content": "", "reasoning_details": [{"text": "He wants money."}]}, "nothing but its reasoning"),
        ({"content": "", "thinking": "He wants money."}, "nothing but its reasoning"),
        ({"content": [{"type": "thinking", "thinking": [{"text": "Hm."}]}]}, "nothing but its reasoning"),
        (
            {"content": None, "provider_specific_fields": {"reasoning_content": "He wants money."}},
            "nothing but its reasoning",
        ),
        ({"content": ["Hello", 7]}, "is a list and no text"),
        ({"content": [{"type": {"a": 1}}], "thinking": "He wants money."}, "nothing but its reasoning"),
        ({"content": '{"name": "search", "arguments": {"query": "fee"}}'}, "wrote the call of a tool"),
        ({"content": "<|channel|>commentary to=functions.search<|message|>{}<|call|>"}, "wrote the call"),
        ({"content": None, "tool_calls": [{"id": "c1"}]}, "called a tool"),
        ({"content": "Let me look.", "tool_calls": [{"id": "c1"}]}, "called a tool"),
        (
            {"content": [{"type": "text", "text": "Let me look."}, {"type": "tool_use", "name": "search"}]},
            "called a tool",
        ),
    ],
)
def test_what_says_nothing_to_the_user_is_refused(message: dict[str, Any], reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        said(message)


@pytest.mark.parametrize("number", [int, str])
async def test_the_choice_with_the_lowest_index_is_the_answer(number: type) -> None:
    body = completion("Keep it for three weeks.")
    body["choices"][0]["index"] = number(0)
    other = {
        "index": number(1),
        "message": {"role": "assistant", "content": "WRONG"},
        "finish_reason": "stop",
    }
    assert await text_of({**body, "choices": [other, *body["choices"]]}) == "Keep it for three weeks."


def test_a_filtered_answer_names_the_filter() -> None:
    with pytest.raises(ModelError, match="content filter"):
        said({"content": ""}, finish_reason="content_filter")


@pytest.mark.parametrize(("cached", "told"), [(4, 4), (9, 9), (10, None), (-1, None)])
def test_no_more_tokens_are_cached_than_there_are(cached: int, told: int | None) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": cached}}
    assert read_completion({**completion("At 7."), "usage": usage}).cached_tokens == told


@pytest.mark.parametrize(
    "usage",
    [
        *(None, "none", [1], {}, {"prompt_tokens": 1}),
        *({"prompt_tokens": one, "completion_tokens": 2} for one in (None, -5, 0, 10**13, True, 1.5)),
        {"prompt_tokens": 2, "completion_tokens": 0},
    ],
)
async def test_numbers_of_tokens_that_are_not_told_are_unknown_and_not_zero(usage: object) -> None:
    body = {**completion("The courier pays."), "usage": usage}
    pool, _ = scripted_pool(lambda _: httpx2.Response(200, json=body))
    session = pool.session("chatbot")
    assert await session.text("reply", ASK) == "The courier pays."
    assert [(call.prompt_tokens, call.completion_tokens) for call in session.calls] == [(None, None)]


def test_a_word_may_be_of_no_token_by_a_servers_guess() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 0}
    read = read_completion({**completion("Yes."), "usage": usage})
    assert (read.prompt_tokens, read.completion_tokens) == (9, 0)


@pytest.mark.parametrize(
    ("usage", "cached"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 8}}, 8),
        ({"prompt_tokens_details": "many"}, None),
        ({"prompt_tokens_details": {"cached_tokens": -8}}, None),
        ({"prompt_tokens_details": {"cached_tokens": True}}, None),
        ("none", None),
    ],
)
def test_cached_tokens_are_read_where_they_are_told(usage: object, cached: int | None) -> None:
    assert read_completion({**completion("Yes."), "usage": usage}).cached_tokens == cached


async def test_probabilities_are_read_of_tokens_without_bytes() -> None:
    body = completion({"No": 0.75, "Yes": 0.25})
    for token in body["choices"][0]["logprobs"]["content"][0]["top_logprobs"]:
        del token["bytes"]
    pool, _ = scripted_pool(lambda _: httpx2.Response(200, json=body))
    share = await pool.session("user").choose("goal", ASK, ("Yes", "No"))
    assert {option: round(value, 9) for option, value in share.items()} == {"Yes": 0.25, "No": 0.75}


@pytest.mark.parametrize(
    "logprobs",
    [
        "none",
        {"content": [{"token": "No", "logprob": None}]},
        {"content": [{"token": "No", "logprob": "likely"}]},
        {"content": [{"token": "No", "logprob": 10**400}]},
        {"content": [{"token": "No", "logprob": 0.0, "top_logprobs": [{"token": "No", "logprob": 1000.0}]}]},
        {"content": [{"token": "No", "logprob": 0.0, "top_logprobs": [{"token": "No", "logprob": 1.0}]}]},
        {"content": [{"token": "No", "logprob": 0.0, "bytes": [999]}]},
    ],
)
async def test_probabilities_of_another_form_are_an_error_that_is_told(logprobs: object) -> None:
    body = completion("No")
    body["choices"][0]["logprobs"] = logprobs
    pool, _ = scripted_pool(lambda _: httpx2.Response(200, json=body))
    with pytest.raises(ModelError, match=r"no log-probabilities|none of Yes, No"):
        await pool.session("user").choose("goal", ASK, ("Yes", "No"))


async def test_whatever_the_libraries_raise_at_an_answer_is_a_model_error() -> None:
    with pytest.raises(ModelError, match="no chat completion"):
        await text_of(answer({"content": "Hi"}, finish_reason=["stop"]))


def test_a_completion_is_read_with_its_tokens_and_the_likeliest_first_ones() -> None:
    body = completion({"Yes": 1.0})
    body["choices"][0] |= {"finish_reason": "end_turn"}
    body["usage"]["prompt_tokens_details"] = {"cached_tokens": 8}
    assert read_completion(body) == Completion(
        text="Yes",
        finish_reason="stop",
        first_token=(Likely("Yes", 0.0),),
        prompt_tokens=10,
        completion_tokens=2,
        cached_tokens=8,
    )


CALLED = [{"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}]


def test_tools_that_were_offered_may_be_called() -> None:
    body = answer({"content": "Let me look.", "tool_calls": CALLED}, finish_reason="tool_calls")
    found = read_completion(body, tools_offered=True)
    assert (found.text, found.finish_reason) == ("", "function_calls")
    assert found.tool_calls == (ToolCall("c1", "search", "{}"),)


@pytest.mark.parametrize("calls", [7, [7], [{"id": "c1"}], [{"id": "c1", "function": None}]])
def test_a_call_of_a_tool_in_another_form_is_refused(calls: Any) -> None:
    with pytest.raises(ModelError, match="called a tool in a form that cannot be read"):
        read_completion(answer({"tool_calls": calls}), tools_offered=True)


class Claim(BaseModel):
    supported: bool


SCHEMA = json.dumps(Claim.model_json_schema())
ASKED = (
    f"Is it?\n\nAnswer with one JSON object that follows this JSON schema, and with nothing else:\n{SCHEMA}"
)


@pytest.mark.parametrize(
    "text",
    [
        '{"supported": true}',
        '```json\n{"supported": true}\n```',
        'Here it is: {"supported": "true"} I hope that helps.',
    ],
)
def test_text_around_the_object_is_passed_over(text: str) -> None:
    assert parse_answer(Claim, Completion(text, "stop"), "verify", lenient=True) == Claim(supported=True)


@pytest.mark.parametrize("text", ["", "It is.", "} {", "{}", '{"supported": true} {"supported": false}'])
def test_what_holds_no_instance_is_an_error(text: str) -> None:
    with pytest.raises(UnparseableAnswer, match="verify: the model's answer is no Claim: "):
        parse_answer(Claim, Completion(text, "stop"), "verify", lenient=True)


def test_a_server_that_follows_schemas_gives_nothing_around_them() -> None:
    with pytest.raises(UnparseableAnswer):
        parse_answer(Claim, Completion('So: {"supported": true}', "stop"), "verify", lenient=False)


def test_the_schema_ends_the_users_message() -> None:
    system = ChatMessage("system", "Be brief.")
    assert ask_for_json([system, ChatMessage("user", "Is it?")], Claim) == [
        system,
        ChatMessage("user", ASKED),
    ]


def test_the_schema_is_a_message_where_the_user_is_not_the_last_to_speak() -> None:
    said = [ChatMessage("user", "Is it?"), ChatMessage("assistant", "Yes.")]
    found = ask_for_json(said, Claim)
    assert found == [*said, ChatMessage("user", ASKED.removeprefix("Is it?\n\n"))]


async def test_an_endpoint_without_schemas_is_asked_in_the_prompt() -> None:
    pool, transport = scripted_pool(lambda _: 'Sure. {"supported": false}')
    pool.get().abilities = Capabilities(json_schema=False)
    asked = [ChatMessage("user", "Is it?")]
    assert await pool.session("d").structured("verify", asked, Claim) == Claim(supported=False)
    (body,) = transport.requests
    assert "response_format" not in body
    assert body["messages"] == [{"role": "user", "name": "user", "content": ASKED}]
