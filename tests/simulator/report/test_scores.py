"""The one number beside a detector's name."""

from __future__ import annotations

import pytest

from hallulab.scenarios.transcript import Verdict
from hallulab.simulator.report.scores import LaneScore, read_lane_scores
from tests.builders import scored, unscored


def judged(score: float, flagged: bool) -> Verdict:
    return scored("a", 0).model_copy(update={"score": score, "flagged": flagged})


@pytest.mark.parametrize(
    ("kind", "threshold", "score", "flagged", "expected"),
    [
        ("halludetect", 4.0, 4.981, True, "severity 4.98 of 5, threshold 4"),
        ("metarag", 0.43, 0.2, False, "score 0.2 of 1, threshold 0.43"),
        ("metarag", 0.43, 0.35, True, "score 0.35 of 1, by a lower threshold than the general 0.43"),
        ("metarag", 0.43, 0.5, False, "score 0.5 of 1, by a higher threshold than the general 0.43"),
        ("mine:Own", 0.5, 0.5, True, "score 0.5, threshold 0.5"),
        ("mine:Own", None, 0.5, True, "score 0.5"),
    ],
)
def test_a_score_is_told_with_its_threshold(
    kind: str, threshold: float | None, score: float, flagged: bool, expected: str
) -> None:
    assert LaneScore("d", kind, threshold).describe(judged(score, flagged)) == expected


def test_a_reply_that_was_not_scored_has_no_number() -> None:
    assert LaneScore("d", "d", 1.0).describe(unscored("a", 0)) == ""


def test_without_the_experiment_the_name_is_the_kind_and_no_threshold_is_known() -> None:
    assert read_lane_scores([], ["lexical"]) == [LaneScore("lexical", "lexical", None)]
