"""Guarded turns for tests: records as the guard writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hallulab.chatbots.guarded.record import STEP, Attempt, GuardRecord
from hallulab.scenarios.transcript import Call, Conversation, Span, Step, Turn
from tests.builders import conversation

SAFE = Span(start=0, end=4, text="Safe", score=0.9, reason="S = 0.90")


def attempt(reply: str, score: float | None, *spans: Span) -> Attempt:
    """A judged reply, flagged if it has spans; without a score the detector failed."""
    if score is None:
        return Attempt(reply=reply, outcome="failed", error="no answer")
    return Attempt(reply=reply, outcome="scored", score=score, flagged=bool(spans), spans=spans)


def record(*attempts: Attempt, **fields: Any) -> GuardRecord:
    """A record of these attempts; `fields` are others of `GuardRecord`."""
    given = {
        "policy": "mine",
        "policy_digest": "abc",
        "detector": "lexical",
        "topics": {"pregnancy": "'pregnant' in the question"},
        "sensitive": True,
        "threshold": 0.3,
        "shown": 0,
        "action": "passed",
        "reason": "because",
    }
    return GuardRecord.model_validate({**given, "attempts": attempts, **fields})


HANDED = record(attempt("Safe.", 0.9, SAFE), shown=None, action="human", reason="H = 0.90 reaches τ = 0.30")
PASSED = record(attempt("Not tested.", 0.1))


def held(id: str, records: Sequence[GuardRecord], calls: Sequence[Call] = ()) -> Conversation:
    """A conversation of the chatbot `guarded` with these records, one a turn."""
    turns = tuple(
        Turn(
            index=index,
            user="Hi there",
            reply="A reply.",
            steps=(Step(name=STEP, text=one.model_dump_json()),),
            calls=tuple(calls),
        )
        for index, one in enumerate(records)
    )
    return conversation(id, [], "guarded", turns=turns)
