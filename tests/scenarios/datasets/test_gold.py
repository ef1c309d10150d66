from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.datasets import load_labelled
from hallulab.scenarios.datasets.annotations import TurnPlace, read_annotated_turns, read_annotations
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.labelled import ChatbotTurn, GoldSpan
from hallulab.scenarios.transcript import Conversation, Message, Passage, Turn
from tests.builders import conversation
from tests.kit.refusals import refusal

FEE = Passage(id="fees#0", document="fees", text="The fee is Rs 200.", score=0.5, topic="money")
FIRST = Turn(index=0, user="Hi.", passages=(FEE,), reply="Hello!")
SECOND = Turn(index=1, user="The fee?", passages=(FEE,), reply="Rs 500. Call 1915. Rs 500.")
SPAN = {"quote": "Rs 500", "severity": 5, "reason": "It is Rs 200."}


def chat(name: str, chatbot: str = "vanilla", turns: tuple[Turn, ...] = (FIRST, SECOND)) -> Conversation:
    return conversation(name, [], chatbot, "ann", 1, scenario="pack", model="small", turns=turns)


def note(conversation: str, turn: int, key: str, *spans: dict[str, Any]) -> dict[str, Any]:
    return {"conversation": conversation, "turn": turn, "key": key, "spans": spans, "claims": True}


def write(folder: Path, chats: list[Conversation], notes: list[dict[str, Any]]) -> Path:
    folder.mkdir(exist_ok=True)
    journal = "".join(one.model_dump_json() + "\n" for one in chats)
    (folder / "conversations.jsonl").write_text(journal)
    (folder / "annotations.jsonl").write_text("".join(json.dumps(one) + "\n" for one in notes))
    return folder


def refused(folder: Path, chats: list[Conversation], *notes: dict[str, Any]) -> str:
    return refusal(load_labelled, "gold", write(folder, chats, list(notes)))


def test_an_annotated_turn_becomes_a_labelled_reply(tmp_path: Path) -> None:
    notes = [note("c1", 0, "k0"), note("c1", 1, "k1", SPAN)]
    greeting, answer = load_labelled("gold", write(tmp_path, [chat("c1")], notes))
    assert (greeting.label, greeting.spans, greeting.history) == (False, (), ())
    assert (answer.id, answer.dataset, answer.task, answer.group) == ("k1", "gold", "dialogue", "ann")
    assert (answer.question, answer.reply, answer.passages) == ("The fee?", SECOND.reply, (FEE,))
    assert answer.history == (Message(role="user", text="Hi."), Message(role="assistant", text="Hello!"))
    assert (answer.label, answer.spans) == (True, (GoldSpan(start=0, end=6),))
    assert answer.turns == (ChatbotTurn(chatbot="vanilla", conversation="c1", turn=1),)
    told = {"chatbot": "vanilla", "conversation": "c1", "turn": 1, "scenario": "pack", "model": "small"}
    assert answer.meta == told


@pytest.mark.parametrize("journal", ["conversations.jsonl", "annotations.jsonl"])
def test_a_last_line_that_a_killed_process_left_unfinished_is_skipped(
    tmp_path: Path, journal: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write(tmp_path, [chat("c1")], [note("c1", 1, "k1", SPAN)])
    with (folder / journal).open("a") as file:
        file.write('{"id": "c2", "scen')
    assert [reply.id for reply in load_labelled("gold", folder)] == ["k1"]
    assert f"{journal}: the last line is unfinished" in caplog.text


def test_replies_with_one_key_are_one_reply_with_all_its_turns(tmp_path: Path) -> None:
    chats = [chat("c1"), chat("c2", "editor")]
    notes = [note("c1", 1, "k1", SPAN), note("c2", 1, "k1", SPAN)]
    data = load_labelled("gold", write(tmp_path, chats, notes))
    assert data.left_out == {"unlabelled": 2}
    (answer,) = data
    assert answer.meta["chatbot"] == "vanilla"
    assert answer.turns == (
        ChatbotTurn(chatbot="vanilla", conversation="c1", turn=1),
        ChatbotTurn(chatbot="editor", conversation="c2", turn=1),
    )


def test_all_run_folders_of_a_folder_are_read(tmp_path: Path) -> None:
    write(tmp_path / "b", [chat("c2")], [note("c2", 0, "k2")])
    write(tmp_path / "a", [chat("c1")], [note("c1", 0, "k1")])
    (tmp_path / "replies.jsonl").write_text("not read")
    assert [reply.id for reply in load_labelled("gold", tmp_path)] == ["k1", "k2"]
    assert [reply.id for reply in load_labelled("gold", tmp_path / "b")] == ["k2"]


def test_a_conversation_that_is_annotated_in_two_run_folders_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, [chat("c1")], [note("c1", 1, "k1", SPAN)])
    with pytest.raises(UsageError) as raised:
        load_labelled("gold", tmp_path)
    assert str(raised.value) == (
        f"{tmp_path}/b: conversation c1 is annotated in {tmp_path}/a, too, as the two runs are of one "
        "experiment. Measure on one of them at a time."
    )


