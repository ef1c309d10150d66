"""A bot behind an OpenAI-compatible endpoint that keeps the conversation is told which one it is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx2
import pytest

from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.recording import Recording
from hallulab.chatbots.external import EndpointBot
from hallulab.chatbots.pipeline import turn_seed
from hallulab.chatbots.protocol import ChatbotContext, ChatbotError, has_memory
from hallulab.chatbots.registry import compute_chatbot_version, make_chatbot
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.transcript import Message
from hallulab.testing.scripted import completion
from tests.chatbots.stage import ASKED, LATER, SCENARIO, Shelf
from tests.kit.refusals import refusal

URL = "http://127.0.0.1:8001/v1"
IN_HEADER = {"header": "X-Session-Id"}


class Remembering(httpx2.AsyncBaseTransport):
    """Numbers its replies.

    Args:
        failures: come before them.
        refused: a field of bodies that it refuses, without a word about it.
    """

    def __init__(self, *failures: Exception, refused: str | None = None) -> None:
        self.failures, self.refused = list(failures), refused
        self.requests: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        self.requests.append(request)
        if self.failures:
            raise self.failures.pop(0)
        if self.refused in self.bodies[-1]:
            return httpx2.Response(400, json={"error": {"message": "bad request"}}, request=request)
        return httpx2.Response(200, json=completion(f"Reply {len(self.requests)}.", "m"), request=request)

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.requests]

    @property
    def said(self) -> list[list[str]]:
        return [[one["content"] for one in body["messages"]] for body in self.bodies]


def make_pool(service: Remembering, recording: Recording | None = None) -> ModelPool:
    return ModelPool(
        {"default": Endpoint("m", "http://127.0.0.1:9/v1")}, transport=service, recording=recording
    )


def make_bot(pool: ModelPool, conversation: str = "", **options: Any) -> EndpointBot:
    made = make_chatbot(
        "endpoint",
        ChatbotContext(
            models=pool,
            knowledge=Shelf(),
            scenario=SCENARIO,
            options={"base_url": URL, "model": "m", **options},
            conversation=conversation,
        ),
    )
    assert isinstance(made, EndpointBot)
    return made


async def reply(bot: EndpointBot, history: Sequence[Message] = LATER) -> str:
    return (await bot.reply(history)).text


async def test_each_conversation_has_an_id_in_the_field_user() -> None:
    service = Remembering()
    pool = make_pool(service)
    bots = [make_bot(pool, name, session="user") for name in ("one", "two")]
    for bot in bots:
        await reply(bot, ASKED)
        await reply(bot)
    told = [body["user"] for body in service.bodies]
    assert told == [bots[0]._id, bots[0]._id, bots[1]._id, bots[1]._id]
    assert told[0] != told[2]


async def test_each_conversation_has_an_id_in_a_header() -> None:
    service = Remembering()
    pool = make_pool(service)
    bots = [make_bot(pool, name, session=IN_HEADER) for name in ("one", "two")]
    for bot in bots:
        await reply(bot)
    assert [request.headers["X-Session-Id"] for request in service.requests] == [bot._id for bot in bots]
    assert not any("user" in body for body in service.bodies)


async def test_a_stateful_bot_gets_the_last_message_alone() -> None:
    service = Remembering()
    bot = make_bot(make_pool(service), session="user", stateful=True, system="Be brief.")
    await reply(bot, ASKED)
    await reply(bot)
    assert service.said == [["Be brief.", ASKED[0].text], [LATER[-1].text]]


async def test_a_bot_with_a_session_that_is_not_stateful_gets_the_whole_dialogue() -> None:
    service = Remembering()
    await reply(make_bot(make_pool(service), session="user"))
    assert service.said == [[message.text for message in LATER]]


async def test_equal_requests_of_two_conversations_are_two() -> None:
    pool = make_pool(Remembering())
    replies = [await reply(make_bot(pool, name, session="user")) for name in ("one", "two")]
    assert replies == ["Reply 1.", "Reply 2."]


async def test_equal_messages_after_different_histories_are_two() -> None:
    pool = make_pool(Remembering())
    other = (LATER[0], Message(role="assistant", text="Both are open."), LATER[2])
    bots = [make_bot(pool, "one", session="user", stateful=True) for _ in range(2)]
    assert [await reply(bots[0]), await reply(bots[1], other)] == ["Reply 1.", "Reply 2."]


async def test_a_conversation_that_begins_anew_is_heard_by_the_bot_again() -> None:
    service = Remembering()
    pool = make_pool(service)
    for _ in range(2):
        await reply(make_bot(pool, "one", session="user"))
    first, second = (body["user"] for body in service.bodies)
    assert first != second


async def test_replies_are_replayed_by_conversation() -> None:
    recording = Recording()
    pool = make_pool(Remembering(), recording)
    for name in ("one", "two"):
        await reply(make_bot(pool, name, session=IN_HEADER, stateful=True))
    recording.replaying = True
    silent = Remembering()
    again = make_pool(silent, recording)
    replies = [
        await reply(make_bot(again, name, session=IN_HEADER, stateful=True)) for name in ("two", "one")
    ]
    assert (replies, silent.requests) == (["Reply 2.", "Reply 1."], [])


async def test_without_a_session_the_key_of_a_recorded_answer_is_as_ever() -> None:
    recording = Recording()
    await reply(make_bot(make_pool(Remembering(), recording), "one"), ASKED)
    message = {"role": "user", "name": "user", "content": ASKED[0].text}
    body = {"model": "m", "stream": False, "messages": [message], "seed": turn_seed(0, ASKED)}
    assert recording.get("model", digest([URL, "chat/completions", body])) is not None


def test_without_a_session_a_bot_has_the_version_that_it_had() -> None:
    options = {"base_url": URL, "model": "m"}
    said_so = {**options, "session": None, "stateful": False}
    assert compute_chatbot_version("endpoint", said_so) == compute_chatbot_version("endpoint", options)
    told = {**options, "session": "user"}
    assert compute_chatbot_version("endpoint", told) != compute_chatbot_version("endpoint", options)


def test_a_bot_with_a_session_remembers() -> None:
    pool = make_pool(Remembering())
    assert has_memory(make_bot(pool, session="user"))
    assert not has_memory(make_bot(pool))


async def test_a_stateful_bot_is_sent_a_message_once() -> None:
    service = Remembering(httpx2.ReadError("gone"))
    with pytest.raises(ChatbotError, match="cannot be reached"):
        await reply(make_bot(make_pool(service), session="user", stateful=True))
    assert len(service.requests) == 1


async def test_what_is_tried_out_is_no_message_of_the_conversation() -> None:
    """A refusal that names no argument is looked into: what the bot takes then is said in other sessions."""
    service = Remembering(refused="seed")
    bot = make_bot(make_pool(service), session="user", stateful=True)
    await reply(bot)
    heard = [body["user"] for body in service.bodies if "seed" not in body]
    assert len(heard) > 1
    assert heard.count(bot._id) == 1
    assert heard[-1] == bot._id


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"stateful": True}, "say in `session` where: `user`, or {header: X-Session-Id}"),
        ({"session": "cookie"}, "'cookie' is no place for a session; give `user`, or {header: X-Session-Id}"),
        ({"session": {"name": "X"}}, "session"),
        ({"session": {"header": "Authorization"}}, "'Authorization' is no header for a session"),
        ({"session": {"header": "two words"}}, "'two words' is no header for a session"),
        ({"session": "user", "extra": {"user": "me"}}, "`session` and `extra` both set the field `user`"),
        (
            {"session": IN_HEADER, "headers": {"x-session-id": "1"}},
            "`session` and `headers` both set `X-Session-Id`",
        ),
        ({"session": "user", "base_url": None}, "`session` belongs to a `base_url`"),
    ],
)
def test_options_that_cannot_be_are_named(options: dict[str, Any], complaint: str) -> None:
    assert complaint in refusal(make_bot, make_pool(Remembering()), **options)
