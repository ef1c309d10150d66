"""From judgements of labelled replies to rows of numbers.

A reply that was not scored is in no numerator and no denominator but coverage. A number that is not
defined (one class only, nothing flagged) is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulator.bench.evaluate import Evaluation


def response_row(evaluation: Evaluation, dataset: str) -> dict[str, Any]:
    """Response-level row: AUROC of the score; precision, recall and F1 of the detector's own flag."""
    scored = [
        (bool(reply.label), judgement)
        for reply, judgement in zip(evaluation.replies, evaluation.judgements, strict=True)
        if judgement.outcome == "scored" and reply.label is not None
    ]
    labels = [label for label, _ in scored]
    calls = [call for judgement in evaluation.judgements for call in judgement.calls]
    return {
        "detector": evaluation.detector,
        "dataset": dataset,
        "level": "response",
        "n": len(evaluation.replies),
        "coverage": _round(len(scored) / len(evaluation.replies)) if evaluation.replies else None,
        "auroc": auroc(labels, [float(judgement.score or 0.0) for _, judgement in scored]),
        **precision_recall_f1(labels, [bool(judgement.flagged) for _, judgement in scored]),
        "threshold": evaluation.threshold,
        "threshold_protocol": evaluation.threshold_protocol,
        "calls": len(calls),
        "tokens": sum(call.tokens for call in calls),
        "seconds": round(evaluation.seconds, 3),
    }


def auroc(labels: Sequence[bool], scores: Sequence[float]) -> float | None:
    """Area under the ROC curve, ties counted half; None unless both classes occur."""
    if len(set(labels)) < 2:
        return None
    from sklearn.metrics import roc_auc_score

    return _round(float(roc_auc_score(labels, scores)))


def precision_recall_f1(labels: Sequence[bool], flags: Sequence[bool]) -> dict[str, float | None]:
    """Of the positive class; None where the denominator is empty."""
    hits = sum(label and flag for label, flag in zip(labels, flags, strict=True))
    flagged, positive = sum(flags), sum(labels)
    return {
        "precision": _round(hits / flagged) if flagged else None,
        "recall": _round(hits / positive) if positive else None,
        "f1": _round(2 * hits / (flagged + positive)) if flagged + positive else None,
    }


def _round(value: float) -> float:
    return round(value, 6)
