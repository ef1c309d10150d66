"""Rows of `hallulab bench`: exact numbers on literal judgements, None where nothing is defined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from hallulab.detectors.base.protocol import Detector, Traits
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Call, Judgement
from hallulab.scenarios.turn_views import TurnView
from hallulab.simulator.bench.evaluate import compute_costs, evaluate
from hallulab.simulator.bench.levels import collect_items, group_numbers
from hallulab.simulator.bench.results import measure
from hallulab.simulator.bench.rows import Decided, build_level_row, decide_by_protocols, draw_dev_half
from hallulab.simulator.statistics.detection import Sample, leave_out_groups
from tests.builders import call, labelled
from tests.simulator.bench.material import DATA, evaluation

SKIPPED = Judgement(outcome="abstained", error="there is no evidence")
FAILED = Judgement(outcome="failed", error="the model did not answer", calls=(call("detector.ask"),))


def reply(number: int, label: bool | None) -> LabelledReply:
    return labelled(label=label, id=str(number))


def scored(score: float) -> Judgement:
    return Judgement(outcome="scored", score=score, flagged=score >= 0.5, calls=(call("detector.ask"),))


def row(labels: Sequence[bool | None], judgements: Sequence[Judgement]) -> dict[str, object]:
    replies = [reply(number, label) for number, label in enumerate(labels)]
    said = replace(evaluation(replies, *judgements, seconds=1.23456), threshold_protocol="published")
    groups = group_numbers(replies)
    items = collect_items(said, "response", groups)
    left_out = leave_out_groups(items.sample)
    return build_level_row(said, "d", "response", items, left_out, len(groups)).model_dump(mode="json")


def times(*judged: tuple[Judgement, float | None]) -> tuple[object, object]:
    """Median and 95th percentile, in milliseconds, of judgements that took so many seconds."""
    replies = [reply(number, True) for number in range(len(judged))]
    judgements, seconds = tuple(one for one, _ in judged), tuple(each for _, each in judged)
    found = compute_costs(evaluation(replies, *judgements, latencies_s=seconds))
    return found.p50_ms, found.p95_ms


def test_every_number_of_a_row() -> None:
    judgements = [scored(0.9), scored(0.4), scored(0.6), scored(0.1), FAILED, SKIPPED]
    found = row([True, True, False, False, True, False], judgements)
    chosen = {"threshold": 0.4, "precision": 0.666667, "recall": 1.0, "f1": 0.8, "balanced_accuracy": 0.75}
    own = {"precision": 0.5, "recall": 0.5, "f1": 0.5, "balanced_accuracy": 0.5}
    assert found.pop("thresholds") == {
        "default": {"threshold": 0.5, **own},
        "tuned": dict.fromkeys(chosen),
        "oracle": chosen,
    }
    assert found == {
        "detector": "d",
        "dataset": "d",
        "level": "response",
        "n": 6,
        "positives": 3,
        "scored": 4,
        "scored_positives": 2,
        "groups": 1,
        "coverage": 0.666667,
        "auroc": 0.75,
        "auroc_ci95": None,
        "auprc": 0.833333,
        "auprc_ci95": None,
        "precision": 0.5,
        "recall": 0.5,
        "f1": 0.5,
        "f1_ci95": None,
        "accuracy": 0.5,
        "balanced_accuracy": 0.5,
        "balanced_accuracy_ci95": None,
        "ece": 0.35,
        "brier": 0.185,
        "reliability": [[1, 0.1, 0.0], [1, 0.4, 1.0], [1, 0.6, 0.0], [1, 0.9, 1.0]],
        "threshold": 0.5,
        "fold_thresholds": [],
        "threshold_protocol": "published",
        "abstained": 1,
        "failed": 1,
        "parse_failures": 1,
        "reasons": [
            {"outcome": "failed", "reason": "the model did not answer", "n": 1},
            {"outcome": "abstained", "reason": "there is no evidence", "n": 1},
        ],
        "truncated": 0,
        "truncated_scored": 0,
        "truncated_abstained": 0,
        "calls": 5,
        "replayed_calls": 0,
        "tokens": 60,
        "calls_per_reply": 0.833333,
        "tokens_per_reply": 10.0,
        "computed_tokens_per_reply": None,
        "seconds": 1.235,
        "train_s": None,
        "cold_s": None,
        "p50_ms": None,
        "p95_ms": None,
        "memory_mb": None,
        "batched": False,
        "told_origin": False,
    }


@pytest.mark.parametrize(
    ("judged", "expected"),
    [
        ([(scored(0.9), 2.0), (FAILED, 0.001), (SKIPPED, 0.001)], (2000.0, 2000.0)),
        ([(FAILED, 0.001), (SKIPPED, 0.001)], (None, None)),
        # The reply that was judged alone is in no percentile.
        ([(scored(0.9), None), (scored(0.9), 1.0), (scored(0.1), 2.0)], (1500.0, 1950.0)),
    ],
)
def test_times_are_of_scored_replies_alone(
    judged: list[tuple[Judgement, float | None]], expected: tuple[float | None, float | None]
) -> None:
    assert times(*judged) == expected


def test_a_reply_with_a_replayed_answer_has_no_time() -> None:
    replayed = call("detector.ask").model_copy(update={"replayed": True})
    remembered = scored(0.9).model_copy(update={"calls": (call("detector.ask"), replayed)})
    assert times((remembered, 0.001), (scored(0.1), 2.0)) == (2000.0, 2000.0)
    assert times((remembered, 0.001)) == (None, None)


def computed(*judgements: Judgement) -> object:
    replies = [reply(number, True) for number in range(len(judgements))]
    return compute_costs(evaluation(replies, *judgements)).computed_tokens_per_reply


def test_computed_tokens_are_without_cached_ones_and_told_of_all_calls_or_not_at_all() -> None:
    told = call("detector.ask").model_copy(update={"cached_tokens": 4})
    lost = Call(
        purpose="detector.ask",
        model="m",
        prompt_tokens=None,
        completion_tokens=None,
        latency_s=1.0,
        error="no answer",
    )
    cheap, failed = (scored(0.9).model_copy(update={"calls": calls}) for calls in ((told,), (told, lost)))
    assert computed(cheap, scored(0.9).model_copy(update={"calls": ()})) == 4.0
    assert computed(cheap, failed) == 8.0
    assert computed(cheap, scored(0.9)) is None
    assert computed() is None


def test_a_detector_that_always_fails_is_neither_good_nor_bad() -> None:
    found = row([True, False], [FAILED, FAILED])
    assert (found["n"], found["coverage"], found["calls"]) == (2, 0.0, 2)
    assert [found[name] for name in ("auroc", "precision", "recall", "f1")] == [None] * 4


def test_cut_replies_are_counted_by_what_became_of_them() -> None:
    cut = scored(0.9).model_copy(update={"truncated": True})
    found = row([True, True, True], [cut, cut, SKIPPED.model_copy(update={"truncated": True})])
    assert [found[name] for name in ("truncated", "truncated_scored", "truncated_abstained")] == [3, 2, 1]


def test_a_reply_that_nobody_labelled_is_not_covered() -> None:
    found = row([True, None], [scored(0.9), scored(0.9)])
    assert (found["coverage"], found["precision"], found["recall"]) == (0.5, 1.0, 1.0)


def test_no_replies_have_no_coverage() -> None:
    assert row([], [])["coverage"] is None


async def test_a_detector_that_raises_has_failed_on_that_reply() -> None:
    class Fussy(Detector):
        name = "fussy"
        version = "1"

        async def detect(self, view: TurnView) -> Judgement:
            if view.reply == "B.":
                raise RuntimeError("no B")
            return scored(0.9)

    replies = [reply(0, True), reply(1, True).model_copy(update={"reply": "B."})]
    seen: list[int] = []
    found = await evaluate(Fussy(), replies, 2, seen.append)
    assert [judgement.outcome for judgement in found.judgements] == ["scored", "failed"]
    assert found.judgements[1].error == "RuntimeError: no B"
    assert len(seen) == 2


async def test_severities_that_all_lie_within_one_have_no_calibration() -> None:
    class Rated(Detector):
        name = "rated"
        version = "1"
        threshold = 4.0
        traits = Traits(probabilities=False)

        async def detect(self, view: TurnView) -> Judgement:
            return Judgement(outcome="scored", score=1.0, flagged=False)

    rated = await evaluate(Rated(), [reply(0, False), reply(1, False)], 1)
    row = next(row for row in measure([rated], DATA).report.rows if row.detector == "rated")
    assert (row.brier, row.ece, row.reliability) == (None, None, ())


def test_tokens_that_the_server_did_not_tell_are_not_counted_as_none() -> None:
    told = call("detector.ask")
    untold = told.model_copy(update={"prompt_tokens": None, "completion_tokens": None})
    failed = untold.model_copy(update={"error": "no answer"})
    for calls, sums in (((told, failed), (12, 12.0)), ((told, untold), (None, None)), ((), (0, 0.0))):
        costs = compute_costs(evaluation([reply(0, True)], scored(0.9).model_copy(update={"calls": calls})))
        assert (costs.tokens, costs.tokens_per_reply) == sums


def test_half_of_the_groups_is_development_data() -> None:
    assert [int(draw_dev_half(groups).sum()) for groups in (0, 1, 2, 5, 10)] == [0, 0, 1, 2, 5]


def test_each_half_is_decided_by_the_others_threshold() -> None:
    dev = draw_dev_half(2)
    first, second = int(np.flatnonzero(dev)[0]), int(np.flatnonzero(~dev)[0])
    sample = Sample(
        labels=np.array([True, False, True, False]),
        scores=np.array([0.9, 0.6, 0.5, 0.2]),
        flags=np.array([True, True, False, False]),
        clusters=np.array([first, first, second, second]),
    )
    found = decide_by_protocols(sample, 2, 0.55)
    assert (found.default.threshold, found.default.f1) == (0.55, 0.5)
    # 0.9, best on the first group, finds nothing in the second; 0.5 flags all of the first.
    assert found.tuned.threshold == (0.9, 0.5)
    assert (found.tuned.precision, found.tuned.recall) == (0.5, 0.5)
    assert (found.oracle.threshold, found.oracle.f1) == (0.5, pytest.approx(0.8))


def test_a_half_without_positives_tunes_nothing() -> None:
    dev = draw_dev_half(2)
    sample = Sample(
        labels=np.array([True, False]),
        scores=np.array([0.9, 0.6]),
        flags=np.array([True, False]),
        clusters=np.array([int(np.flatnonzero(dev)[0]), int(np.flatnonzero(~dev)[0])]),
    )
    assert decide_by_protocols(sample, 2, None).tuned == Decided()
