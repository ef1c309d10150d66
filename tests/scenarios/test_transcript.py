"""The vocabulary: which numbers it refuses, and what a history is."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import ValidationError

from hallulab.scenarios.transcript import (
    Branch,
    Call,
    Conversation,
    Judgement,
    Passage,
    Span,
    Turn,
    TurnView,
    Unit,
    Verdict,
)
from tests.builders import branched, conversation

INFINITE = pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])


@INFINITE
def test_a_judgements_score_is_finite(value: float) -> None:
    with pytest.raises(ValidationError, match="finite"):
        Judgement(outcome="scored", score=value, flagged=False)


@INFINITE
@pytest.mark.parametrize("field", ["score", "severity"])
def test_a_spans_numbers_are_finite(field: str, value: float) -> None:
    with pytest.raises(ValidationError, match="finite"):
        Span.model_validate({"start": 0, "end": 1, "text": "a", field: value})


@INFINITE
def test_a_units_score_is_finite(value: float) -> None:
    with pytest.raises(ValidationError, match="finite"):
        Unit(text="a", score=value)


CALL: dict[str, Any] = {
    "purpose": "user.message",
    "model": "m",
    "prompt_tokens": None,
    "completion_tokens": None,
    "latency_s": 0.0,
}
PASSAGE: dict[str, Any] = {"id": "d#0", "document": "d", "text": "t"}
TURN: dict[str, Any] = {"index": 0, "user": "u", "reply": "r"}
CONVERSATION: dict[str, Any] = {
    "id": "c",
    "scenario": "s",
    "persona": "p",
    "chatbot": "b",
    "model": "m",
    "seed": 0,
    "turns": (),
    "stop_reason": "loop",
}
VERDICT: dict[str, Any] = {
    "conversation": "c",
    "turn": 0,
    "detector": "d",
    "version": "v",
    "outcome": "failed",
    "error": "e",
}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.1, 1.7e308])
def test_a_latency_is_a_time_that_can_have_passed(value: float) -> None:
    with pytest.raises(ValidationError, match="latency_s"):
        Call.model_validate({**CALL, "latency_s": value})


@pytest.mark.parametrize("field", ["prompt_tokens", "completion_tokens", "cached_tokens"])
@pytest.mark.parametrize("value", [-1, 10**12 + 1])
def test_a_number_of_tokens_is_a_count(field: str, value: int) -> None:
    with pytest.raises(ValidationError, match=field):
        Call.model_validate({**CALL, field: value})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1.7e308])
def test_a_passages_score_is_bounded(value: float) -> None:
    with pytest.raises(ValidationError, match="score"):
        Passage.model_validate({**PASSAGE, "score": value})


def test_scores_of_a_judgement_can_be_added_up() -> None:
    with pytest.raises(ValidationError, match="score"):
        Judgement(outcome="scored", score=1.7e308, flagged=True)
    with pytest.raises(ValidationError, match="word_scores"):
        Judgement(outcome="scored", score=1.0, flagged=True, word_scores=(1.7e308,))
    with pytest.raises(ValidationError, match="details"):
        Unit(text="a", details={"P": math.nan})


@pytest.mark.parametrize("value", [-1, 10**12 + 1])
def test_places_are_counted_from_the_beginning(value: int) -> None:
    for kind, fields in ((Turn, TURN | {"index": value}), (Verdict, VERDICT | {"turn": value})):
        with pytest.raises(ValidationError, match=r"index|turn"):
            kind.model_validate(fields)
    for kind in (Span, Unit):
        with pytest.raises(ValidationError, match="start"):
            kind.model_validate({"start": value, "end": 10**12, "text": "a"})


@pytest.mark.parametrize("value", [-(2**63) - 1, 2**63])
def test_a_seed_has_64_bits(value: int) -> None:
    with pytest.raises(ValidationError, match="seed"):
        Conversation.model_validate({**CONVERSATION, "seed": value})


def test_what_is_plausible_is_taken() -> None:
    Call.model_validate({**CALL, "prompt_tokens": 10**12, "latency_s": 1e9})
    Passage.model_validate({**PASSAGE, "score": -1.0})
    Turn.model_validate({**TURN, "index": 3})
    Verdict.model_validate({**VERDICT, "turn": 3})
    Conversation.model_validate({**CONVERSATION, "seed": -(2**63)})


@pytest.mark.parametrize(
    ("indices", "complaint"),
    [
        ((1,), "`turns.0.index` is 1"),
        ((0, 0), "`turns.1.index` is 0"),
        ((0, 2, 1), "`turns.1.index` is 2"),
    ],
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
