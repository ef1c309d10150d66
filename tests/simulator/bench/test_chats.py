"""Conversations: mean precision and recall, tests between detectors, rates of chatbots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from hallulab.scenarios.labelled import ChatbotTurn, LabelledReply
from hallulab.scenarios.transcript import Judgement, Message, Span
from hallulab.simulator.bench.chats import (
    ChatbotMean,
    ChatbotRows,
    ChatReport,
    build_chat_report,
    build_chatbot_rows,
    compute_harmonic_mean,
    score_conversations,
)
from hallulab.simulator.bench.evaluate import Evaluation
from tests.builders import labelled, places
from tests.simulator.bench.material import FAILED, evaluation, judged, known, reply

Ends = tuple[int, int]


def turn(chat: str | None, label: bool, spans: Sequence[Ends] | None = None) -> LabelledReply:
    return reply(
        text="One two three four five.",
        label=label,
        history=(Message(role="user", text="Hello."),),
        spans=None if spans is None else places(*spans),
        meta={} if chat is None else {"conversation": chat},
    )


def turns(*labels: Sequence[bool]) -> list[LabelledReply]:
    return [turn(f"chat-{chat}", label) for chat, marks in enumerate(labels) for label in marks]


def marked(*chats: Sequence[Sequence[Ends]]) -> list[LabelledReply]:
    """Turns with gold spans: for each chat, those of each turn."""
    return [turn(f"chat-{chat}", bool(spans), spans) for chat, found in enumerate(chats) for spans in found]


def flagging(name: str, replies: Sequence[LabelledReply], *spans: Sequence[Ends | None]) -> Evaluation:
    """What a detector says that flags those spans of each turn; None: one without a place."""
    return evaluation(replies, *(judged(*found) for found in spans), name=name)


def deciding(name: str, replies: Sequence[LabelledReply], flags: Sequence[bool]) -> Evaluation:
    """What a detector says that flags those turns, and does not say where."""
    said = (judged(spans=None, score=float(flag), flagged=flag) for flag in flags)
    return evaluation(replies, *said, name=name)


def report(*evaluations: Evaluation) -> ChatReport:
    return known(build_chat_report(evaluations))


REPLIES = turns([True, False], [True, True], [False, False])


def test_a_conversation_without_a_flag_has_no_precision_and_one_without_hallucination_no_recall() -> None:
    found = score_conversations(deciding("a", REPLIES, [True, True, False, False, False, True]), "turns")
    assert found == {"precision": {"chat-0": 0.5, "chat-2": 0.0}, "recall": {"chat-0": 1.0, "chat-1": 0.0}}


def test_a_turn_that_was_not_scored_is_no_miss() -> None:
    said = deciding("a", REPLIES, [True, True, False, False, False, True])
    skipped = Judgement(outcome="abstained", error="there is no evidence")
    found = score_conversations(replace(said, judgements=(skipped, *said.judgements[1:])), "turns")
    assert found["recall"] == {"chat-1": 0.0}


def test_means_are_over_conversations() -> None:
    found = report(deciding("a", REPLIES, [True, True, True, False, False, False]))
    [row] = found.rows
    assert (row.detector, row.conversations) == ("a", 3)
    assert (row.precision, row.precision_over, row.recall, row.recall_over) == (0.75, 2, 0.75, 2)


@pytest.mark.parametrize(
    ("precision", "recall", "f1"),
    [(0.5456, 0.8063, 0.6508), (0.0, 0.0, 0.0), (None, 0.5, None), (0.5, None, None)],
)
def test_f1_over_conversations_is_that_of_the_two_means(
    precision: float | None, recall: float | None, f1: float | None
) -> None:
    """The first are HalluDetect's of table 1."""
    found = compute_harmonic_mean(precision, recall)
    assert (found if found is None else round(found, 4)) == f1


def test_a_row_has_f1() -> None:
    [row] = report(deciding("a", REPLIES, [True, True, True, False, False, False])).rows
    assert row.f1 == 0.75


