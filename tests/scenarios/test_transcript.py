"""The vocabulary: which numbers it refuses, and what a history is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from hallulab.scenarios.transcript import (
    Branch,
    Call,
    Conversation,
    Judgement,
    Passage,
    Span,
    Turn,
    Unit,
    Verdict,
)
from hallulab.scenarios.turn_views import TurnView
from tests.builders import branched, conversation

CALL: dict[str, Any] = {
    "purpose": "user.message", "model": "m", "prompt_tokens": None, "completion_tokens": None,
    "latency_s": 0.0,
}  # fmt: skip
PASSAGE: dict[str, Any] = {"id": "d#0", "document": "d", "text": "t"}
TURN: dict[str, Any] = {"index": 0, "user": "u", "reply": "r"}
CONVERSATION: dict[str, Any] = {
    "id": "c", "scenario": "s", "persona": "p", "chatbot": "b", "model": "m", "seed": 0, "turns": (),
    "stop_reason": "loop",
}  # fmt: skip
VERDICT: dict[str, Any] = {
    "conversation": "c", "turn": 0, "detector": "d", "version": "v", "outcome": "failed", "error": "e",
}  # fmt: skip
JUDGEMENT: dict[str, Any] = {"outcome": "scored", "score": 1.0, "flagged": True}
PLACE: dict[str, Any] = {"start": 0, "end": 10**12, "text": "a"}
INFINITE = (math.nan, math.inf, -math.inf)
UNCOUNTABLE = (-1, 10**12 + 1)


@pytest.mark.parametrize(
    ("kind", "fields", "name", "values"),
    [
        (Judgement, JUDGEMENT, "score", (*INFINITE, 1.7e308)),
        (Judgement, JUDGEMENT, "word_scores", [(one,) for one in (*INFINITE, 1.7e308)]),
        (Span, PLACE, "score", INFINITE),
        (Span, PLACE, "severity", INFINITE),
        (Span, PLACE, "start", UNCOUNTABLE),
        (Unit, PLACE, "score", INFINITE),
        (Unit, PLACE, "start", UNCOUNTABLE),
        (Unit, PLACE, "details", [{"P": math.nan}]),
        (Call, CALL, "latency_s", (*INFINITE, -0.1, 1.7e308)),
        (Call, CALL, "prompt_tokens", UNCOUNTABLE),
        (Call, CALL, "completion_tokens", UNCOUNTABLE),
        (Call, CALL, "cached_tokens", UNCOUNTABLE),
        (Passage, PASSAGE, "score", (*INFINITE, 1.7e308)),
        (Turn, TURN, "index", UNCOUNTABLE),
        (Verdict, VERDICT, "turn", UNCOUNTABLE),
        (Conversation, CONVERSATION, "seed", (-(2**63) - 1, 2**63)),
    ],
)
def test_a_number_that_cannot_be_is_refused(
    kind: type[BaseModel], fields: dict[str, Any], name: str, values: Sequence[object]
) -> None:
    for value in values:
        with pytest.raises(ValidationError, match=name):
            kind.model_validate({**fields, name: value})


def test_what_is_plausible_is_taken() -> None:
    Call.model_validate({**CALL, "prompt_tokens": 10**12, "latency_s": 1e9})
    Passage.model_validate({**PASSAGE, "score": -1.0})
    Turn.model_validate({**TURN, "index": 3})
    Verdict.model_validate({**VERDICT, "turn": 3})
    Conversation.model_validate({**CONVERSATION, "seed": -(2**63)})


@pytest.mark.parametrize(
    ("indices", "complaint"),
    [((1,), "`turns.0.index` is 1"), ((0, 0), "`turns.1.index` is 0"), ((0, 2, 1), "`turns.1.index` is 2")],
)
def test_turns_are_numbered_in_order(indices: tuple[int, ...], complaint: str) -> None:
    turns = [{**TURN, "index": index} for index in indices]
    with pytest.raises(ValidationError, match=f"{complaint}; turns are numbered from 0, in order"):
        Conversation.model_validate({**CONVERSATION, "turns": turns})


def test_a_branched_conversations_history_begins_with_what_was_given() -> None:
    held = branched("b", "My reply.", turn=2)
    assert [message.text for message in held.history(1)] == [
        *("Hi there", "Hello.") * 2,
        "Hi there",
        "My reply.",
    ]
    assert [turn.reply for turn in held.turns] == ["My reply."]
    assert (held.depth(0), held.depth(1)) == (2, 3)


def test_a_conversation_from_its_beginning_was_given_nothing() -> None:
    held = conversation("c", ["One.", "Two."])
    assert (held.branch, held.given, held.depth(1)) == (None, (), 1)


@pytest.mark.parametrize(
    ("turn", "roles"),
    [
        (1, ["user"]),
        (1, ["assistant", "user"]),
        (1, ["user", "assistant", "user"]),
        (0, ["user", "assistant"]),
        (10**12, []),
    ],
)
def test_the_history_of_a_branch_leads_to_its_turn(turn: int, roles: list[str]) -> None:
    history = [{"role": role, "text": "x"} for role in roles]
    with pytest.raises(
        ValidationError, match=f"`history` does not lead to turn {turn}: a message of the user"
    ):
        Branch.model_validate({"conversation": "c", "turn": turn, "history": history})


SAYS = Passage(id="a#1", document="a", text="A card is free.")
BLANKS = tuple(
    Passage(id=f"a#{text!r}", document="a", text=text) for text in ("", " ", "\n\t", "\u200b\ufeff")
)


def test_a_blank_passage_is_none_to_whoever_reads_a_turn() -> None:
    assert Turn(index=0, user="u", reply="r", passages=(*BLANKS, SAYS)).passages == (SAYS,)
    held = Turn(index=0, user="u", reply="r", passages=(SAYS,)).model_dump()
    held["passages"] += tuple(one.model_dump() for one in BLANKS)
    assert Turn.model_validate(held).passages == (SAYS,)


def test_a_blank_passage_is_none_to_whoever_judges() -> None:
    assert TurnView(question="q", reply="r", passages=(*BLANKS, SAYS)).passages == (SAYS,)
    assert TurnView(question="q", reply="r", passages=BLANKS).passages == ()


def test_a_turn_without_a_goal_is_written_as_ever() -> None:
    turn = Turn(index=0, user="When?", reply="In May.")
    assert "goal" not in turn.model_dump_json()
    about = turn.model_copy(update={"goal": "Learn the time"})
    assert Turn.model_validate_json(about.model_dump_json()) == about
