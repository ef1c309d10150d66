"""How far people agree on the labels of a data set: what no detector can be expected to pass.

One person's rating is read like a detector's verdict: the lower, the more suspect, and flagged where it is
under the rating from which a reply is clean. It is held against the label, in which that person had a say,
and against the median of the others, of whom there are fewer than made the label: a person who rates as the
others do is somewhere between the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from scenarios.labelled import LabelledReply, Ratings
from simulator.bench.levels import group_numbers
from simulator.measure.agreement import krippendorffs_alpha
from simulator.measure.bootstrap import interval, replicates
from simulator.measure.detection import Sample, auroc, decisions

Rating = tuple[float, Ratings, int]
"""What one person said, by whom it is held against that, and the number of the reply's group."""


def rater_agreement(replies: Sequence[LabelledReply]) -> dict[str, Any] | None:
    """Agreement of the people who rated replies; None where no reply has two ratings.

    `alpha` is Krippendorff's for nominal data, of who calls a reply clean and who does not. `label` and
    `others` have AUROC, F1 and balanced accuracy of single ratings against the two.
    """
    groups = group_numbers(replies)
    rated = [
        (reply.ratings, groups[reply.group])
        for reply in replies
        if reply.ratings is not None and len(reply.ratings.values) > 1
    ]
    if not rated:
        return None
    decided = [[value < ratings.clean_from for value in ratings.values] for ratings, _ in rated]
    alpha = krippendorffs_alpha(list(zip_longest(*decided)))
    return {
        "replies": len(rated),
        "ratings": sum(map(len, decided)),
        "alpha": None if alpha is None else round(alpha, 6),
        "label": _numbers([(value, ratings, group) for ratings, group in rated for value in ratings.values]),
        "others": _numbers([found for ratings, group in rated for found in _left_out(ratings, group)]),
    }


def _left_out(ratings: Ratings, group: int) -> Iterator[Rating]:
    """Each person's rating with those of the others."""
    for place, value in enumerate(ratings.values):
        others = ratings.values[:place] + ratings.values[place + 1 :]
        yield value, ratings.model_copy(update={"values": others}), group


def _numbers(ratings: Sequence[Rating]) -> dict[str, Any]:
    sample = Sample(
        labels=np.array([against.hallucinated for _, against, _ in ratings]),
        scores=np.array([-value for value, _, _ in ratings]),
        flags=np.array([value < against.clean_from for value, against, _ in ratings]),
        clusters=np.array([group for _, _, group in ratings], dtype=np.int64),
        probabilities=False,
    )
    drawn = replicates(sample, int(sample.clusters.max()) + 1)
    values = {"auroc": auroc(sample), **decisions(sample)}
    found: dict[str, Any] = {}
    for name in ("auroc", "f1", "balanced_accuracy"):
        value = values[name]
        found[name] = None if value is None else round(value, 6)
        found[f"{name}_ci95"] = interval(drawn[name])
    return found
