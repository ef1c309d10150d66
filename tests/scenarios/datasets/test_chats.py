from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.datasets import load_labelled
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.labelled import GoldSpan, LabelledData
from hallulab.scenarios.transcript import Message

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


def refused(folder: Path, *turns: dict[str, Any], **changes: Any) -> str:
    with pytest.raises(UsageError) as raised:
        load(folder, *turns, **changes)
    return str(raised.value).replace(f"{folder}/", "")


def test_an_annotated_turn_becomes_a_labelled_reply(tmp_path: Path) -> None:
    (reply,) = load(tmp_path, ANSWER)
    assert (reply.id, reply.group, reply.task, reply.dataset) == ("c1-0", "c1", "dialogue", "detector-eval")
    assert (reply.question, reply.reply) == ("What is the fee?", "It is Rs 500. Call 1915. It is Rs 500.")
    assert [(passage.id, passage.text) for passage in reply.passages] == [
        ("passage#0", "The fee is Rs 200."),
        ("h#1", "Call 1915."),
    ]
    assert (reply.label, reply.spans) == (True, (GoldSpan(start=6, end=12),))
    assert reply.meta == {"conversation": "c1", "model": "vanilla", "turn": 0}


def test_the_second_equal_quotation_is_the_second_place(tmp_path: Path) -> None:
    found = [{"text": "Rs 500"}, {"text": "Call 1915."}, {"text": "Rs 500", "label": "conflict"}]
    (reply,) = load(tmp_path, ANSWER | {"hallucinations": found})
    assert reply.spans == (
        GoldSpan(start=6, end=12),
        GoldSpan(start=14, end=24),
        GoldSpan(start=31, end=37, label="conflict"),
    )


def test_a_turn_without_findings_is_clean(tmp_path: Path) -> None:
    (reply,) = load(tmp_path, ANSWER | {"hallucinations": []})
    assert (reply.label, reply.spans) == (False, ())


def test_turns_that_cannot_be_measured_on_are_counted_and_stay_in_the_dialogue(tmp_path: Path) -> None:
    unlabelled = {"user": "Well?", "reply": "Yes."}
    data = load(tmp_path, GREETING, unlabelled, ANSWER)
    assert data.left_out == {"no evidence": 1, "unlabelled": 1}
    (reply,) = data
    assert reply.id == "c1-2"
    assert reply.history == (
        Message(role="user", text="Hi."),
        Message(role="assistant", text="Hello!"),
        Message(role="user", text="Well?"),
        Message(role="assistant", text="Yes."),
    )


def test_a_quotation_that_does_not_stand_in_the_reply_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, GREETING, ANSWER | {"hallucinations": [{"text": "Rs 900"}]}) == (
        "chats.jsonl, line 1: turns.1: the hallucination 'Rs 900' does not stand in the reply. "
        "Correct it; see docs/labelled-data.md."
    )


def test_a_quotation_more_often_than_in_the_reply_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, ANSWER | {"hallucinations": [{"text": "Rs 500"}] * 3}) == (
        "chats.jsonl, line 1: turns.0: the hallucination 'Rs 500' is given more often than it stands in the "
        "reply. Correct it; see docs/labelled-data.md."
    )


def test_a_chat_needs_turns(tmp_path: Path) -> None:
    assert refused(tmp_path) == (
        "chats.jsonl, line 1: turns: is empty; give at least 1. Correct it; see docs/labelled-data.md."
    )


def test_a_repeated_chat_is_refused(tmp_path: Path) -> None:
    load(tmp_path, ANSWER)
    file = tmp_path / "chats.jsonl"
    file.write_text(file.read_text() * 2)
    with pytest.raises(UsageError, match=r"line 2: id: c1 occurs before\. Give each line its own id\.$"):
        load_labelled("detector-eval", tmp_path)


def test_there_are_no_parts(tmp_path: Path) -> None:
    load(tmp_path, ANSWER)
    with pytest.raises(UsageError, match=r"^--source x: detector-eval has no parts\. Leave it out\.$"):
        load_labelled("detector-eval", tmp_path, "x")
