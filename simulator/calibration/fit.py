"""Fit a detector's threshold to labelled replies, and count what the detector says at it.

The threshold has the largest balanced accuracy: the mean of the share of hallucinated replies that are
flagged and the share of clean ones that are not. F1 would depend on how many errors were planted. Each data
set counts the same, whatever its size.

How good the threshold is, is measured on replies that it was not fitted to: the groups are dealt out to five
parts, and each part is judged by the threshold of the other four.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hallulab.detectors.base.thresholds import GroupCounts, UnitCounts
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Frozen, Judgement
from hallulab.simulator.bench.evaluate import Evaluation
from hallulab.simulator.bench.levels import get_gold_labels, list_located_ends, mark_touched, split_items
from hallulab.simulator.bench.split import split_into_folds
from hallulab.simulator.statistics.detection import Booleans
from hallulab.simulator.statistics.intervals import Floats, Rounded

PARTS = 5
LEAST = 20
"""Fewest clean, and fewest hallucinated replies that a threshold is fitted to."""
TOO_FEW_GROUPS = f"the replies are of fewer than {PARTS} groups (documents), so none can be held out"


class HeldOutResult(Frozen):
    """How the threshold of the other parts does on each part, over all of them."""

    sensitivity: Rounded
    """Share of the hallucinated replies that are flagged; each data set counts the same."""
    specificity: Rounded
    """Share of the clean replies that are not, likewise."""
    balanced_accuracy: Rounded
    """Mean of both."""


@dataclass(frozen=True)
class FittedThreshold:
    """A fitted threshold."""

    threshold: float
    """Score from which a reply is flagged."""
    held_out: HeldOutResult


def fit_threshold(evaluation: Evaluation, seed: int) -> FittedThreshold | str:
    """Fit a threshold to the scored replies; return the reason where there is none.

    Args:
        evaluation: the replies have labels; their `dataset` is what counts the same.
        seed: of the parts.
    """
    judged = [
        (reply, judgement.score)
        for reply, judgement in zip(evaluation.replies, evaluation.judgements, strict=True)
        if judgement.outcome == "scored" and judgement.score is not None
    ]
    replies = [reply for reply, _ in judged]
    labels = np.array([reply.hallucinated for reply in replies], dtype=bool)
    scores = np.array([score for _, score in judged], dtype=np.float64)
    wrong, clean = int(labels.sum()), int((~labels).sum())
    if min(wrong, clean) < LEAST:
        return (
            f"it scored {wrong} hallucinated and {clean} clean replies, and a threshold takes {LEAST} of each"
        )
    weights = _compute_weights(replies, labels)
    try:
        parts = split_into_folds(replies, PARTS, seed)
    except UsageError:
        return TOO_FEW_GROUPS
    flags = np.zeros(len(labels), dtype=bool)
    for part in parts:
        groups = part.tested_groups
        held = np.array([reply.group in groups for reply in replies])
        if labels[~held].all() or not labels[~held].any():
            return "the replies outside a part of the groups are all hallucinated, or all clean"
        flags[held] = scores[held] >= find_best_cut(labels[~held], scores[~held], weights[~held])
    sensitivity = float((weights * flags)[labels].sum() / weights[labels].sum())
    specificity = float((weights * ~flags)[~labels].sum() / weights[~labels].sum())
    return FittedThreshold(
        threshold=find_best_cut(labels, scores, weights),
        held_out=HeldOutResult(
            sensitivity=sensitivity,
            specificity=specificity,
            balanced_accuracy=(sensitivity + specificity) / 2,
        ),
    )


def find_best_cut(labels: Booleans, scores: Floats, weights: Floats) -> float:
    """Return the threshold with the largest balanced accuracy; of equals, the highest.

    It lies half-way to the next lower score, rounded to six decimals where that changes no flag.

    Args:
        labels: (replies,), of both kinds.
        scores: (replies,)
        weights: (replies,), positive.
    """
    order = np.argsort(-scores, kind="stable")
    found = np.cumsum((weights * labels)[order]) / weights[labels].sum()
    alarms = np.cumsum((weights * ~labels)[order]) / weights[~labels].sum()
    last = np.append(np.diff(scores[order]) != 0, True)
    levels = scores[order][last]
    best = int(np.argmax(np.round((found - alarms)[last], 12)))
    if best + 1 == len(levels):
        return float(levels[best])
    middle = float(levels[best] + levels[best + 1]) / 2
    rounded = round(middle, 6)
    return rounded if levels[best + 1] < rounded <= levels[best] else middle


def count_groups(evaluation: Evaluation) -> tuple[GroupCounts, ...]:
    """Count what the detector says of the replies of each group, and of their sentences.

    A sentence is wrong if a gold span touches it, and flagged if a located span does. Sentences count where
    the reply has gold spans and the detector gave places.
    """
    groups: dict[str, list[tuple[LabelledReply, Judgement]]] = defaultdict(list)
    for reply, judgement in zip(evaluation.replies, evaluation.judgements, strict=True):
        if judgement.outcome == "scored":
            groups[reply.group].append((reply, judgement))
    return tuple(
        GroupCounts(
            replies=_count_units((reply.hallucinated, bool(said.flagged)) for reply, said in judged),
            sentences=_count_units(pair for reply, said in judged for pair in _pair_sentences(reply, said)),
        )
        for _, judged in sorted(groups.items())
    )


def _compute_weights(replies: Sequence[LabelledReply], labels: Booleans) -> Floats:
    """Return weights, shape (replies,): each data set's hallucinated replies weigh the same together.

    So do its clean ones.
    """
    kinds = list(zip((reply.dataset for reply in replies), labels.tolist(), strict=True))
    sizes = Counter(kinds)
    return np.array([len(replies) / sizes[kind] for kind in kinds])


def _pair_sentences(reply: LabelledReply, said: Judgement) -> Iterator[tuple[bool, bool]]:
    gold = get_gold_labels(reply, "sentence")
    if gold is None or not said.localised:
        return
    sentences = split_items(reply.reply, "sentence")
    flagged = mark_touched(reply.reply, list_located_ends(said), sentences)
    yield from zip(gold.tolist(), flagged.tolist(), strict=True)


def _count_units(pairs: Iterable[tuple[bool, bool]]) -> UnitCounts:
    """Count pairs of label and flag."""
    number = Counter(pairs)
    return UnitCounts(
        clean=number[False, False] + number[False, True],
        clean_flagged=number[False, True],
        wrong=number[True, False] + number[True, True],
        wrong_flagged=number[True, True],
    )
