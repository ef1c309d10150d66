"""Hallucinations per turn of each chatbot, by labels and by detectors."""

from __future__ import annotations

import pytest

from hallulab.scenarios.labelled import ChatbotTurn, LabelledReply
from hallulab.scenarios.transcript import Judgement, Span
from hallulab.simulator.bench.chats import ChatbotMean, ChatbotRows, build_chatbot_rows
from hallulab.simulator.bench.evaluate import Evaluation
from tests.builders import labelled, places

TEXT = "One two three four five."


def reply(spans: int, *turns: tuple[str, str, int]) -> LabelledReply:
    return labelled(
        TEXT,
        spans > 0,
        id=f"{turns}",
        spans=places(*((place, place + 1) for place in range(spans))),
        turns=tuple(ChatbotTurn(chatbot=bot, conversation=chat, turn=turn) for bot, chat, turn in turns),
        group="persona",
    )


def judged(spans: int | None, flagged: bool = True) -> Judgement:
    """A judgement with so many spans; the first has no place. None: it does not say where."""
    found = None
    if spans is not None:
        places = [None, *range(1, spans)][:spans]
        found = tuple(
            Span(start=place, end=None if place is None else place + 1, text="x") for place in places
        )
    return Judgement(outcome="scored", score=1.0, flagged=flagged, spans=found)


REPLIES = (
    reply(2, ("a", "a1", 0), ("b", "b1", 0)),
    reply(0, ("a", "a1", 1)),
    reply(1, ("b", "b1", 1)),
    reply(1, ("b", "b1", 2)),
)


def report(*judgements: Judgement) -> ChatbotRows:
    found = build_chatbot_rows([Evaluation("d", 0.5, "given", REPLIES, judgements, 0.0)])
    assert found is not None
    return found


def test_a_shared_reply_counts_for_each_chatbot_and_an_unlocated_span_counts() -> None:
    a, b, mean = report(judged(1), judged(0, flagged=False), judged(3), judged(0, flagged=False))
    assert (a.chatbot, a.turns, a.labels_hpt_1, a.hpt_1, a.error) == ("a", 2, 1.0, 0.5, -0.5)
    assert (b.chatbot, b.turns, b.labels_hpt_1, b.hpt_1) == ("b", 3, 1.333333, 1.333333)
    assert b.error == 0.0
    assert isinstance(mean, ChatbotMean)
    assert (mean.chatbot, mean.chatbots, mean.turns, mean.error) == (None, 2, 5, -0.25)
    assert (mean.labels_hpt_1, mean.hpt_1) == pytest.approx((7 / 6, 11 / 12), abs=1e-6)


def test_turns_that_the_detector_did_not_localise_are_in_no_number_but_coverage() -> None:
    failed = Judgement(outcome="failed", error="no answer")
    a, b, _ = report(judged(None), failed, judged(1), judged(3))
    assert (a.coverage, a.hpt_1, a.error, a.labels_hpt_1) == (0.0, None, None, 1.0)
    assert (b.coverage, b.hpt_1) == (0.666667, 2.0)


def test_a_chatbot_without_hallucination_has_no_error() -> None:
    clean = (reply(0, ("a", "a1", 0)),)
    found = build_chatbot_rows([Evaluation("d", 0.5, "given", clean, (judged(1),), 0.0)])
    assert found is not None
    assert [(row.hpt_1, row.error) for row in found] == [(1.0, None), (1.0, None)]


def test_data_that_names_no_turns_has_no_such_rows() -> None:
    bare = (reply(1),)
    assert build_chatbot_rows([Evaluation("d", 0.5, "given", bare, (judged(1),), 0.0)]) is None