def test_detectors_are_tested_on_conversations_that_both_have() -> None:
    found = report(
        deciding("a", REPLIES, [True, True, True, True, False, False]),
        deciding("b", REPLIES, [True, False, True, False, True, False]),
    )
    precision, recall = found.tests
    assert (precision.conversations, precision.difference, precision.p_value) == (2, -0.25, 1.0)
    assert (recall.conversations, recall.difference) == (2, 0.25)


def test_p_values_of_a_metric_are_adjusted_together_but_for_pairs_that_never_differ() -> None:
    replies = turns(*[[True]] * 6)
    found = report(*(deciding(name, replies, [name == "a"] * 6) for name in "abc"))
    recall = [test for test in found.tests if test.metric == "recall"]
    assert [(test.a, test.b, test.p_value, test.p_holm) for test in recall] == [
        ("a", "b", 0.03125, 0.0625),
        ("a", "c", 0.03125, 0.0625),
        ("b", "c", None, None),
    ]


def test_replies_that_name_no_conversation_are_no_chats() -> None:
    replies = (turn(None, True), turn(None, False))
    assert build_chat_report([deciding("a", replies, [True, False])]) is None


def test_two_conversations_of_a_persona_are_two() -> None:
    found = report(deciding("a", turns([True], [True]), [True, False]))
    assert [row.conversations for row in found.rows] == [2]


def test_without_gold_spans_turns_are_counted() -> None:
    found = report(deciding("a", REPLIES, [True] * 6))
    assert found.counted == "turns"


def test_with_gold_spans_each_hallucination_is_counted() -> None:
    replies = marked([[(0, 3), (8, 13)], []])
    found = report(flagging("a", replies, [(0, 7), (14, 18), (19, 23)], []))
    # One of three flagged spans meets a gold one; one of two gold ones is met.
    assert (found.counted, found.rows[0].precision, found.rows[0].recall) == ("spans", 0.333333, 0.5)


@pytest.mark.parametrize(
    ("gold", "flagged", "precision", "recall"),
    [
        ([[(0, 7), (14, 18)]], [[(0, 3), (4, 7)]], 1.0, 0.5),
        ([[(0, 3)]], [[(3, 7)]], 0.0, 0.0),
        ([[(0, 3)], []], [[], [(0, 3)]], 0.0, 0.0),
        ([[(0, 3)]], [[(0, 3), None]], 0.5, 1.0),
    ],
    ids=["two flags on one", "they only touch", "of different turns", "a flag without a place"],
)
def test_a_flagged_span_is_right_where_it_overlaps_a_gold_one_of_its_turn(
    gold: list[list[Ends]], flagged: list[list[Ends | None]], precision: float, recall: float
) -> None:
    found = score_conversations(flagging("a", marked(gold), *flagged), "spans")
    assert found == {"precision": {"chat-0": precision}, "recall": {"chat-0": recall}}


@pytest.mark.parametrize("spans", [None, ()])
def test_a_flagged_reply_without_a_span_is_one_span_as_long_as_it(spans: tuple[Span, ...] | None) -> None:
    said = judged(score=0.9, flagged=True, spans=spans)
    found = score_conversations(evaluation(marked([[(0, 3), (8, 13)], []]), said, said), "spans")
    assert found == {"precision": {"chat-0": 0.5}, "recall": {"chat-0": 1.0}}


def test_a_turn_without_gold_spans_makes_all_be_counted_by_turns() -> None:
    replies = [*marked([[(0, 3)]]), turn("chat-1", True)]
    found = report(flagging("a", replies, [(0, 3)], []))
    assert found.counted == "turns"


