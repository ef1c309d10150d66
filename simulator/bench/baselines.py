"""Baselines for detectors: rules without a detector, and people's agreement.

Agreement of people on the labels of a data set is a limit for what detectors can reach.
One person's rating is read like a detector's verdict. Lower is more suspect, and it is flagged below the
rating from which a reply is clean. It is compared with the label, which includes that person's own rating,
and with the median of the others, which are fewer than those behind the label. Someone who rates as the
others do is between the two numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from hallulab.scenarios.labelled import LabelledReply, Ratings
from hallulab.scenarios.transcript import Frozen, Judgement, Span
from hallulab.simulator.bench.evaluate import Evaluation
from hallulab.simulator.bench.levels import Level, get_gold_labels, group_numbers
from hallulab.simulator.statistics.agreement import compute_krippendorffs_alpha
from hallulab.simulator.statistics.detection import (
    Sample,
    compute_auroc,
    compute_detection_intervals,
    compute_flag_scores,
    leave_out_groups,
)
from hallulab.simulator.statistics.intervals import Interval, Rounded

FLAG_ALL = "flag-all"
MAJORITY = "majority"
FLOOR = "lexical"
"""The simple detector that every table has, for comparison."""


def flag_all(replies: Sequence[LabelledReply]) -> Evaluation:
    """Flag every reply, from its first to its last character."""
    return _build_constant(FLAG_ALL, replies, True)


def predict_majority(replies: Sequence[LabelledReply], level: Level) -> Evaluation:
    """Predict the more frequent class of that level, as known from these very labels; a tie is clean."""
    labels = [found for reply in replies if (found := get_gold_labels(reply, level)) is not None]
    positive = sum(int(found.sum()) for found in labels)
    return _build_constant(MAJORITY, replies, 2 * positive > sum(map(len, labels)))


def _build_constant(name: str, replies: Sequence[LabelledReply], flagged: bool) -> Evaluation:
    return Evaluation(
        detector=name,
        threshold=None,
        threshold_protocol="given",
        replies=tuple(replies),
        judgements=tuple(
            Judgement(
                outcome="scored",
                score=float(flagged),
                flagged=flagged,
                spans=(Span(start=0, end=len(reply.reply), text=reply.reply),) if flagged else (),
            )
            for reply in replies
        ),
        seconds=0.0,
    )


Rating = tuple[float, Ratings, int]
"""One person's rating, the label that it is compared with, and the number of the reply's group."""


class RatingNumbers(Frozen):
    """Quality of single ratings, read as a detector's scores."""

    auroc: Rounded | None
    auroc_ci95: Interval
    f1: Rounded | None
    f1_ci95: Interval
    balanced_accuracy: Rounded | None
    balanced_accuracy_ci95: Interval


class RaterAgreement(Frozen):
    """Agreement on replies with two ratings or more; `alpha` is Krippendorff's, nominal.

    Single ratings are compared with the label, which includes them, and with the median of the others.
    """

    replies: int
    ratings: int
    alpha: Rounded | None
    label: RatingNumbers
    others: RatingNumbers


def compute_rater_agreement(replies: Sequence[LabelledReply]) -> RaterAgreement | None:
    """Compute the agreement of a data set's raters; None where no reply has two ratings."""
    groups = group_numbers(replies)
    rated = [
        (reply.ratings, groups[reply.group])
        for reply in replies
        if reply.ratings is not None and len(reply.ratings.values) > 1
    ]
    if not rated:
        return None
    decided = [[value < ratings.clean_from for value in ratings.values] for ratings, _ in rated]
    return RaterAgreement(
        replies=len(rated),
        ratings=sum(map(len, decided)),
        alpha=compute_krippendorffs_alpha(list(zip_longest(*decided))),
        label=_compute_numbers(
            [(value, ratings, group) for ratings, group in rated for value in ratings.values]
        ),
        others=_compute_numbers(
            [found for ratings, group in rated for found in _leave_one_out(ratings, group)]
        ),
    )


def _leave_one_out(ratings: Ratings, group: int) -> Iterator[Rating]:
    """Yield each person's rating with those of the others."""
    for place, value in enumerate(ratings.values):
        others = ratings.values[:place] + ratings.values[place + 1 :]
        yield value, ratings.model_copy(update={"values": others}), group


def _compute_numbers(ratings: Sequence[Rating]) -> RatingNumbers:
    sample = Sample(
        labels=np.array([against.hallucinated for _, against, _ in ratings]),
        scores=np.array([-value for value, _, _ in ratings]),
        flags=np.array([value < against.clean_from for value, against, _ in ratings]),
        clusters=np.array([group for _, _, group in ratings], dtype=np.int64),
        probabilities=False,
    )
    found = {"auroc": compute_auroc(sample), **compute_flag_scores(sample)}
    left_out = leave_out_groups(sample)
    names = ("auroc", "f1", "balanced_accuracy")
    bounds = compute_detection_intervals(sample, found, {name: left_out[name] for name in names})
    numbers: dict[str, Any] = {}
    for name in names:
        numbers |= {name: found[name], f"{name}_ci95": bounds[name]}
    return RatingNumbers(**numbers)
