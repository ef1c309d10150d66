"""Rows of numbers from judgements of labelled replies.

Items that were not scored count in coverage only. A number that is not defined (one class only, nothing
flagged) is None.

Four rules for the agreement of flagged with gold spans. Each is exactly 1 where the two are the same.
1. Characters (primary): the union of the characters under each side's spans, counts added up over replies.
2. Pairwise, as LettuceDetect's evaluation by characters: overlaps of every flagged with every gold span, over
   the lengths of the spans, counts added up over replies. Where spans of one side overlap each other, an
   overlap counts more than once, and precision could exceed 1; it is capped.
3. Mean intersection over union of those characters, over the replies with a span on either side.
4. Exact: a span counts where the other side has one with the same two ends.

A flagged span without a place in the reply (a quotation that is not there) has no characters. So it costs
nothing by rules 1 to 3, and is a wrong span by rule 4. Such spans are counted.

Decisions are made at thresholds chosen in three ways; compare values of F1 under the same one only.
- `default`: the detector's own flags, at the threshold that it came with or learnt.
- `tuned`: the groups are cut into two halves. Each half's threshold has the highest F1 on the other half. No
  extra replies are needed, and every item counts once. None where a half has no positives to tune on.
- `oracle`: the single threshold on these scores with the highest F1 on the very items it is measured on. This
  is no result. The detector's own flags may do better where they are no single threshold on these scores.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hallulab.detectors.base.protocol import ThresholdProtocol
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Frozen, Judgement
from hallulab.simulator.bench.evaluate import Costs, Evaluation, compute_costs
from hallulab.simulator.bench.levels import Items, Level, list_located_ends, mark_characters
from hallulab.simulator.metrics.hallucinations import compute_mean
from hallulab.simulator.statistics.detection import (
    Booleans,
    LeftOut,
    Sample,
    compute_auroc,
    compute_average_precision,
    compute_brier,
    compute_calibration_error,
    compute_detection_intervals,
    compute_f1_interval,
    compute_flag_scores,
    compute_precision_recall_f1,
    find_best_threshold,
    sort_into_bins,
)
from hallulab.simulator.statistics.intervals import Interval, Rounded


@dataclass(frozen=True)
class HitCounts:
    """Hits, flagged and gold, in the unit of a rule."""

    hits: int
    flagged: int
    gold: int


@dataclass(frozen=True)
class SpanCounts:
    """Agreement on one reply under each rule."""

    characters: HitCounts
    """Rule 1."""
    pairwise: HitCounts
    """Rule 2."""
    iou: float | None
    """Rule 3; None without any span."""
    exact: HitCounts
    """Rule 4."""
    unlocated: int
    """Flagged spans without a place in the reply."""


def count_spans(reply: LabelledReply, judgement: Judgement) -> SpanCounts | None:
    """Count the agreement on a reply; None where the annotators or the detector do not say where."""
    if reply.spans is None or judgement.spans is None or not judgement.localised:
        return None
    length = len(reply.reply)
    flagged = [(start, min(end, length)) for start, end in list_located_ends(judgement) if start < length]
    unlocated = len(judgement.spans) - len(flagged)
    gold = [(span.start, span.end) for span in reply.spans]
    found, wanted = mark_characters(length, flagged), mark_characters(length, gold)
    characters = HitCounts(int((found & wanted).sum()), int(found.sum()), int(wanted.sum()))
    overlap = sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in flagged for b in gold)
    union = characters.flagged + characters.gold - characters.hits
    once, gold_once = set(flagged), set(gold)
    return SpanCounts(
        characters=characters,
        pairwise=HitCounts(overlap, sum(b - a for a, b in flagged), sum(b - a for a, b in gold)),
        iou=characters.hits / union if union else None,
        exact=HitCounts(len(once & gold_once), len(once) + unlocated, len(gold_once)),
        unlocated=unlocated,
    )


def compute_span_numbers(counted: Sequence[SpanCounts]) -> dict[str, float | None]:
    """Compute precision, recall and F1 under the rules, the primary one without a prefix, and `iou`."""
    return {
        **_compute_numbers("", [item.characters for item in counted]),
        **_compute_numbers("pairwise_", [item.pairwise for item in counted]),
        "iou": compute_mean([item.iou for item in counted if item.iou is not None]),
        **_compute_numbers("exact_", [item.exact for item in counted]),
    }


def _compute_numbers(prefix: str, counts: Sequence[HitCounts]) -> dict[str, float | None]:
    hits, flagged, gold = (
        sum(getattr(item, field) for item in counts) for field in ("hits", "flagged", "gold")
    )
    found = compute_precision_recall_f1(hits, flagged, gold)
    if hits > min(flagged, gold):  # only pairwise, where spans of one side overlap each other
        precision, recall = min(1.0, hits / flagged), min(1.0, hits / gold)
        found = {
            "precision": precision,
            "recall": recall,
            "f1": 2 * precision * recall / (precision + recall),
        }
    return {f"{prefix}{name}": value for name, value in found.items()}


_SEED = 17


class Decided(Frozen):
    """Decisions under one protocol; all None where it has no threshold."""

    threshold: Rounded | tuple[Rounded, Rounded] | None = None
    precision: Rounded | None = None
    recall: Rounded | None = None
    f1: Rounded | None = None
    balanced_accuracy: Rounded | None = None


class Thresholds(Frozen):
    """Decisions under each protocol."""

    default: Decided
    tuned: Decided = Decided()
    oracle: Decided = Decided()


def decide_by_protocols(sample: Sample, clusters: int, threshold: float | None) -> Thresholds:
    """Decide under every protocol.

    Args:
        clusters: number of groups; `sample.clusters` are their numbers.
        threshold: the detector's own at this level, if any.
    """
    halves = draw_dev_half(clusters)[sample.clusters] if len(sample.clusters) else np.zeros(0, dtype=bool)
    fitted = [find_best_threshold(sample.only(half)) for half in (halves, ~halves)]
    tuned = dataclasses.replace(
        sample,
        flags=np.where(halves, sample.flagged_from(fitted[1]).flags, sample.flagged_from(fitted[0]).flags),
    )
    oracle = find_best_threshold(sample)
    one, other = fitted
    return Thresholds(
        default=_decide_at(sample, threshold),
        tuned=Decided() if one is None or other is None else _decide_at(tuned, (one, other)),
        oracle=_decide_at(sample.flagged_from(oracle), oracle),
    )


def draw_dev_half(clusters: int) -> Booleans:
    """Draw a seeded half of the groups, as a mask over their numbers."""
    chosen = random.Random(_SEED).sample(range(clusters), clusters // 2)  # noqa: S311 - a seeded choice
    mask = np.zeros(clusters, dtype=bool)
    mask[chosen] = True
    return mask


def _decide_at(sample: Sample, threshold: float | tuple[float, float] | None) -> Decided:
    found = compute_flag_scores(sample)
    return Decided(threshold=threshold, **{name: found[name] for name in found if name != "accuracy"})


class ItemCounts(Frozen):
    """Items, and scored items; for spans, replies with gold spans, and gold spans."""

    n: int
    positives: int
    scored: int
    scored_positives: int
    coverage: Rounded | None


class _BenchRow(ItemCounts, Costs):
    detector: str
    dataset: str
    groups: int
    threshold_protocol: ThresholdProtocol
    precision: Rounded | None
    recall: Rounded | None
    f1: Rounded | None
    f1_ci95: Interval


class LevelRow(_BenchRow):
    """A detector on replies, sentences or words; docs/bench.md explains the fields."""

    level: Level
    auroc: Rounded | None
    auroc_ci95: Interval
    auprc: Rounded | None
    auprc_ci95: Interval
    accuracy: Rounded | None
    balanced_accuracy: Rounded | None
    balanced_accuracy_ci95: Interval
    ece: Rounded | None
    brier: Rounded | None
    reliability: tuple[tuple[int, Rounded, Rounded], ...]
    """Number of items, mean score and share positive of each bin that has items."""
    threshold: Rounded | None
    fold_thresholds: tuple[Rounded, ...]
    thresholds: Thresholds


class SpanRow(_BenchRow):
    """A detector on spans, by the rules of `hallulab.simulator.bench.rows`.

    Fields without a prefix are by characters.
    """

    level: Literal["span"] = "span"
    auroc: None = None
    threshold: None = None
    unlocated: int
    pairwise_precision: Rounded | None
    pairwise_recall: Rounded | None
    pairwise_f1: Rounded | None
    iou: Rounded | None
    exact_precision: Rounded | None
    exact_recall: Rounded | None
    exact_f1: Rounded | None


AnyRow = LevelRow | SpanRow


def build_level_row(
    evaluation: Evaluation, dataset: str, level: Level, items: Items, left_out: LeftOut, groups: int
) -> LevelRow:
    """Compute ranking and calibration of the scores, agreement of the flags, coverage and cost.

    Args:
        items: the items of the level, see `collect_items`.
        left_out: their numbers without each group.
        groups: number of groups, the clusters of the intervals.
    """
    sample = items.sample
    numbers: dict[str, Any] = {
        "auroc": compute_auroc(sample),
        "auprc": compute_average_precision(sample),
        **compute_flag_scores(sample),
    }
    bounds = compute_detection_intervals(sample, numbers, left_out)
    intervals: dict[str, Any] = {f"{name}_ci95": ci95 for name, ci95 in bounds.items()}
    threshold = evaluation.threshold if level == "response" else None
    return LevelRow(
        detector=evaluation.detector,
        dataset=dataset,
        level=level,
        groups=groups,
        **count_items(items),
        **numbers,
        **intervals,
        ece=compute_calibration_error(sample),
        brier=compute_brier(sample),
        reliability=tuple((item.n, item.score, item.positive) for item in sort_into_bins(sample)),
        threshold=threshold,
        fold_thresholds=evaluation.fold_thresholds if level == "response" else (),
        threshold_protocol=evaluation.threshold_protocol,
        thresholds=decide_by_protocols(sample, groups, threshold),
        **dict(compute_costs(evaluation)),
    )


def count_items(items: Items) -> dict[str, Any]:
    """Return the fields of `ItemCounts`."""
    sample = items.sample
    return {
        "n": items.n,
        "positives": int(items.gold.sum()),
        "scored": len(sample.labels),
        "scored_positives": int(sample.labels.sum()),
        "coverage": len(sample.labels) / items.n if items.n else None,
    }


def build_span_row(evaluation: Evaluation, dataset: str, groups: Mapping[str, int]) -> SpanRow | None:
    """Compute the agreement of flagged and gold spans; None without gold spans."""
    counted: list[SpanCounts] = []
    places: list[int] = []
    n = positives = 0
    for reply, judgement in zip(evaluation.replies, evaluation.judgements, strict=True):
        n += reply.spans is not None
        positives += len({(span.start, span.end) for span in reply.spans or ()})
        found = count_spans(reply, judgement)
        if found is not None:
            counted.append(found)
            places.append(groups[reply.group])
    if not n:
        return None
    sums = [(item.characters.hits, item.characters.flagged, item.characters.gold) for item in counted]
    agreement: dict[str, Any] = compute_span_numbers(counted)
    return SpanRow(
        detector=evaluation.detector,
        dataset=dataset,
        n=n,
        positives=positives,
        scored=len(counted),
        scored_positives=sum(item.exact.gold for item in counted),
        unlocated=sum(item.unlocated for item in counted),
        groups=len(groups),
        coverage=len(counted) / n,
        **agreement,
        f1_ci95=compute_f1_interval(sums, places),
        threshold_protocol=evaluation.threshold_protocol,
        **dict(compute_costs(evaluation)),
    )