def test_three_detectors_are_ranked_in_each_conversation() -> None:
    replies = marked(*[[[(0, 3)]]] * 3)
    right, half, wrong = [(0, 3)], [(0, 3), (4, 7)], [(4, 7)]
    found = report(
        flagging("a", replies, right, right, right),
        flagging("b", replies, half, half, half),
        flagging("c", replies, wrong, wrong, wrong),
    )
    precision, recall = found.friedman
    assert precision.model_dump() == {
        "metric": "precision",
        "conversations": 3,
        "statistic": 6.0,  # 12 / (3·3·4) · (9 + 36 + 81) − 3·3·4
        "p_value": pytest.approx(0.0497871),
        "mean_ranks": {"a": 1.0, "b": 2.0, "c": 3.0},
    }
    assert (recall.metric, recall.mean_ranks) == ("recall", {"a": 1.5, "b": 1.5, "c": 3.0})


def test_only_conversations_in_which_all_have_a_value_are_ranked() -> None:
    replies = marked(*[[[(0, 3)]]] * 4)
    right, wrong = [(0, 3)], [(4, 7)]
    found = report(
        flagging("a", replies, right, right, right, []),
        flagging("b", replies, wrong, wrong, wrong, wrong),
        flagging("c", replies, wrong, wrong, wrong, wrong),
    )
    assert [one.conversations for one in found.friedman] == [3, 4]


def test_two_detectors_are_not_ranked() -> None:
    found = report(*(deciding(name, REPLIES, [True] * 6) for name in "ab"))
    assert found.friedman == ()


TEXT = "One two three four five."


def shared_reply(spans: int, *turns: tuple[str, str, int]) -> LabelledReply:
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


BOT_REPLIES = (
    shared_reply(2, ("a", "a1", 0), ("b", "b1", 0)),
    shared_reply(0, ("a", "a1", 1)),
    shared_reply(1, ("b", "b1", 1)),
    shared_reply(1, ("b", "b1", 2)),
)


def chatbot_rows(*judgements: Judgement, replies: Sequence[LabelledReply] = BOT_REPLIES) -> ChatbotRows:
    return known(build_chatbot_rows([evaluation(replies, *judgements)]))


def test_a_shared_reply_counts_for_each_chatbot_and_an_unlocated_span_counts() -> None:
    a, b, mean = chatbot_rows(said(1), said(0), said(3), said(0))
    assert (a.chatbot, a.turns, a.labels_hpt_1, a.hpt_1, a.error) == ("a", 2, 1.0, 0.5, -0.5)
    assert (b.chatbot, b.turns, b.labels_hpt_1, b.hpt_1) == ("b", 3, 1.333333, 1.333333)
    assert b.error == 0.0
    assert isinstance(mean, ChatbotMean)
    assert (mean.chatbot, mean.chatbots, mean.turns, mean.error) == (None, 2, 5, -0.25)
    assert (mean.labels_hpt_1, mean.hpt_1) == pytest.approx((7 / 6, 11 / 12), abs=1e-6)


def test_turns_that_the_detector_did_not_localise_are_in_no_number_but_coverage() -> None:
    nowhere = judged(score=1.0, flagged=True, spans=None)
    a, b, _ = chatbot_rows(nowhere, FAILED, said(1), said(3))
    assert (a.coverage, a.hpt_1, a.error, a.labels_hpt_1) == (0.0, None, None, 1.0)
    assert (b.coverage, b.hpt_1) == (0.666667, 2.0)


def test_conversations_of_which_some_turns_alone_are_annotated_are_counted() -> None:
    replies = [
        shared_reply(2, ("a", "a1", 1)),
        shared_reply(0, ("a", "a1", 4)),
        shared_reply(1, ("a", "a2", 3)),
    ]
    a, _ = chatbot_rows(said(1), said(0), said(2), replies=replies)
    assert (a.turns, a.coverage, a.labels_hpt_1, a.hpt_1, a.error) == (3, 1.0, 1.0, 1.0, 0.0)


def test_a_chatbot_without_hallucination_has_no_error() -> None:
    found = chatbot_rows(said(1), replies=[shared_reply(0, ("a", "a1", 0))])
    assert [(row.hpt_1, row.error) for row in found] == [(1.0, None), (1.0, None)]


def test_data_that_names_no_turns_has_no_such_rows() -> None:
    assert build_chatbot_rows([evaluation([shared_reply(1)], said(1))]) is None
