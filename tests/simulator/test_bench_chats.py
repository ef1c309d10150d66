"""Precision and recall averaged over conversations, and the test between detectors."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import scipy.stats

from scenarios.labelled import LabelledReply
from scenarios.transcript import Judgement, Message, Passage
from simulator.bench.chats import by_conversation, chat_report, wilcoxon_p
from simulator.bench.evaluate import Evaluation

SAID = (Message(role="user", text="Hello."),)


def turns(*labels: Sequence[bool], history: tuple[Message, ...] = SAID) -> tuple[LabelledReply, ...]:
    return tuple(
        LabelledReply(
            id=f"{chat}-{turn}",
            dataset="d",
            task="dialogue",
            history=history,
            passages=(Passage(id="p#0", document="p", text="Evidence."),),
            reply="A reply.",
            label=label,
            group=f"chat-{chat}",
        )
        for chat, marks in enumerate(labels)
        for turn, label in enumerate(marks)
    )


def evaluation(name: str, replies: tuple[LabelledReply, ...], flags: Sequence[bool]) -> Evaluation:
    judgements = tuple(Judgement(outcome="scored", score=float(flag), flagged=flag) for flag in flags)
    return Evaluation(name, 0.5, "given", replies, judgements, 0.0)


REPLIES = turns([True, False], [True, True], [False, False])


def test_a_conversation_without_a_flag_has_no_precision_and_one_without_hallucination_no_recall() -> None:
    found = by_conversation(evaluation("a", REPLIES, [True, True, False, False, False, True]))
    assert found == {
        "precision": {"chat-0": 0.5, "chat-2": 0.0},
        "recall": {"chat-0": 1.0, "chat-1": 0.0},
    }


def test_means_are_over_conversations() -> None:
    report = chat_report([evaluation("a", REPLIES, [True, True, True, False, False, False])])
    assert report is not None
    assert report["rows"] == [
        {
            "detector": "a",
            "conversations": 3,
            "precision": 0.75,
            "recall": 0.75,
            "precision_over": 2,
            "recall_over": 2,
        }
    ]


def test_detectors_are_tested_on_conversations_that_both_have() -> None:
    report = chat_report(
        [
            evaluation("a", REPLIES, [True, True, True, True, False, False]),
            evaluation("b", REPLIES, [True, False, True, False, True, False]),
        ]
    )
    assert report is not None
    precision, recall = report["tests"]
    assert (precision["conversations"], precision["difference"], precision["p_value"]) == (2, -0.25, 1.0)
    assert (recall["conversations"], recall["difference"]) == (2, 0.25)


def test_exact_signed_rank_p_by_hand() -> None:
    # All five differences are positive: 2 of the 2^5 sign patterns are as extreme.
    assert wilcoxon_p([1, 2, 3, 4, 5], [0, 0, 0, 0, 0]) == pytest.approx(2 / 32)
    assert wilcoxon_p([0.5, 0.5], [0.5, 0.5]) is None


def test_pairs_without_a_difference_are_left_out() -> None:
    expected = float(scipy.stats.wilcoxon([1, 2, 3]).pvalue)
    assert wilcoxon_p([1, 2, 3, 7], [0, 0, 0, 7]) == expected


def test_single_replies_are_no_chats() -> None:
    replies = turns([True], [False], history=())
    assert chat_report([evaluation("a", replies, [True, False])]) is None
