"""Hallucinations per turn of each chatbot, by labels and by detectors."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hallulab.scenarios.labelled import ChatbotTurn, LabelledReply
from hallulab.scenarios.transcript import Judgement
from hallulab.simulator.bench.chats import ChatbotMean, ChatbotRows, build_chatbot_rows
from tests.builders import labelled, places
from tests.simulator.bench.material import FAILED, evaluation, judged, known

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


def said(spans: int) -> Judgement:
    """A judgement with so many spans; the first has no place."""
    return judged(*[None, *((place, place + 1) for place in range(1, spans))][:spans], text=TEXT)


REPLIES = (
    reply(2, ("a", "a1", 0), ("b", "b1", 0)),
    reply(0, ("a", "a1", 1)),
    reply(1, ("b", "b1", 1)),
    reply(1, ("b", "b1", 2)),
)


def report(*judgements: Judgement, replies: Sequence[LabelledReply] = REPLIES) -> ChatbotRows:
    return known(build_chatbot_rows([evaluation(replies, *judgements)]))


def test_a_shared_reply_counts_for_each_chatbot_and_an_unlocated_span_counts() -> None:
    a, b, mean = report(said(1), said(0), said(3), said(0))
    assert (a.chatbot, a.turns, a.labels_hpt_1, a.hpt_1, a.error) == ("a", 2, 1.0, 0.5, -0.5)
    assert (b.chatbot, b.turns, b.labels_hpt_1, b.hpt_1) == ("b", 3, 1.333333, 1.333333)
    assert b.error == 0.0
    assert isinstance(mean, ChatbotMean)
    assert (mean.chatbot, mean.chatbots, mean.turns, mean.error) == (None, 2, 5, -0.25)
    assert (mean.labels_hpt_1, mean.hpt_1) == pytest.approx((7 / 6, 11 / 12), abs=1e-6)


def test_turns_that_the_detector_did_not_localise_are_in_no_number_but_coverage() -> None:
    nowhere = judged(score=1.0, flagged=True, spans=None)
    a, b, _ = report(nowhere, FAILED, said(1), said(3))
    assert (a.coverage, a.hpt_1, a.error, a.labels_hpt_1) == (0.0, None, None, 1.0)
    assert (b.coverage, b.hpt_1) == (0.666667, 2.0)


def test_conversations_of_which_some_turns_alone_are_annotated_are_counted() -> None:
    replies = [reply(2, ("a", "a1", 1)), reply(0, ("a", "a1", 4)), reply(1, ("a", "a2", 3))]
    a, _ = report(said(1), said(0), said(2), replies=replies)
    assert (a.turns, a.coverage, a.labels_hpt_1, a.hpt_1, a.error) == (3, 1.0, 1.0, 1.0, 0.0)


def test_a_chatbot_without_hallucination_has_no_error() -> None:
    found = report(said(1), replies=[reply(0, ("a", "a1", 0))])
    assert [(row.hpt_1, row.error) for row in found] == [(1.0, None), (1.0, None)]


def test_data_that_names_no_turns_has_no_such_rows() -> None:
    assert build_chatbot_rows([evaluation([reply(1)], said(1))]) is None
