"""Rows of `hallulab bench`: exact numbers on literal judgements, None where nothing is defined."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from detectors.protocol import ThresholdProtocol
from scenarios.labelled import LabelledReply
from scenarios.transcript import Judgement, Passage, TurnView
from simulator.bench.evaluate import Evaluation, evaluate
from simulator.bench.rows import auroc, precision_recall_f1, response_row
from tests.simulator.journal import call

SKIPPED = Judgement(outcome="abstained", error="there is no evidence")
FAILED = Judgement(outcome="failed", error="the model did not answer", calls=(call("detector.ask"),))


def reply(number: int, label: bool | None) -> LabelledReply:
    return LabelledReply(
        id=str(number),
        dataset="d",
        task="dialogue",
        passages=(Passage(id="p#0", document="p", text="Evidence."),),
        reply="A reply.",
        label=label,
        group="g",
    )


def scored(score: float) -> Judgement:
    return Judgement(outcome="scored", score=score, flagged=score >= 0.5, calls=(call("detector.ask"),))


def row(labels: Sequence[bool | None], judgements: Sequence[Judgement]) -> dict[str, object]:
    replies = tuple(reply(number, label) for number, label in enumerate(labels))
    return response_row(Evaluation("judge", 0.5, "published", replies, tuple(judgements), 1.23456), "d")


def test_every_column_of_a_row() -> None:
    judgements = [scored(0.9), scored(0.4), scored(0.6), scored(0.1), FAILED, SKIPPED]
    assert row([True, True, False, False, True, False], judgements) == {
        "detector": "judge",
        "dataset": "d",
        "level": "response",
        "n": 6,
        "coverage": 0.666667,
        "auroc": 0.75,
        "precision": 0.5,
        "recall": 0.5,
        "f1": 0.5,
        "threshold": 0.5,
        "threshold_protocol": "published",
        "calls": 5,
        "tokens": 60,
        "seconds": 1.235,
    }


def test_a_detector_that_always_fails_is_neither_good_nor_bad() -> None:
    found = row([True, False], [FAILED, FAILED])
    assert (found["n"], found["coverage"], found["calls"]) == (2, 0.0, 2)
    assert [found[name] for name in ("auroc", "precision", "recall", "f1")] == [None] * 4


def test_a_reply_that_nobody_labelled_is_not_covered() -> None:
    found = row([True, None], [scored(0.9), scored(0.9)])
    assert (found["coverage"], found["precision"], found["recall"]) == (0.5, 1.0, 1.0)


def test_no_replies_have_no_coverage() -> None:
    assert row([], [])["coverage"] is None


def test_one_class_alone_has_no_auroc() -> None:
    assert auroc([True, True], [0.1, 0.9]) is None


def test_ties_count_half() -> None:
    assert auroc([True, False], [0.5, 0.5]) == 0.5


def test_nothing_flagged_has_no_precision() -> None:
    assert precision_recall_f1([True, False], [False, False]) == {"precision": None, "recall": 0, "f1": 0}


def test_no_positives_have_no_recall() -> None:
    assert precision_recall_f1([False, False], [True, False]) == {"precision": 0, "recall": None, "f1": 0}


@given(st.lists(st.booleans(), min_size=1))
def test_gold_as_prediction_scores_one(labels: list[bool]) -> None:
    expected = 1.0 if any(labels) else None
    assert set(precision_recall_f1(labels, labels).values()) == {expected}


async def test_a_detector_that_raises_has_failed_on_that_reply() -> None:
    class Fussy:
        name = "fussy"
        version = "1"
        threshold: float | None = None
        threshold_protocol: ThresholdProtocol = "given"

        async def detect(self, view: TurnView) -> Judgement:
            if view.reply == "B.":
                raise RuntimeError("no B")
            return scored(0.9)

    replies = [reply(0, True), reply(1, True).model_copy(update={"reply": "B."})]
    seen: list[int] = []
    evaluation = await evaluate(Fussy(), replies, 2, lambda: seen.append(1))
    assert [judgement.outcome for judgement in evaluation.judgements] == ["scored", "failed"]
    assert evaluation.judgements[1].error == "RuntimeError: no B"
    assert len(seen) == 2
