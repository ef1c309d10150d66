"""Thresholds fitted to labelled replies, and what is counted at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.detectors.base.thresholds import GroupCounts, UnitCounts
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Judgement
from hallulab.simulator.bench.evaluate import Evaluation
from hallulab.simulator.calibration.fit import FittedThreshold, count_groups, find_best_cut, fit_threshold
from tests.builders import labelled, places
from tests.simulator.bench.material import FAILED, evaluation, judged

TEXT = "It is Rs 500. Come at 9."
"""Sentences [0, 13) and [14, 24)."""


def reply(name: str, label: bool, group: str, dataset: str = "a") -> LabelledReply:
    spans = places((6, 12)) if label else ()
    return labelled(TEXT, label, id=name, dataset=dataset, spans=spans, group=group)


def said(score: float, *spans: tuple[int, int], **fields: Any) -> Judgement:
    return judged(*spans, text=TEXT, score=score, **fields)


def separated(each: int, groups: int) -> Evaluation:
    """Wrong replies score 0.8, clean ones 0.3."""
    replies = [reply(f"{label}{n}", label, f"g{n % groups}") for label in (True, False) for n in range(each)]
    return evaluation(replies, *(said(0.8 if one.label else 0.3) for one in replies))


def cut(labels: Sequence[int], scores: Sequence[float], weights: Sequence[float] | None = None) -> float:
    each = np.array(weights or [1.0] * len(labels))
    return find_best_cut(np.array(labels, dtype=bool), np.array(scores), each)


def test_the_cut_lies_half_way_below_the_last_one_flagged() -> None:
    assert cut([1, 1, 0, 0], [0.9, 0.6, 0.4, 0.1]) == 0.5
    # The highest of equal cuts: half of the wrong ones and no clean one, or all and half.
    assert cut([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1]) == 0.85
    assert cut([1, 0, 0, 1], [0.9, 0.5, 0.4, 0.4]) == 0.7


def test_a_heavier_clean_reply_moves_the_cut() -> None:
    labels, scores = [1, 0, 1, 0, 0], [0.9, 0.8, 0.7, 0.2, 0.1]
    assert cut(labels, scores) == 0.45
    assert cut(labels, scores, [1, 9, 1, 1, 1]) == 0.85


def test_equal_scores_are_never_parted() -> None:
    assert cut([1, 0], [0.5, 0.5]) == 0.5


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20)), min_size=2, max_size=30))
def test_no_other_cut_has_a_larger_balanced_accuracy(items: list[tuple[bool, int]]) -> None:
    labels = np.array([label for label, _ in items])
    if labels.all() or not labels.any():
        return
    scores = np.array([score / 20 for _, score in items])

    def accuracy(threshold: float) -> float:
        flags = scores >= threshold
        return float(flags[labels].mean() + (~flags)[~labels].mean())

    found = find_best_cut(labels, scores, np.ones(len(labels)))
    assert accuracy(found) >= max(map(accuracy, scores.tolist())) - 1e-9


def test_a_threshold_that_parts_the_replies_is_found_and_holds_on_other_parts() -> None:
    found = fit_threshold(separated(20, 5), seed=0)
    assert isinstance(found, FittedThreshold)
    assert found.threshold == 0.55
    assert found.model_dump(exclude={"threshold"}) == {
        "sensitivity": 1.0,
        "specificity": 1.0,
        "balanced_accuracy": 1.0,
    }


@pytest.mark.parametrize(
    ("each", "groups", "reason"),
    [
        (19, 5, "it scored 19 hallucinated and 19 clean replies, and a threshold takes 20 of each"),
        (20, 4, "the replies are of fewer than 5 groups (documents), so none can be held out"),
    ],
)
def test_too_few_replies_or_groups_are_the_reason_for_no_threshold(
    each: int, groups: int, reason: str
) -> None:
    assert fit_threshold(separated(each, groups), seed=0) == reason


def test_failures_and_abstentions_do_not_count_as_replies() -> None:
    whole = separated(20, 5)
    failed = evaluation(whole.replies, FAILED, *whole.judgements[1:])
    assert fit_threshold(failed, seed=0) == (
        "it scored 19 hallucinated and 20 clean replies, and a threshold takes 20 of each"
    )


def test_replies_with_the_same_name_are_each_judged_by_the_other_parts() -> None:
    # As where `--data` names a file twice.
    once = separated(20, 5)
    found = fit_threshold(evaluation(once.replies * 2, *once.judgements * 2), seed=0)
    assert isinstance(found, FittedThreshold)
    assert found.model_dump(exclude={"threshold"}) == {
        "sensitivity": 1.0,
        "specificity": 1.0,
        "balanced_accuracy": 1.0,
    }


def test_each_data_set_counts_the_same_whatever_its_size() -> None:
    # In the small set, all wrong replies score 0.4, like the clean ones of the large set.
    small = [reply(f"s{n}", True, f"g{n % 5}", "small") for n in range(20)]
    small += [reply(f"t{n}", False, f"g{n % 5}", "small") for n in range(20)]
    large = [reply(f"l{n}", True, f"g{n % 5}", "large") for n in range(40)]
    large += [reply(f"m{n}", False, f"g{n % 5}", "large") for n in range(30)]
    scores = [0.4] * 20 + [0.1] * 20 + [0.8] * 40 + [0.4] * 30
    found = fit_threshold(evaluation([*small, *large], *map(said, scores)), seed=0)
    assert isinstance(found, FittedThreshold)
    # Flagging 0.4 finds all of the small set's and flags all clean ones of the large: equal to 0.6, which
    # is higher. With replies counted one by one, 20 of 60 against 30 of 50 would say the same.
    assert found.threshold == 0.6
    assert found.model_dump(exclude={"threshold"}) == {
        "sensitivity": 0.5,
        "specificity": 1.0,
        "balanced_accuracy": 0.75,
    }


def test_replies_and_sentences_are_counted_by_group() -> None:
    replies = [reply("a", True, "g"), reply("b", False, "g"), reply("c", True, "h"), reply("d", True, "h")]
    judgements = [
        said(0.9, (6, 12)),
        said(0.7, (14, 18)),
        said(0.6, flagged=True),  # flagged without a place: no sentence counts
        FAILED,
    ]
    assert count_groups(evaluation(replies, *judgements)) == (
        GroupCounts(
            replies=UnitCounts(clean=1, clean_flagged=1, wrong=1, wrong_flagged=1),
            sentences=UnitCounts(clean=3, clean_flagged=1, wrong=1, wrong_flagged=1),
        ),
        GroupCounts(
            replies=UnitCounts(clean=0, clean_flagged=0, wrong=1, wrong_flagged=1),
            sentences=UnitCounts(clean=0, clean_flagged=0, wrong=0, wrong_flagged=0),
        ),
    )
