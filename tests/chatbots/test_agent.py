"""AgentBot with handoffs, on an endpoint whose model calls functions."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from hallulab.agents.models.prompt import load_prompt
from hallulab.chatbots.agent import AgentBot
from hallulab.chatbots.protocol import ChatbotError
from hallulab.scenarios.errors import ReplayMiss, UsageError
from hallulab.scenarios.packs.pack import Specialist
from hallulab.testing.scripted import ScriptedTransport, completion
from tests.chatbots.stage import ASKED, HOURS, LATER, SCENARIO, Shelf, stage

HANDOFF = {"routing": "handoff"}


def calling(name: str, **arguments: str) -> httpx2.Response:
    """An answer that calls a function."""
    body = completion("unused")
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    body["choices"][0] |= {
        "message": {"role": "assistant", "content": None, "tool_calls": [call]},
        "finish_reason": "tool_calls",
    }
    return httpx2.Response(200, json=body)


def team(body: dict[str, Any]) -> Any:
    """Hands over to the attendant, who searches and answers."""
    if "tools" not in body and body["messages"][-1]["role"] != "tool":
        return "When does the indoor pool open?"
    names = [tool["function"]["name"] for tool in body.get("tools", [])]
    if "transfer_to_attendant" in names:
        return calling("transfer_to_attendant")
    if body["messages"][-1]["role"] == "tool":
        return " It opens at 7. "
    return calling("search", query="opening hours")


def bot_of(script: Any) -> tuple[AgentBot, ScriptedTransport, Shelf]:
    context, transport, shelf = stage(options=HANDOFF)
    transport._script = script
    return AgentBot(context), transport, shelf


async def test_the_receptionist_hands_over_to_a_specialist_who_searches_and_answers() -> None:
    bot, transport, shelf = bot_of(team)
    reply = await bot.reply(LATER)
    alone = "When does the indoor pool open?"
    assert (reply.text, reply.query, reply.passages) == ("It opens at 7.", alone, (HOURS,))
    assert [(step.name, step.text) for step in reply.steps] == [
        ("reformulated_query", alone),
        ("searched", "opening hours"),
        ("route", "attendant"),
        ("draft", "It opens at 7."),
    ]
    purposes = [call.purpose.removeprefix("chatbot.") for call in reply.calls]
    assert purposes == ["reformulate", "route", "answer", "answer"]
    assert [call.finish_reason for call in reply.calls[1:]] == ["function_calls", "function_calls", "stop"]
    assert shelf.searched == [("opening hours", 4)]
    _, route, first, second = transport.requests
    offered = {tool["function"]["name"]: tool["function"]["description"] for tool in route["tools"]}
    assert offered == {
        "transfer_to_attendant": "Attendant: tells opening hours",
        "transfer_to_drafter": "Clerk: writes letters to the pool",
    }
    assert [body.get("tool_choice") for body in (route, first, second)] == ["required", "required", None]
    assert route["messages"][-1]["content"] == (
        "Conversation so far:\nUser: I want to swim.\nAssistant: Which pool?\n\n"
        "Message: The indoor one. When does it open?\nOn its own: When does the indoor pool open?"
    )
    assert "you are the Attendant. Your duty: tells opening hours." in first["messages"][0]["content"]
    shown = "[1] Opening hours\nThe pool opens at 7."
    assert second["messages"][-1] == {"role": "tool", "tool_call_id": "c1", "content": shown}


async def test_a_first_message_is_handed_over_as_it_is() -> None:
    bot, transport, _ = bot_of(team)
    reply = await bot.reply(ASKED)
    assert reply.query == "opening hours"
    assert transport.requests[0]["messages"][-1]["content"] == (
        "Conversation so far:\n(nothing yet)\n\nMessage: When does it open?"
    )


async def test_a_drafter_is_told_to_write_a_document_and_others_to_inform() -> None:
    def to_drafter(body: dict[str, Any]) -> Any:
        names = [tool["function"]["name"] for tool in body.get("tools", [])]
        return calling("transfer_to_drafter") if "transfer_to_drafter" in names else team(body)

    told = []
    for script in (to_drafter, team):
        bot, transport, _ = bot_of(script)
        await bot.reply(ASKED)
        told.append(transport.requests[1]["messages"][0]["content"])
    drafter, attendant = told
    assert "you are the Clerk. Your duty: writes letters to the pool." in drafter
    assert "leave a blank in square brackets" in drafter
    assert drafter.endswith("Use at most 130 words.")
    assert "short, friendly sentences" not in drafter
    assert attendant.endswith("Write two to five short, friendly sentences, no list.")


REFUSED = httpx2.Response(400, json={"error": {"message": "no tools here"}})


@pytest.mark.parametrize(
    ("answer", "told", "calls"),
    [
        ("It opens at 7.", "route: the receptionist hands over to none of attendant, drafter.", 1),
        (None, "answer: the team came to no answer in 12 messages.", 12),
        (REFUSED, "refused the request with status 400: no tools here", 1),
    ],
    ids=["the receptionist answers itself", "nobody answers", "the model fails"],
)
async def test_a_team_without_an_answer_is_a_failure_with_its_reason_and_calls(
    answer: Any, told: str, calls: int
) -> None:
    bot, _, _ = bot_of(lambda _: answer or calling("transfer_to_nobody"))
    with pytest.raises(ChatbotError) as caught:
        await bot.reply(ASKED)
    assert told in str(caught.value)
    assert [call.purpose for call in caught.value.calls][:1] == ["chatbot.route"]
    assert len(caught.value.calls) <= calls


async def test_a_stale_recording_ends_the_run() -> None:
    bot, transport, _ = bot_of(team)
    bot.context.models.recording.replaying = True
    with pytest.raises(ReplayMiss):
        await bot.reply(ASKED)
    assert transport.requests == []


async def test_a_search_that_fails_is_a_failure_with_its_reason() -> None:
    bot, _, shelf = bot_of(team)

    async def missing(query: str, k: int) -> Any:
        raise ReplayMiss("the recording has no such search")

    shelf.search = missing  # type: ignore[method-assign]
    with pytest.raises(ReplayMiss, match="no such search"):
        await bot.reply(ASKED)


def test_a_name_that_no_function_has_is_said_before_a_run() -> None:
    odd = SCENARIO.model_copy(update={"specialists": (Specialist(name="pool-clerk", title="C", duty="d"),)})
    context, _, _ = stage(options=HANDOFF, scenario=odd)
    with pytest.raises(UsageError, match="specialist 'pool-clerk': to be handed over to, it needs a name"):
        AgentBot(context)


def with_function_calls(bot: AgentBot) -> AgentBot:
    """The bot, with an endpoint whose probe handed over rightly."""
    client = bot.context.models.get()
    client.abilities = client.abilities.model_copy(update={"function_calls": True})
    return bot


async def test_by_default_it_hands_over_where_the_endpoint_can() -> None:
    context, transport, _ = stage()
    bot = AgentBot(context)
    assert bot.parts_version == ""
    assert "handed" not in str((await bot.reply(ASKED)).steps)
    assert not any("tools" in body for body in transport.requests)
    transport._script = team
    reply = await with_function_calls(bot).reply(ASKED)
    assert (bot.parts_version, reply.text) == ("handoff", "It opens at 7.")
    assert [call.purpose for call in reply.calls] == ["chatbot.route", "chatbot.answer", "chatbot.answer"]


async def test_by_default_a_name_that_no_function_has_is_routed_by_a_letter() -> None:
    odd = SCENARIO.model_copy(update={"specialists": (Specialist(name="pool-clerk", title="C", duty="d"),)})
    context, transport, _ = stage(scenario=odd)
    await with_function_calls(AgentBot(context)).reply(ASKED)
    assert not any("tools" in body for body in transport.requests)


async def test_the_specialist_is_told_strategy_and_citations_and_only_its_conclusion_counts() -> None:
    context, transport, _ = stage(options={**HANDOFF, "strategy": "verify", "cite": True})

    def checking(body: dict[str, Any]) -> Any:
        return "1. It says 7.\nAnswer: At 7 [1]." if body["messages"][-1]["role"] == "tool" else team(body)

    transport._script = checking
    reply = await AgentBot(context).reply(ASKED)
    assert reply.text == "At 7 [1]."
    route, specialist, _ = (body["messages"][0]["content"] for body in transport.requests)
    told = [load_prompt("hallulab.chatbots", name).fill()[0].text for name in ("strategy_verify", "cite")]
    assert specialist.endswith("\n\n".join(told))
    assert told[0] not in route


async def test_a_document_keeps_its_number_over_all_searches() -> None:
    context, transport, shelf = stage(options=HANDOFF)
    tickets = HOURS.model_copy(update={"id": "tickets#0", "text": "Tickets\n6 euros."})
    finds = iter([(HOURS,), (tickets, HOURS)])

    async def search(query: str, k: int) -> Any:
        return next(finds)

    shelf.search = search  # type: ignore[method-assign]

    def twice(body: dict[str, Any]) -> Any:
        found = sum(message["role"] == "tool" for message in body["messages"])
        return calling("search", query="more") if found == 1 else team(body)

    transport._script = twice
    reply = await AgentBot(context).reply(ASKED)
    assert [passage.id for passage in reply.passages] == ["hours#0", "tickets#0"]
    shown = transport.requests[-1]["messages"][-1]["content"]
    assert shown == "[2] Opening hours\nTickets\n6 euros.\n\n[1] Opening hours\nThe pool opens at 7."
