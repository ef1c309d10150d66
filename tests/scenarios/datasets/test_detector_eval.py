from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.datasets import load_labelled
from hallulab.scenarios.labelled import GoldSpan, LabelledData
from hallulab.scenarios.transcript import Message
from tests.kit.refusals import refusal

GREETING = {"user": "Hi.", "reply": "Hello!", "hallucinations": []}
ANSWER = {
    "user": "What is the fee?",
    "reply": "It is Rs 500. Call 1915. It is Rs 500.",
    "passages": ["The fee is Rs 200.", {"text": "Call 1915.", "id": "h#1", "document": "helpline"}],
    "hallucinations": [{"text": "Rs 500", "reason": "It is Rs 200."}],
}


def load(folder: Path, *turns: dict[str, Any], **changes: Any) -> LabelledData:
    chat = {"id": "c1", "model": "vanilla", "turns": list(turns)} | changes
    (folder / "chats.jsonl").write_text(json.dumps(chat) + "\n")
    return load_labelled("detector-eval", folder)


def test_an_annotated_turn_becomes_a_labelled_reply(tmp_path: Path) -> None:
    (reply,) = load(tmp_path, ANSWER)
    assert (reply.id, reply.group, reply.task, reply.dataset) == ("c1-0", "c1", "dialogue", "detector-eval")
    assert (reply.question, reply.reply) == ("What is the fee?", "It is Rs 500. Call 1915. It is Rs 500.")
    assert [(passage.id, passage.text) for passage in reply.passages] == [
        ("passage#0", "The fee is Rs 200."),
        ("h#1", "Call 1915."),
    ]
    assert (reply.label, reply.spans) == (True, (GoldSpan(start=6, end=12),))
    (clean,) = load(tmp_path, ANSWER | {"hallucinations": []})
    assert (clean.label, clean.spans) == (False, ())
    assert reply.meta == {"conversation": "c1", "model": "vanilla", "turn": 0}


def test_the_second_equal_quotation_is_the_second_place(tmp_path: Path) -> None:
    found = [{"text": "Rs 500"}, {"text": "Call 1915."}, {"text": "Rs 500", "label": "conflict"}]
    (reply,) = load(tmp_path, ANSWER | {"hallucinations": found})
    assert reply.spans == (
        GoldSpan(start=6, end=12),
        GoldSpan(start=14, end=24),
        GoldSpan(start=31, end=37, label="conflict"),
    )


def test_turns_that_cannot_be_measured_on_are_counted_and_stay_in_the_dialogue(tmp_path: Path) -> None:
    unlabelled = {"user": "Well?", "reply": "Yes."}
    data = load(tmp_path, GREETING, unlabelled, ANSWER)
    assert data.left_out == {"no evidence": 1, "unlabelled": 1}
    (reply,) = data
    assert (reply.id, reply.label) == ("c1-2", True)
    assert reply.history == (
        Message(role="user", text="Hi."),
        Message(role="assistant", text="Hello!"),
        Message(role="user", text="Well?"),
        Message(role="assistant", text="Yes."),
    )


@pytest.mark.parametrize(
    ("quotations", "how"),
    [
        ([{"text": "Rs 900"}], "'Rs 900' does not stand"),
        ([{"text": "Rs 500"}] * 3, "'Rs 500' is given more often than it stands"),
    ],
)
def test_a_quotation_without_a_place_is_refused(
    quotations: list[dict[str, str]], how: str, tmp_path: Path
) -> None:
    assert refusal(load, tmp_path, GREETING, ANSWER | {"hallucinations": quotations}) == (
        f"chats.jsonl, line 1: turns.1: the hallucination {how} in the reply. "
        "Correct it; see docs/labelled-data.md."
    )


def test_a_chat_needs_turns(tmp_path: Path) -> None:
    assert refusal(load, tmp_path) == (
        "chats.jsonl, line 1: turns: is empty; give at least 1. Correct it; see docs/labelled-data.md."
    )


def test_there_are_no_parts(tmp_path: Path) -> None:
    load(tmp_path, ANSWER)
    said = "--source x: detector-eval has no parts. Leave it out."
    assert refusal(load_labelled, "detector-eval", tmp_path, "x") == said
