"""Rows of numbers from judgements of labelled replies, and the agreement of flagged and gold spans.

Compute rows of numbers from judgements of labelled replies.
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
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hallulab.detectors.base.protocol import ThresholdProtocol
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Frozen, Judgement
from hallulab.simulator.bench.evaluate import Evaluation, Missing, count_reasons
from hallulab.simulator.bench.levels import Ends, Items, Level, list_located_ends, mark_characters
from hallulab.simulator.bench.thresholds import Thresholds, decide_by_protocols
from hallulab.simulator.metrics.hallucinations import compute_mean
from hallulab.simulator.metrics.spending import sum_calls
from hallulab.simulator.statistics.detection import (
    Replicates,
    compute_auroc,
    compute_average_precision,
    compute_brier,
    compute_calibration_error,
    compute_f1_replicates,
    compute_flag_scores,
    compute_precision_recall_f1,
    sort_into_bins,
)
from hallulab.simulator.statistics.intervals import Interval, Rounded, compute_percentile_interval


@dataclass(frozen=True)
class HitCounts:
    """Hits, flagged and gold, in the unit of a rule."""

    hits: int
    flagged: int
    """Number on the detector's side."""
    gold: int
    """Number on the annotators' side."""


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
    characters = _count_characters(length, flagged, gold)
    union = characters.flagged + characters.gold - characters.hits
    once, gold_once = set(flagged), set(gold)
    return SpanCounts(
        characters=characters,
        pairwise=_count_pairwise(flagged, gold),
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


def _count_characters(length: int, flagged: Sequence[Ends], gold: Sequence[Ends]) -> HitCounts:
    found, wanted = mark_characters(length, flagged), mark_characters(length, gold)
    return HitCounts(int((found & wanted).sum()), int(found.sum()), int(wanted.sum()))


def _count_pairwise(flagged: Sequence[Ends], gold: Sequence[Ends]) -> HitCounts:
    overlap = sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in flagged for b in gold)
    return HitCounts(overlap, sum(end - start for start, end in flagged), sum(b - a for a, b in gold))


def _compute_numbers(prefix: str, counts: Sequence[HitCounts]) -> dict[str, float | None]:
    hits, flagged, gold = (
        sum(getattr(item, field) for item in counts) for field in ("hits", "flagged", "gold")
    )
    found = compute_precision_recall_f1(hits, flagged, gold)
    if hits > min(flagged, gold):
        precision, recall = min(1.0, hits / flagged), min(1.0, hits / gold)
        found = {
            "precision": precision,
            "recall": recall,
            "f1": 2 * precision * recall / (precision + recall),
        }
    return {f"{prefix}{name}": value for name, value in found.items()}


class Costs(Frozen):
    """Costs and failures of judging, the same at each level; docs/bench.md explains the fields."""

    abstained: int
    failed: int
    parse_failures: int
    reasons: tuple[Missing, ...]
    truncated: int
    truncated_scored: int
    truncated_abstained: int
    calls: int
    replayed_calls: int
    tokens: int | None
    """Tokens read and written; None: the server did not tell those of an answered call."""
    calls_per_reply: Rounded | None
    tokens_per_reply: Rounded | None
    computed_tokens_per_reply: Rounded | None
    seconds: Rounded
    train_s: Rounded | None
    cold_s: Rounded | None
    p50_ms: Rounded | None
    p95_ms: Rounded | None
    batched: bool
    told_origin: bool


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
    evaluation: Evaluation, dataset: str, level: Level, items: Items, drawn: Replicates, groups: int
) -> LevelRow:
    """Compute ranking and calibration of the scores, agreement of the flags, coverage and cost.

    Args:
        items: the items of the level, see `collect_items`.
        drawn: their bootstrap.
        groups: number of groups, the clusters of the intervals.
    """
    sample = items.sample
    decided: dict[str, Any] = compute_flag_scores(sample)
    intervals: dict[str, Any] = {f"{name}_ci95": compute_percentile_interval(drawn[name]) for name in drawn}
    threshold = evaluation.threshold if level == "response" else None
    return LevelRow(
        detector=evaluation.detector,
        dataset=dataset,
        level=level,
        groups=groups,
        **count_items(items),
        auroc=compute_auroc(sample),
        auprc=compute_average_precision(sample),
        **decided,
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
        f1_ci95=compute_percentile_interval(compute_f1_replicates(sums, places, len(groups))),
        threshold_protocol=evaluation.threshold_protocol,
        **dict(compute_costs(evaluation)),
    )


def compute_costs(evaluation: Evaluation) -> Costs:
    """Compute the costs and failures of judging."""
    judgements = evaluation.judgements
    number = len(judgements)
    calls = [call for judgement in judgements for call in judgement.calls]
    tokens = sum_calls(calls).all_tokens
    times = _collect_times(evaluation)
    p50, p95 = np.quantile(times, [0.5, 0.95]) * 1000 if times else (None, None)
    return Costs(
        abstained=sum(judgement.outcome == "abstained" for judgement in judgements),
        failed=sum(judgement.outcome == "failed" for judgement in judgements),
        parse_failures=sum(map(_is_unparseable, judgements)),
        reasons=count_reasons(judgements),
        truncated=sum(judgement.truncated for judgement in judgements),
        truncated_scored=sum(one.truncated and one.outcome == "scored" for one in judgements),
        truncated_abstained=sum(one.truncated and one.outcome == "abstained" for one in judgements),
        calls=len(calls),
        replayed_calls=sum(call.replayed for call in calls),
        tokens=tokens,
        calls_per_reply=len(calls) / number if number else None,
        tokens_per_reply=tokens / number if number and tokens is not None else None,
        computed_tokens_per_reply=_compute_mean_tokens(judgements),
        seconds=round(evaluation.seconds, 3),
        train_s=evaluation.train_s,
        cold_s=evaluation.cold_s,
        p50_ms=None if p50 is None else float(p50),
        p95_ms=None if p95 is None else float(p95),
        batched=evaluation.batched,
        told_origin=evaluation.told_origin,
    )


def _compute_mean_tokens(judgements: Sequence[Judgement]) -> float | None:
    """Return the mean of tokens that the server computed for a reply; None if a call lacks them."""
    counts = [call.computed_tokens for one in judgements for call in one.calls if call.error is None]
    told = [count for count in counts if count is not None]
    return sum(told) / len(judgements) if judgements and len(told) == len(counts) else None


def _collect_times(evaluation: Evaluation) -> list[float]:
    """Return the seconds of scored judgements, without those with a replayed answer, which takes no time."""
    return [
        seconds
        for seconds, judgement in zip(evaluation.latencies_s, evaluation.judgements, strict=False)
        if seconds is not None
        and judgement.outcome == "scored"
        and not any(call.replayed for call in judgement.calls)
    ]


def _is_unparseable(judgement: Judgement) -> bool:
    """Return whether the judgement failed although every request was answered: in another form than asked."""
    calls = judgement.calls
    return judgement.outcome == "failed" and bool(calls) and all(call.error is None for call in calls)
