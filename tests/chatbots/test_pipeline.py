"""Prompt strategies and citations with each of our five chatbots, and replies without labels."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.agents.models.prompt import load_prompt
from hallulab.chatbots.pipeline import DECLINED, STRATEGIES, extract_conclusion, is_refusal, tidy_reply
from hallulab.chatbots.registry import make_chatbot
from tests.chatbots.stage import ASKED, stage, step_of

BOTS = ("vanilla", "prompt-engineered", "editor", "fact-checker", "agent")


def system_of(requests: list[dict[str, Any]], step: str = "generate") -> str:
    [system] = {body["messages"][0]["content"] for body in requests if step_of(body) == step}
    return str(system)


async def drafted(kind: str, **options: Any) -> str:
    """The instructions of a bot's draft."""
    context, transport, _ = stage(options=options)
    await make_chatbot(kind, context).reply(ASKED)
    return system_of(transport.requests)


@pytest.mark.parametrize("kind", BOTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_strategy_is_the_end_of_a_drafts_instructions(kind: str, strategy: str) -> None:
    own = await drafted(kind)
    text = load_prompt("hallulab.chatbots", f"strategy_{strategy}").fill()[0].text
    assert await drafted(kind, strategy=strategy) == f"{own}\n\n{text}"


@pytest.mark.parametrize("kind", BOTS)
async def test_citations_are_asked_for_last(kind: str) -> None:
    own = await drafted(kind, strategy="hedge")
    text = load_prompt("hallulab.chatbots", "cite").fill()[0].text
    assert await drafted(kind, strategy="hedge", cite=True) == f"{own}\n\n{text}"


@pytest.mark.parametrize("kind", BOTS)
async def test_a_refusal_is_the_reply_and_nobody_edits_it(kind: str) -> None:
    context, transport, _ = stage({"generate": f"{DECLINED}."}, options={"strategy": "hedge"})
    reply = await make_chatbot(kind, context).reply(ASKED)
    assert reply.text == f"{DECLINED}."
    assert {step_of(body) for body in transport.requests} <= {"reformulate", "route", "generate"}


@pytest.mark.parametrize("kind", ["vanilla", "agent"])
async def test_verify_keeps_its_steps_out_of_the_reply(kind: str) -> None:
    answer = "1. Document 1 says 7.\n2. They agree.\nAnswer: It opens at 7. [1]"
    context, _, _ = stage({"generate": answer}, options={"strategy": "verify", "cite": True})
    reply = await make_chatbot(kind, context).reply(ASKED)
    assert reply.text == "It opens at 7. [1]"
    assert answer in [step.text for step in reply.steps if step.name == "draft"]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("I_DECLINE_TO_ANSWER", True),
        ("**I_DECLINE_TO_ANSWER.** The documents differ.", True),
        ("[I decline to answer]", True),
        ("It opens at 7, else I_DECLINE_TO_ANSWER.", False),
        ("I cannot answer.", False),
        ("", False),
    ],
)
def test_a_refusal_begins_with_the_marker(reply: str, expected: bool) -> None:
    assert is_refusal(reply) is expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("1. a\n2. b\n**Answer:** At 7.", "At 7."),
        ("Answer: no\nFinal answer: At 7.", "At 7."),
        ("1. a\n2. b", "1. a\n2. b"),
        ("1. a\nAnswer:", "1. a\nAnswer:"),
    ],
)
def test_a_conclusion_follows_the_last_answer_line(reply: str, expected: str) -> None:
    assert extract_conclusion(reply) == expected


@pytest.mark.parametrize(
    ("text", "tidy"),
    [
        ("It opens at 7.", "It opens at 7."),
        ("Assistant: It opens at 7.", "It opens at 7."),
        ("**Assistant:** It opens at 7.", "It opens at 7."),
        ("Corrected reply:\nAssistant: Hello.", "Hello."),
        ("Hello.\n\nUser: and on Sunday?\nAssistant: At 9.", "Hello."),
        ("Hello.\n**User:** thanks", "Hello."),
        ("Hello.\nAssistant: Hello.", "Hello."),
        ("Hello.<|im_end|>\n<|im_start|>user", "Hello."),
        ("Ask the user: when was it?", "Ask the user: when was it?"),
        ("Dear Sir,\nCustomer: P. Miller\nYours", "Dear Sir,\nCustomer: P. Miller\nYours"),
        ("User: Thanks", ""),
        ("Assistant:", ""),
    ],
)
def test_labels_go_and_the_next_speaker_is_cut(text: str, tidy: str) -> None:
    assert tidy_reply(text) == tidy


@given(st.text())
def test_tidying_twice_changes_nothing(text: str) -> None:
    assert tidy_reply(tidy_reply(text)) == tidy_reply(text)
