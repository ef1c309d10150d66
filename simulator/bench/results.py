"""All numbers of a benchmark: rows, parts, paired differences, chats; plain JSON values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from simulator.bench.breakdown import breakdown
from simulator.bench.chatbots import chatbot_report
from simulator.bench.chats import chat_report
from simulator.bench.evaluate import Evaluation
from simulator.bench.floors import flag_all, majority
from simulator.bench.friedman import friedman
from simulator.bench.levels import LEVELS, Items, Level, group_numbers, items_of
from simulator.bench.rows import level_row, span_row
from simulator.measure.bootstrap import Replicates, interval, replicates
from simulator.measure.detection import Sample, auroc, average_precision, decisions

_COMPARED = ("auroc", "auprc", "f1")


@dataclass(frozen=True)
class Results:
    """What a benchmark found."""

    report: dict[str, Any]
    """Keys `rows`, `comparisons`, `friedman`, `breakdown`, `chats`, `chatbots`; what `--json` writes."""
    samples: Mapping[tuple[str, Level], Sample]
    """What curves are drawn from, by detector and level."""


def measure(evaluations: Sequence[Evaluation], dataset: str) -> Results:
    """Measure detectors that judged the same replies, next to the floors flag-all and majority."""
    replies = evaluations[0].replies
    groups = group_numbers(replies)
    rows: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    differences: list[dict[str, Any]] = []
    samples: dict[tuple[str, Level], Sample] = {}
    for level in LEVELS:
        resamples = _Resamples(len(groups))
        floors = (flag_all(replies), majority(replies, level))
        measured = {one.detector: items_of(one, level, groups) for one in (*floors, *evaluations)}
        if not any(items.n for items in measured.values()):
            continue
        for one in (*floors, *evaluations):
            items = measured[one.detector]
            row = level_row(one, dataset, level, items, resamples(one.detector, items), len(groups))
            rows.append(row if one in evaluations else _without_thresholds(row))
        for one in evaluations:
            parts += breakdown(one, level, measured[one.detector])
            samples[one.detector, level] = measured[one.detector].sample
        compared = {one.detector: measured[one.detector] for one in evaluations}
        differences += _differences(level, compared, resamples)
    for one in (flag_all(replies), majority(replies, "word"), *evaluations):
        spans = span_row(one, dataset, groups)
        rows += [spans] if spans is not None else []
    report = {
        "rows": rows,
        "comparisons": differences,
        "friedman": friedman({one.detector: items_of(one, "response", groups) for one in evaluations}),
        "breakdown": parts,
        "chats": chat_report(evaluations),
        "chatbots": chatbot_report(evaluations),
    }
    return Results(report, samples)


def _without_thresholds(row: dict[str, Any]) -> dict[str, Any]:
    """The row of a floor: another threshold would only make another floor of it."""
    own = row["thresholds"]["default"]
    return {**row, "thresholds": {"default": own, **dict.fromkeys(("tuned", "oracle"), dict.fromkeys(own))}}


class _Resamples:
    """Bootstraps of a level's samples, each made once."""

    def __init__(self, groups: int) -> None:
        self._groups = groups
        self._made: dict[tuple[str, bytes], Replicates] = {}

    def __call__(self, detector: str, items: Items) -> Replicates:
        key = (detector, items.places.tobytes())
        if key not in self._made:
            self._made[key] = replicates(items.sample, self._groups)
        return self._made[key]


def _differences(level: Level, measured: Mapping[str, Items], resamples: _Resamples) -> list[dict[str, Any]]:
    """First minus second of every two detectors, on the items that both scored; paired over groups."""
    found = []
    for a, b in combinations(measured, 2):
        shared = measured[a].scored & measured[b].scored
        one, two = measured[a].only(shared), measured[b].only(shared)
        first, second = _numbers(one.sample), _numbers(two.sample)
        for metric in _COMPARED:
            x, y = first[metric], second[metric]
            known = x is not None and y is not None
            found.append(
                {
                    "level": level,
                    "metric": metric,
                    "a": a,
                    "b": b,
                    "n": len(one.sample.labels),
                    "difference": round(x - y, 6) if x is not None and y is not None else None,
                    "ci95": interval(resamples(a, one)[metric] - resamples(b, two)[metric])
                    if known
                    else None,
                }
            )
    return found


def _numbers(sample: Sample) -> dict[str, float | None]:
    return {"auroc": auroc(sample), "auprc": average_precision(sample), "f1": decisions(sample)["f1"]}
