"""Multi-turn chats: precision and recall averaged over conversations (HalluDetect section 4.2).

A conversation is a group; what is flagged in it are turns. A conversation in which a detector flags nothing
has no precision, one without hallucination no recall; neither enters that mean. Detectors are compared by
Wilcoxon signed-rank tests over the conversations in which both have a value (HalluDetect section 5.1.2).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from scenarios.labelled import LabelledReply
from simulator.bench.evaluate import Evaluation
from simulator.measure.detection import precision_recall_f1
from simulator.measure.metrics import mean
from simulator.measure.statistics import holm

METRICS = ("precision", "recall")

Values = Mapping[str, Mapping[str, float]]
"""Metric to its value by conversation, where it has one."""


def chat_report(evaluations: Sequence[Evaluation]) -> dict[str, Any] | None:
    """Means by detector and tests by pair of detectors; None where the data has no multi-turn chats."""
    if not evaluations or not _multi_turn(evaluations[0].replies):
        return None
    values = {evaluation.detector: by_conversation(evaluation) for evaluation in evaluations}
    rows = [
        {
            "detector": name,
            "conversations": len({reply.group for reply in evaluations[0].replies}),
            **{metric: mean(list(found[metric].values())) for metric in METRICS},
            **{f"{metric}_over": len(found[metric]) for metric in METRICS},
        }
        for name, found in values.items()
    ]
    return {"rows": rows, "tests": [test for metric in METRICS for test in _tests(values, metric)]}


def by_conversation(evaluation: Evaluation) -> Values:
    """Precision and recall of a detector's flags in each conversation."""
    turns: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for reply, judgement in zip(evaluation.replies, evaluation.judgements, strict=True):
        if judgement.outcome == "scored" and reply.label is not None:
            turns[reply.group].append((reply.label, bool(judgement.flagged)))
    found: dict[str, dict[str, float]] = {metric: {} for metric in METRICS}
    for group, pairs in turns.items():
        numbers = precision_recall_f1(
            sum(label and flag for label, flag in pairs),
            sum(flag for _, flag in pairs),
            sum(label for label, _ in pairs),
        )
        for metric in METRICS:
            value = numbers[metric]
            if value is not None:
                found[metric][group] = value
    return found


def wilcoxon_p(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Two-sided p-value of the signed-rank test; equal pairs are left out, None without any others."""
    from scipy.stats import wilcoxon

    differences = [round(a - b, 12) for a, b in zip(first, second, strict=True)]
    differences = [difference for difference in differences if difference]
    return float(wilcoxon(differences).pvalue) if differences else None


def _tests(values: Mapping[str, Values], metric: str) -> list[dict[str, Any]]:
    found = []
    for a, b in combinations(values, 2):
        one, two = values[a][metric], values[b][metric]
        shared = sorted(one.keys() & two.keys())
        first, second = [one[key] for key in shared], [two[key] for key in shared]
        difference = mean([x - y for x, y in zip(first, second, strict=True)])
        found.append((a, b, len(shared), difference, wilcoxon_p(first, second)))
    adjusted = holm([item[4] for item in found])
    return [
        {
            "metric": metric,
            "a": a,
            "b": b,
            "conversations": pairs,
            "difference": difference,
            "p_value": None if p is None else round(p, 6),
            "p_holm": None if p_holm is None else round(p_holm, 6),
        }
        for (a, b, pairs, difference, p), p_holm in zip(found, adjusted, strict=True)
    ]


def _multi_turn(replies: Sequence[LabelledReply]) -> bool:
    return any(reply.history for reply in replies) and len({reply.group for reply in replies}) < len(replies)
