"""JSON that is asked for in the prompt."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

from hallulab.agents.models.abilities import Capabilities
from hallulab.agents.models.answers import Completion, UnparseableAnswer, ask_for_json, parse_answer
from hallulab.agents.models.prompt import ChatMessage
from hallulab.testing.scripted import scripted_pool


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
