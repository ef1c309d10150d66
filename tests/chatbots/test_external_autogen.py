"""An AutoGen agent or team as the bot under test."""

from __future__ import annotations

import pytest

from hallulab.chatbots.evidence import lacks_evidence
from hallulab.chatbots.protocol import ChatbotError
from hallulab.chatbots.registry import make_chatbot
from hallulab.scenarios.transcript import Message
from tests.chatbots.stage import ASKED, stage
from tests.kit.refusals import refusal

HERE = "tests.chatbots.pool_team"


async def test_the_last_message_of_a_team_is_its_reply_and_it_remembers() -> None:
    bot = make_chatbot("autogen", stage(options={"target": f"{HERE}:team"})[0])
    first = await bot.reply(ASKED)
    assert (first.text, lacks_evidence(first), first.calls) == ("It opens at 7.", True, ())
    more = (*ASKED, Message(role="assistant", text=first.text), Message(role="user", text="The price?"))
    assert (await bot.reply(more)).text == "A ticket is 6 euros."
    with pytest.raises(ChatbotError, match=r"pool_team:team raised .*No more mock responses"):
        await bot.reply(more)


async def test_what_tools_returned_are_the_passages() -> None:
    bot = make_chatbot("autogen", stage(options={"target": f"{HERE}:reader"})[0])
    reply = await bot.reply(ASKED)
    assert reply.text == "At 7."
    assert [(one.document, one.text) for one in reply.passages] == [
        ("opening_hours", "The indoor pool opens at 7.")
    ]


@pytest.mark.parametrize(
    ("attribute", "text", "passages"),
    [
        ("stopping", "It opens at 7. TERMINATE", []),
        ("structured", "At 7.", ["It opens at 7."]),
        ("priced", "6 euros.", []),
    ],
)
async def test_a_message_of_another_kind_has_its_text(attribute: str, text: str, passages: list[str]) -> None:
    reply = await make_chatbot("autogen", stage(options={"target": f"{HERE}:{attribute}"})[0]).reply(ASKED)
    assert (reply.text, [one.text for one in reply.passages]) == (text, passages)


async def test_an_agent_itself_may_be_the_target() -> None:
    bot = make_chatbot("autogen", stage(options={"target": f"{HERE}:agent"})[0])
    assert (await bot.reply(ASKED)).text == "It opens at 7."


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        ("NUMBER", "is a int, not an AutoGen agent or team, or a function that makes one."),
        ("number", "makes a int, not an AutoGen agent or team, or a function that makes one."),
        ("broken", "makes no agent (it raised RuntimeError: no model)."),
    ],
)
def test_what_is_no_agent_is_said_before_the_first_message(attribute: str, reason: str) -> None:
    context, _, _ = stage(options={"target": f"{HERE}:{attribute}"})
    assert refusal(make_chatbot, "autogen", context) == f"{HERE}:{attribute}: {reason}"
