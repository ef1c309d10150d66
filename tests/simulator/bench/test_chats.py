"""Precision and recall averaged over conversations, and the tests between detectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Judgement, Message, Span
from hallulab.simulator.bench.chats import build_chat_report, compute_wilcoxon_p, score_conversations
from hallulab.simulator.bench.evaluate import Evaluation
from tests.builders import labelled, places

SAID = (Message(role="user", text="Hello."),)
Ends = tuple[int, int]


def turn(chat: str | None, label: bool, spans: Sequence[Ends] | None = None) -> LabelledReply:
    return labelled(
        "One two three four five.",
        label,
        history=SAID,
        spans=None if spans is None else places(*spans),
        group="persona",
        meta={} if chat is None else {"conversation": chat},
    )


def turns(*labels: Sequence[bool]) -> tuple[LabelledReply, ...]:
    return tuple(turn(f"chat-{chat}", label) for chat, marks in enumerate(labels) for label in marks)


def marked(*chats: Sequence[Sequence[Ends]]) -> tuple[LabelledReply, ...]:
    """Turns with gold spans: for each chat, those of each turn."""
    return tuple(
        turn(f"chat-{chat}", bool(spans), spans) for chat, found in enumerate(chats) for spans in found
    )


def flagging(name: str, replies: tuple[LabelledReply, ...], *spans: Sequence[Ends | None]) -> Evaluation:
    """What a detector says that flags those spans of each turn; None: one without a place."""
    judgements = tuple(
        Judgement(
            outcome="scored",
            score=float(bool(found)),
            flagged=bool(found),
            spans=tuple(
                Span(start=ends[0] if ends else None, end=ends[1] if ends else None, text="x")
                for ends in found
            ),
        )
        for found in spans
    )
    return Evaluation(name, 0.5, "given", replies, judgements, 0.0)


def evaluation(name: str, replies: tuple[LabelledReply, ...], flags: Sequence[bool]) -> Evaluation:
    judgements = tuple(Judgement(outcome="scored", score=float(flag), flagged=flag) for flag in flags)
    return Evaluation(name, 0.5, "given", replies, judgements, 0.0)


REPLIES = turns([True, False], [True, True], [False, False])


def test_a_conversation_without_a_flag_has_no_precision_and_one_without_hallucination_no_recall() -> None:
    found = score_conversations(evaluation("a", REPLIES, [True, True, False, False, False, True]), "turns")
    assert found == {
        "precision": {"chat-0": 0.5, "chat-2": 0.0},
        "recall": {"chat-0": 1.0, "chat-1": 0.0},
    }


def test_a_turn_that_was_not_scored_is_no_miss() -> None:
    said = evaluation("a", REPLIES, [True, True, False, False, False, True])
    skipped = Judgement(outcome="abstained", error="there is no evidence")
    found = score_conversations(replace(said, judgements=(skipped, *said.judgements[1:])), "turns")
    assert found["recall"] == {"chat-1": 0.0}


def test_means_are_over_conversations() -> None:
    report = build_chat_report([evaluation("a", REPLIES, [True, True, True, False, False, False])])
    assert report is not None
    [row] = report.rows
    assert (row.detector, row.conversations) == ("a", 3)
    assert (row.precision, row.precision_over, row.recall, row.recall_over) == (0.75, 2, 0.75, 2)


def test_detectors_are_tested_on_conversations_that_both_have() -> None:
    report = build_chat_report(
        [
            evaluation("a", REPLIES, [True, True, True, True, False, False]),
            evaluation("b", REPLIES, [True, False, True, False, True, False]),
        ]
    )
    assert report is not None
    precision, recall = report.tests
    assert (precision.conversations, precision.difference, precision.p_value) == (2, -0.25, 1.0)
    assert (recall.conversations, recall.difference) == (2, 0.25)


def test_p_values_of_a_metric_are_adjusted_together_but_for_pairs_that_never_differ() -> None:
    replies = turns(*[[True]] * 6)
    report = build_chat_report([evaluation(name, replies, [name == "a"] * 6) for name in "abc"])
    assert report is not None
    recall = [test for test in report.tests if test.metric == "recall"]
    assert [(test.a, test.b, test.p_value, test.p_holm) for test in recall] == [
        ("a", "b", 0.03125, 0.0625),
        ("a", "c", 0.03125, 0.0625),
        ("b", "c", None, None),
    ]


def test_exact_signed_rank_p_by_hand() -> None:
    # All five differences are positive: 2 of the 2^5 sign patterns are as extreme.
    assert compute_wilcoxon_p([1, 2, 3, 4, 5], [0, 0, 0, 0, 0]) == pytest.approx(2 / 32)
    assert compute_wilcoxon_p([0.5, 0.5], [0.5, 0.5]) is None


@pytest.mark.parametrize(("better", "p"), [(10, 756 / 2**13), (11, 940 / 2**14)])
def test_signed_rank_p_is_exact_with_ties_at_any_number_of_pairs(better: int, p: float) -> None:
    # All ranks are equal, so it is the sign test: 2 · (C(13, 0) + … + C(13, 3)) of 2^13 patterns of signs.
    assert compute_wilcoxon_p([1] * better + [0] * 3, [0] * better + [1] * 3) == p


def test_signed_rank_p_with_ties_by_hand() -> None:
    # Ranks 1.5, −1.5, 3 and 4: of the 16 patterns of signs, 1 has the sum 10 and 2 have 8.5.
    assert compute_wilcoxon_p([1, 0, 2, 3], [0, 1, 0, 0]) == 6 / 16


@pytest.mark.parametrize("n", [9, 60, 300])
def test_without_ties_signed_rank_p_agrees_with_scipys_exact_one(n: int) -> None:
    generator = np.random.default_rng(n)
    differences = (np.arange(n) + 1) * generator.choice([-1, 1], n, p=[0.4, 0.6])
    expected = scipy.stats.wilcoxon(differences, method="exact").pvalue
    assert compute_wilcoxon_p(differences.tolist(), [0] * n) == pytest.approx(expected, rel=1e-9)


def test_signed_rank_p_of_thousands_of_pairs_is_the_normal_approximation() -> None:
    differences = [1.0] * 1100 + [-1.0] * 1000
    assert compute_wilcoxon_p(differences, [0] * 2100) == scipy.stats.wilcoxon(differences).pvalue


def test_pairs_without_a_difference_are_left_out() -> None:
    expected = float(scipy.stats.wilcoxon([1, 2, 3]).pvalue)
    assert compute_wilcoxon_p([1, 2, 3, 7], [0, 0, 0, 7]) == expected


def test_replies_that_name_no_conversation_are_no_chats() -> None:
    replies = (turn(None, True), turn(None, False))
    assert build_chat_report([evaluation("a", replies, [True, False])]) is None


def test_two_conversations_of_a_persona_are_two() -> None:
    report = build_chat_report([evaluation("a", turns([True], [True]), [True, False])])
    assert report is not None
    assert [row.conversations for row in report.rows] == [2]


def test_without_gold_spans_turns_are_counted() -> None:
    report = build_chat_report([evaluation("a", REPLIES, [True] * 6)])
    assert report is not None
    assert report.counted == "turns"


def test_with_gold_spans_each_hallucination_is_counted() -> None:
    replies = marked([[(0, 3), (8, 13)], []])
    report = build_chat_report([flagging("a", replies, [(0, 7), (14, 18), (19, 23)], [])])
    assert report is not None
    # One of three flagged spans meets a gold one; one of two gold ones is met.
    assert (report.counted, report.rows[0].precision, report.rows[0].recall) == (
        "spans",
        0.333333,
        0.5,
    )


def test_two_flags_on_one_hallucination_are_two_right_flags_and_one_hallucination_found() -> None:
    replies = marked([[(0, 7), (14, 18)]])
    found = score_conversations(flagging("a", replies, [(0, 3), (4, 7)]), "spans")
    assert found == {"precision": {"chat-0": 1.0}, "recall": {"chat-0": 0.5}}


def test_spans_that_only_touch_do_not_meet() -> None:
    found = score_conversations(flagging("a", marked([[(0, 3)]]), [(3, 7)]), "spans")
    assert found == {"precision": {"chat-0": 0.0}, "recall": {"chat-0": 0.0}}


def test_spans_of_different_turns_do_not_meet() -> None:
    found = score_conversations(flagging("a", marked([[(0, 3)], []]), [], [(0, 3)]), "spans")
    assert found == {"precision": {"chat-0": 0.0}, "recall": {"chat-0": 0.0}}


def test_a_flagged_span_without_a_place_is_wrong() -> None:
    found = score_conversations(flagging("a", marked([[(0, 3)]]), [(0, 3), None]), "spans")
    assert found == {"precision": {"chat-0": 0.5}, "recall": {"chat-0": 1.0}}


@pytest.mark.parametrize("spans", [None, ()])
def test_a_flagged_reply_without_a_span_is_one_span_as_long_as_it(spans: tuple[Span, ...] | None) -> None:
    replies = marked([[(0, 3), (8, 13)], []])
    said = Judgement(outcome="scored", score=0.9, flagged=True, spans=spans)
    found = score_conversations(Evaluation("a", 0.5, "given", replies, (said, said), 0.0), "spans")
    assert found == {"precision": {"chat-0": 0.5}, "recall": {"chat-0": 1.0}}


def test_a_turn_without_gold_spans_makes_all_be_counted_by_turns() -> None:
    replies = (*marked([[(0, 3)]]), turn("chat-1", True))
    report = build_chat_report([flagging("a", replies, [(0, 3)], [])])
    assert report is not None
    assert report.counted == "turns"


def test_three_detectors_are_ranked_in_each_conversation() -> None:
    replies = marked(*[[[(0, 3)]]] * 3)
    right, half, wrong = [(0, 3)], [(0, 3), (4, 7)], [(4, 7)]
    report = build_chat_report(
        [
            flagging("a", replies, right, right, right),
            flagging("b", replies, half, half, half),
            flagging("c", replies, wrong, wrong, wrong),
        ]
    )
    assert report is not None
    precision, recall = report.friedman
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
    report = build_chat_report(
        [
            flagging("a", replies, right, right, right, []),
            flagging("b", replies, wrong, wrong, wrong, wrong),
            flagging("c", replies, wrong, wrong, wrong, wrong),
        ]
    )
    assert report is not None
    assert [found.conversations for found in report.friedman] == [3, 4]


def test_two_detectors_are_not_ranked() -> None:
    report = build_chat_report([evaluation(name, REPLIES, [True] * 6) for name in "ab"])
    assert report is not None
    assert report.friedman == ()