def test_turns_without_evidence_are_left_out(tmp_path: Path) -> None:
    bare = Turn(index=0, user="Hi.", reply="Hello!")
    data = load_labelled("gold", write(tmp_path, [chat("c1", turns=(bare,))], [note("c1", 0, "k0")]))
    assert (len(data), data.left_out) == (0, {"no evidence": 1})


@pytest.mark.parametrize(
    ("spans", "how"),
    [
        ([SPAN | {"quote": "Rs 900"}], "'Rs 900' does not stand"),
        ([SPAN] * 3, "'Rs 500' is given more often than it stands"),
    ],
)
def test_a_quotation_without_a_place_is_refused(
    spans: list[dict[str, Any]], how: str, tmp_path: Path
) -> None:
    assert refused(tmp_path, [chat("c1")], note("c1", 1, "k1", *spans)) == (
        f"annotations.jsonl, line 1: spans: the quotation {how} in the reply. Correct it."
    )


@pytest.mark.parametrize(
    ("notes", "complaint"),
    [
        (
            [note("c1", 0, "k"), note("c1", 2, "k2")],
            "line 2: conversations.jsonl has no turn 2 of conversation c1. Correct or delete the line.",
        ),
        (
            [note("c1", 0, "k"), note("c1", 0, "k")],
            "line 2: turn 0 of conversation c1 is annotated in line 1, too. Delete one of them.",
        ),
        (
            [note("c1", 0, "k"), note("c1", 1, "k")],
            "line 2: key: turn 0 of conversation c1 has the same key k, and another reply. "
            "Give each its own key.",
        ),
        (
            [note("c1", 1, "k"), note("c2", 1, "k", SPAN)],
            "line 2: key: turn 1 of conversation c1 has the same key k, and another annotation. "
            "Give each its own key.",
        ),
        (
            [{**note("c1", 0, "a"), "withdrawn": True}],
            "line 1: no line above it annotates turn 0 of conversation c1, so there is nothing to take back. "
            "Delete the line.",
        ),
    ],
)
def test_an_annotation_that_cannot_be_is_refused(
    notes: list[dict[str, Any]], complaint: str, tmp_path: Path
) -> None:
    assert refused(tmp_path, [chat("c1"), chat("c2")], *notes) == f"annotations.jsonl, {complaint}"


def test_a_conversation_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, [chat("c1"), chat("c1")], note("c1", 0, "k")) == (
        "conversations.jsonl, line 2: id: c1 occurs before. Give each line its own id."
    )


def test_a_folder_without_annotations_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"annotations\.jsonl: there is no such file\. Give the folder"):
        load_labelled("gold", tmp_path)
    with pytest.raises(UsageError, match=r"^gold: name the folder that holds annotations\.jsonl"):
        load_labelled("gold")


def test_a_line_that_was_taken_back_does_not_count_and_may_come_anew(tmp_path: Path) -> None:
    first = note("c1", 1, "a", SPAN)
    back = {**first, "withdrawn": True, "time": "2026-01-02T03:04:05Z"}
    notes = [first, back, note("c1", 1, "a"), note("c1", 0, "b")]
    write(tmp_path, [chat("c1")], notes)
    found = read_annotations(tmp_path / "annotations.jsonl")
    assert [(number, line.turn, line.spans) for number, line in found] == [(3, 1, ()), (4, 0, ())]


def test_a_turn_of_which_the_annotator_could_not_tell_counts_as_not_looked_at(tmp_path: Path) -> None:
    chats = [chat("c1")]
    write(tmp_path, chats, [{**note("c1", 0, "a"), "unknown": True}, note("c1", 1, "b")])
    found = read_annotated_turns(tmp_path / "annotations.jsonl", chats, find_none)
    assert ([one.line.turn for one in found.turns], found.left_out) == ([1], 0)


