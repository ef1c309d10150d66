"""From judgements of labelled replies to rows of numbers.

What was not scored is in no numerator and no denominator but coverage. A number that is not defined (one
class only, nothing flagged) is None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scenarios.transcript import Judgement
from simulator.bench.evaluate import Evaluation
from simulator.bench.levels import Items, Level
from simulator.bench.reasons import reasons
from simulator.bench.spans import SpanCounts, count_spans, span_numbers
from simulator.bench.thresholds import threshold_protocols
from simulator.measure.bootstrap import Replicates, f1_replicates, interval
from simulator.measure.detection import (
    auroc,
    average_precision,
    brier,
    calibration_error,
    decisions,
    reliability,
)


def level_row(
    evaluation: Evaluation, dataset: str, level: Level, items: Items, drawn: Replicates, groups: int
) -> dict[str, Any]:
    """Ranking and calibration of the scores, agreement of the detector's own flags, coverage and cost.

    Args:
        items: what the detector scored at the level, see `items_of`.
        drawn: the bootstrap of those.
        groups: number of groups, the clusters of the intervals.
    """
    sample = items.sample
    decided = decisions(sample)
    threshold = evaluation.threshold if level == "response" else None
    row: dict[str, Any] = {
        "detector": evaluation.detector,
        "dataset": dataset,
        "level": level,
        "groups": groups,
        **counts(items),
        "auroc": auroc(sample),
        "auroc_ci95": interval(drawn["auroc"]),
        "auprc": average_precision(sample),
        "auprc_ci95": interval(drawn["auprc"]),
        "precision": decided["precision"],
        "recall": decided["recall"],
        "f1": decided["f1"],
        "f1_ci95": interval(drawn["f1"]),
        "balanced_accuracy": decided["balanced_accuracy"],
        "balanced_accuracy_ci95": interval(drawn["balanced_accuracy"]),
        "ece": calibration_error(sample),
        "brier": brier(sample),
        "reliability": [[item.n, item.score, item.positive] for item in reliability(sample)],
        "threshold": threshold,
        "fold_thresholds": list(evaluation.fold_thresholds) if level == "response" else [],
        "threshold_protocol": evaluation.threshold_protocol,
        "thresholds": threshold_protocols(sample, groups, threshold),
        **costs(evaluation),
    }
    return {name: _rounded(value) for name, value in row.items()}


def counts(items: Items) -> dict[str, int | float | None]:
    """Items and positives that there are, those of them that were scored, and coverage."""
    sample = items.sample
    return {
        "n": items.n,
        "positives": int(items.gold.sum()),
        "scored": len(sample.labels),
        "scored_positives": int(sample.labels.sum()),
        "coverage": len(sample.labels) / items.n if items.n else None,
    }


def span_row(evaluation: Evaluation, dataset: str, groups: Mapping[str, int]) -> dict[str, Any] | None:
    """Agreement of flagged and gold spans by the rules of `simulator.bench.spans`; None without gold spans.

    `n` counts replies with gold spans (perhaps none in them).
    """
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
    row: dict[str, Any] = {
        "detector": evaluation.detector,
        "dataset": dataset,
        "level": "span",
        "n": n,
        "positives": positives,
        "scored": len(counted),
        "scored_positives": sum(item.exact.gold for item in counted),
        "unlocated": sum(item.unlocated for item in counted),
        "groups": len(groups),
        "coverage": len(counted) / n,
        "auroc": None,
        **span_numbers(counted),
        "f1_ci95": interval(f1_replicates(sums, places, len(groups))),
        "threshold": None,
        "threshold_protocol": evaluation.threshold_protocol,
        **costs(evaluation),
    }
    return {name: _rounded(value) for name, value in row.items()}


def costs(evaluation: Evaluation) -> dict[str, Any]:
    """What judging cost and where it failed, whatever the level."""
    judgements = evaluation.judgements
    calls = [call for judgement in judgements for call in judgement.calls]
    tokens = sum(call.tokens for call in calls)
    times = _times(evaluation)
    p50, p95 = np.quantile(times, [0.5, 0.95]) * 1000 if times else (None, None)
    return {
        "abstained": sum(judgement.outcome == "abstained" for judgement in judgements),
        "failed": sum(judgement.outcome == "failed" for judgement in judgements),
        "parse_failures": sum(map(_unparseable, judgements)),
        "reasons": reasons(judgements),
        "truncated": sum(judgement.truncated for judgement in judgements),
        "truncated_scored": sum(one.truncated and one.outcome == "scored" for one in judgements),
        "truncated_abstained": sum(one.truncated and one.outcome == "abstained" for one in judgements),
        "calls": len(calls),
        "replayed_calls": sum(call.replayed for call in calls),
        "tokens": tokens,
        "calls_per_reply": len(calls) / len(judgements) if judgements else None,
        "tokens_per_reply": tokens / len(judgements) if judgements else None,
        "computed_tokens_per_reply": _computed_tokens(judgements),
        "seconds": round(evaluation.seconds, 3),
        "train_s": evaluation.train_s,
        "cold_s": evaluation.cold_s,
        "p50_ms": None if p50 is None else float(p50),
        "p95_ms": None if p95 is None else float(p95),
        "batched": evaluation.batched,
        "told_origin": evaluation.told_origin,
    }


def _computed_tokens(judgements: Sequence[Judgement]) -> float | None:
    """Mean of what the server computed for a reply; None where it does not tell of every call."""
    counts = [call.computed_tokens for one in judgements for call in one.calls if call.error is None]
    told = [count for count in counts if count is not None]
    return sum(told) / len(judgements) if judgements and len(told) == len(counts) else None


def _times(evaluation: Evaluation) -> list[float]:
    """Seconds of the judgements that were scored, but for those with a replayed answer, which takes none."""
    return [
        seconds
        for seconds, judgement in zip(evaluation.latencies_s, evaluation.judgements, strict=False)
        if seconds is not None
        and judgement.outcome == "scored"
        and not any(call.replayed for call in judgement.calls)
    ]


def _unparseable(judgement: Judgement) -> bool:
    """Whether the judgement failed though the model answered every request: in another form than asked."""
    calls = judgement.calls
    return judgement.outcome == "failed" and bool(calls) and all(call.error is None for call in calls)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, Mapping):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_rounded(item) for item in value]
    return value
