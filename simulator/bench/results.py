"""All numbers of a benchmark: rows, parts, paired differences, chats."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from pydantic import Field

from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.bench.breakdown import ALL, PartRow, build_part_rows
from hallulab.simulator.bench.chatbots import ChatbotRows, build_chatbot_rows
from hallulab.simulator.bench.chats import ChatReport, build_chat_report
from hallulab.simulator.bench.evaluate import Evaluation
from hallulab.simulator.bench.floors import FLAG_ALL, MAJORITY, flag_all, predict_majority
from hallulab.simulator.bench.friedman import SourceTest, run_friedman_test
from hallulab.simulator.bench.levels import LEVELS, Items, Level, collect_items, group_numbers
from hallulab.simulator.bench.planted import PlantedRow, build_planted_rows, count_planted
from hallulab.simulator.bench.raters import RaterAgreement
from hallulab.simulator.bench.rows import AnyRow, LevelRow, build_level_row, build_span_row
from hallulab.simulator.bench.sweep import SweepReport
from hallulab.simulator.bench.thresholds import Thresholds
from hallulab.simulator.measure.bootstrap import Replicates, compute_replicates
from hallulab.simulator.measure.detection import (
    Sample,
    compute_auroc,
    compute_average_precision,
    compute_flag_scores,
)
from hallulab.simulator.measure.numbers import Interval, Rounded
from hallulab.simulator.measure.prevalence import Accuracy
from hallulab.simulator.measure.statistics import compute_percentile_interval

Metric = Literal["auroc", "auprc", "f1"]
_COMPARED: tuple[Metric, ...] = ("auroc", "auprc", "f1")


class BenchData(Frozen):
    """The data behind the numbers."""

    dataset: str
    """Registered data set, or path of a file."""
    replies: int
    """Number of its labelled replies."""
    left_out: dict[str, int] = Field(default_factory=dict)
    """Lines that no number counts, by reason."""
    split: str
    """How it was cut into training and test parts."""
    folds: int | None = None
    """Number of folds; None: none."""
    trained_on: int = 0
    """Number of replies in the training part; for folds, the mean."""
    tested_on: int
    """Number of replies measured on."""
    groups_in_both: int = 0
    """Number of groups both learnt from and measured on."""
    raters: RaterAgreement | None = None
    """Agreement of the people behind the labels."""
    seed: int = 0
    """Seed of every random choice."""
    not_trained: dict[str, str] = Field(default_factory=dict)
    """Detectors that learn and were not trained here, with the reason."""


class DetectorDifference(Frozen):
    """Two detectors on the items that both scored."""

    level: Level
    metric: Metric
    a: str
    b: str
    n: int
    difference: Rounded | None
    ci95: Interval


class BenchReport(Frozen):
    """The results of a benchmark: the content of `--json`. docs/bench.md explains the fields."""

    rows: tuple[AnyRow, ...]
    comparisons: tuple[DetectorDifference, ...]
    friedman: SourceTest | None
    breakdown: tuple[PartRow, ...]
    chats: ChatReport | None
    chatbots: ChatbotRows | None
    planted: tuple[PlantedRow, ...] | None = None
    planted_counts: tuple[Accuracy, ...] | None = None
    data: BenchData
    sweep: SweepReport | None = None

    @property
    def levels(self) -> list[Level | Literal["span"]]:
        """Levels with rows."""
        return list(dict.fromkeys(row.level for row in self.rows))

    @property
    def replies(self) -> list[LevelRow]:
        """The rows of whole replies, without floors."""
        of_replies = (row for row in self.rows if isinstance(row, LevelRow) and row.level == "response")
        return [row for row in of_replies if row.detector not in (FLAG_ALL, MAJORITY)]

    @property
    def parts_by_meta(self) -> list[PartRow]:
        """Rows of replies by fields of `meta`, and of all replies; none without such fields."""
        rows = [row for row in self.breakdown if row.level == "response"]
        return [row for row in rows if row.by.startswith("meta.") or row.by == ALL]

    @property
    def planted_margins(self) -> list[PlantedRow]:
        """Rows of planted errors by kind, by turn and by context alone."""
        return [row for row in self.planted or () if row.is_margin]

    def at(self, level: str) -> list[AnyRow]:
        """Return the rows of a level."""
        return [row for row in self.rows if row.level == level]

    def text(self) -> str:
        """Return the report as JSON; without a sweep, it has no field `sweep`."""
        values = self.model_dump(mode="json", exclude={"sweep"} if self.sweep is None else None)
        return json.dumps(values, indent=2, allow_nan=False) + "\n"


@dataclass(frozen=True)
class Results:
    """A report, and the data of its curves."""

    report: BenchReport
    """The numbers."""
    samples: Mapping[tuple[str, Level], Sample]
    """Data of the curves, by detector and level."""


def measure(
    evaluations: Sequence[Evaluation],
    data: BenchData,
    sweep: SweepReport | None = None,
    fields: Sequence[str] = (),
) -> Results:
    """Measure detectors that judged the same replies, next to the floors flag-all and majority.

    Args:
        fields: fields of `meta` by which the numbers are broken down, too.
    """
    replies = evaluations[0].replies
    groups = group_numbers(replies)
    rows: list[AnyRow] = []
    parts: list[PartRow] = []
    differences: list[DetectorDifference] = []
    samples: dict[tuple[str, Level], Sample] = {}
    for level in LEVELS:
        resamples = _Resamples(len(groups))
        floors = (flag_all(replies), predict_majority(replies, level))
        measured = {one.detector: collect_items(one, level, groups) for one in (*floors, *evaluations)}
        if not any(items.n for items in measured.values()):
            continue
        for one in (*floors, *evaluations):
            items = measured[one.detector]
            row = build_level_row(
                one, data.dataset, level, items, resamples(one.detector, items), len(groups)
            )
            if one in floors:  # another threshold would only make another floor of it
                row = row.model_copy(update={"thresholds": Thresholds(default=row.thresholds.default)})
            rows.append(row)
        for one in evaluations:
            parts += build_part_rows(one, level, measured[one.detector], fields)
            samples[one.detector, level] = measured[one.detector].sample
        compared = {one.detector: measured[one.detector] for one in evaluations}
        differences += _compute_differences(level, compared, resamples)
    for one in (flag_all(replies), predict_majority(replies, "word"), *evaluations):
        spans = build_span_row(one, data.dataset, groups)
        rows += [spans] if spans is not None else []
    report = BenchReport(
        data=data,
        rows=tuple(rows),
        comparisons=tuple(differences),
        friedman=run_friedman_test(
            {one.detector: collect_items(one, "response", groups) for one in evaluations}
        ),
        breakdown=tuple(parts),
        chats=build_chat_report(evaluations),
        chatbots=build_chatbot_rows(evaluations),
        planted=build_planted_rows(evaluations),
        planted_counts=count_planted(evaluations),
        sweep=sweep,
    )
    return Results(report, samples)


class _Resamples:
    """Bootstraps of a level's samples, each computed once."""

    def __init__(self, groups: int) -> None:
        self._groups = groups
        self._made: dict[tuple[str, bytes], Replicates] = {}

    def __call__(self, detector: str, items: Items) -> Replicates:
        key = (detector, items.places.tobytes())
        if key not in self._made:
            self._made[key] = compute_replicates(items.sample, self._groups)
        return self._made[key]


def _compute_differences(
    level: Level, measured: Mapping[str, Items], resamples: _Resamples
) -> list[DetectorDifference]:
    """Compute first minus second for every two detectors, paired over groups, on items that both scored."""
    found = []
    for a, b in combinations(measured, 2):
        shared = measured[a].scored & measured[b].scored
        one, two = measured[a].only(shared), measured[b].only(shared)
        first, second = _compute_metrics(one.sample), _compute_metrics(two.sample)
        for metric in _COMPARED:
            x, y = first[metric], second[metric]
            found.append(
                DetectorDifference(
                    level=level,
                    metric=metric,
                    a=a,
                    b=b,
                    n=len(one.sample.labels),
                    difference=None if x is None or y is None else x - y,
                    ci95=None
                    if x is None or y is None
                    else compute_percentile_interval(resamples(a, one)[metric] - resamples(b, two)[metric]),
                )
            )
    return found


def _compute_metrics(sample: Sample) -> dict[Metric, float | None]:
    return {
        "auroc": compute_auroc(sample),
        "auprc": compute_average_precision(sample),
        "f1": compute_flag_scores(sample)["f1"],
    }