def find_none(places: Collection[TurnPlace]) -> Collection[TurnPlace]:
    """No turn stands in the journal but does not count."""
    return ()


def test_lines_about_conversations_that_do_not_count_any_more_are_left_out(tmp_path: Path) -> None:
    chats = [chat("c1")]
    write(tmp_path, chats, [note("old", 0, "a"), note("old", 1, "b"), note("c1", 0, "c")])
    found = read_annotated_turns(tmp_path / "annotations.jsonl", chats, lambda places: places)
    assert ([one.line.place for one in found.turns], found.left_out) == ([("c1", 0)], 2)


def test_a_line_about_a_conversation_that_the_run_never_had_is_refused(tmp_path: Path) -> None:
    write(tmp_path, [chat("c1")], [note("c1", 0, "a"), note("old", 1, "b")])
    with pytest.raises(UsageError, match=r"line 2: conversations\.jsonl has no turn 1 of conversation old"):
        read_annotated_turns(tmp_path / "annotations.jsonl", [chat("c1")], find_none)


def test_a_quotation_may_say_where_it_begins(tmp_path: Path) -> None:
    write(tmp_path, [chat("c1")], [note("c1", 1, "a", {**SPAN, "start": 19})])
    [found] = read_annotated_turns(tmp_path / "annotations.jsonl", [chat("c1")], find_none).turns
    assert found.spans == (GoldSpan(start=19, end=25),)
    assert refused(tmp_path, [chat("c1")], note("c1", 1, "a", {**SPAN, "start": 1})) == (
        "annotations.jsonl, line 1: spans: the quotation 'Rs 500' does not stand at 1 in the reply. "
        "Correct it."
    )


ASHA, BEN = "person:asha", "person:ben"


def settle(turn: int, *spans: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**note("c1", turn, "s", *spans), "annotator": BEN, "adjudicates": [ASHA, BEN], **more}


def differ(turn: int) -> list[dict[str, Any]]:
    return [{**note("c1", turn, "a", SPAN), "annotator": ASHA}, {**note("c1", turn, "b"), "annotator": BEN}]


@pytest.mark.parametrize("first", [True, False])
def test_what_was_settled_counts_wherever_its_line_stands(tmp_path: Path, first: bool) -> None:
    decision = settle(1, SPAN, SPAN)
    notes = [decision, *differ(1)] if first else [*differ(1), decision]
    (answer,) = load_labelled("gold", write(tmp_path, [chat("c1")], notes))
    assert (answer.id, answer.spans) == ("s", (GoldSpan(start=0, end=6), GoldSpan(start=19, end=25)))


@pytest.mark.parametrize(
    ("later", "counted"),
    [(settle(1, withdrawn=True), "a"), ({**differ(1)[0], "withdrawn": True}, "s")],
    ids=["the decision", "a label after the decision"],
)
def test_a_line_that_is_taken_back_after_a_decision(
    later: dict[str, Any], counted: str, tmp_path: Path
) -> None:
    notes = [*differ(1), settle(1), later]
    (answer,) = load_labelled("gold", write(tmp_path, [chat("c1")], notes))
    assert answer.id == counted


@pytest.mark.parametrize(
    ("decisions", "reason"),
    [
        (
            [settle(1), settle(1, annotator=ASHA)],
            "line 4: turn 1 of conversation c1 is adjudicated in line 3, too. Delete one of them.",
        ),
        (
            [settle(1, adjudicates=[ASHA, "person:cora"])],
            "line 3: adjudicates: no line annotates turn 1 of conversation c1 by person:cora under the same "
            "guideline. Correct the name.",
        ),
        (
            [settle(1, guideline="g")],
            f"line 3: adjudicates: no line annotates turn 1 of conversation c1 by {ASHA} ",
        ),
        ([settle(1, unknown=True)], "a line with `adjudicates` says what counts, so it cannot be `unknown`"),
        ([settle(1, adjudicates=["cora"])], "'cora' is no annotator"),
    ],
)
def test_a_decision_that_cannot_be_is_refused(
    tmp_path: Path, decisions: list[dict[str, Any]], reason: str
) -> None:
    assert reason in refused(tmp_path, [chat("c1")], *differ(1), *decisions)
