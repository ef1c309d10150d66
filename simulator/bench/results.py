"""All numbers of a benchmark: rows, parts of the data set, paired differences, chats."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.bench.baselines import FLAG_ALL, MAJORITY, RaterAgreement, flag_all, predict_majority
from hallulab.simulator.bench.chats import ChatbotRows, ChatReport, build_chat_report, build_chatbot_rows
from hallulab.simulator.bench.evaluate import Evaluation
from hallulab.simulator.bench.levels import (
    LEVELS,
    Items,
    Level,
    collect_items,
    get_gold_labels,
    group_numbers,
    split_items,
)
from hallulab.simulator.bench.planted import PlantedRow, build_planted_rows, count_planted
from hallulab.simulator.bench.rows import (
    AnyRow,
    ItemCounts,
    LevelRow,
    Thresholds,
    build_level_row,
    build_span_row,
    count_items,
)
from hallulab.simulator.bench.significance import (
    DetectorDifference,
    Jackknife,
    SourceTest,
    compute_differences,
    run_friedman_test,
)
from hallulab.simulator.bench.sweep import SweepReport
from hallulab.simulator.metrics.failures import find_failed_judgements
from hallulab.simulator.metrics.known_errors import Accuracy
from hallulab.simulator.statistics.detection import (
    Booleans,
    Sample,
    compute_auroc,
    compute_average_precision,
    compute_flag_scores,
)
from hallulab.simulator.statistics.intervals import Rounded

if TYPE_CHECKING:
    import pandas

ALL = "all"
"""The part that is the whole data set, beside the parts by a field of `meta`."""
_MISSING = "not told"


class PartRow(ItemCounts):
    """A detector on a part of the data, at a level; docs/metrics.md says what the fields mean."""

    detector: str
    level: Level
    by: str
    """`task`, `length`, `error_type`, or a field of `meta` as `meta.NAME`."""
    part: str
    auroc: Rounded | None
    auprc: Rounded | None
    precision: Rounded | None
    recall: Rounded | None
    f1: Rounded | None
    balanced_accuracy: Rounded | None
    accuracy: Rounded | None


def build_part_rows(
    evaluation: Evaluation, level: Level, items: Items, fields: Sequence[str] = ()
) -> list[PartRow]:
    """Make a row for each part that has items, by `task`, `length` (thirds by words) and `error_type`.

    In a row by error type, the items with that kind of gold span are the positives, and all clean items the
    negatives. So its recall is the share of that kind that is found.

    Args:
        fields: fields of `meta`; the data are divided by each, too, and one more row is of all replies.
    """
    replies = evaluation.replies
    found = []
    namers: list[tuple[str, Callable[[LabelledReply], str]]] = [
        ("task", lambda reply: reply.task),
        ("length", _build_length_namer(replies)),
        *((f"meta.{field}", partial(_get_field, field)) for field in fields),
    ]
    for by, name_of in namers:
        names = [name_of(reply) for reply in replies]
        for name in dict.fromkeys(sorted(names)):
            part = np.array([other == name for other in names])[items.owners]
            found.append(_build_row(evaluation, level, by, name, items.part(part)))
    if fields:
        found.append(_build_row(evaluation, level, ALL, ALL, items))
    for kind, part in _group_by_error_type(replies, level, items):
        found.append(_build_row(evaluation, level, "error_type", kind, items.part(part)))
    return [row for row in found if row.n]


def _get_field(field: str, reply: LabelledReply) -> str:
    value = reply.meta.get(field)
    return _MISSING if value is None else f"{value}"


def _build_length_namer(replies: Sequence[LabelledReply]) -> Callable[[LabelledReply], str]:
    """Return a function that names a reply's third of the data, by number of words."""
    words = {reply.reply: len(split_items(reply.reply, "word")) for reply in replies}
    counts = [words[reply.reply] for reply in replies]
    low, high = (int(bound) for bound in np.quantile(counts, [1 / 3, 2 / 3], method="lower"))

    def name(reply: LabelledReply) -> str:
        count = words[reply.reply]
        if count <= low:
            return f"1: up to {low} words"
        return f"2: up to {high} words" if count <= high else f"3: more than {high} words"

    return name


def _group_by_error_type(
    replies: Sequence[LabelledReply], level: Level, items: Items
) -> Iterable[tuple[str, Booleans]]:
    """Yield each kind with the mask of its items and all clean ones."""
    kinds = sorted({span.label for reply in replies for span in reply.spans or ()})
    unlabelled = np.zeros(1, dtype=bool)
    for kind in kinds:
        found = (get_gold_labels(replies[place], level, kind) for place in np.unique(items.owners))
        here = np.concatenate([unlabelled if one is None else one for one in found])
        yield kind, here | ~items.gold


def _build_row(evaluation: Evaluation, level: Level, by: str, name: str, items: Items) -> PartRow:
    decided: dict[str, Any] = compute_flag_scores(items.sample)
    return PartRow(
        detector=evaluation.detector,
        level=level,
        by=by,
        part=name,
        auroc=compute_auroc(items.sample),
        auprc=compute_average_precision(items.sample),
        **count_items(items),
        **decided,
    )


class BenchData(Frozen):
    """The data behind the numbers."""

    dataset: str
    """Registered data set, or path of a file."""
    replies: int
    left_out: dict[str, int] = Field(default_factory=dict)
    """Lines that no number counts, by reason."""
    notes: tuple[str, ...] = ()
    split: str
    """How it was cut into training and test parts."""
    folds: int | None = None
    trained_on: int = 0
    """Number of replies in the training part; for folds, the mean."""
    tested_on: int
    groups_in_both: int = 0
    """Number of groups both learnt from and measured on."""
    raters: RaterAgreement | None = None
    seed: int = 0
    not_trained: dict[str, str] = Field(default_factory=dict)
    """Detectors that learn and were not trained here, with the reason."""

    @property
    def part(self) -> str:
        """The share of the replies that is measured on, such as `200 of 400 replies`; empty: all of them."""
        return "" if self.tested_on >= self.replies else f"{self.tested_on:,} of {self.replies:,} replies"


class BenchReport(Frozen):
    """The results of a benchmark: the content of `--json`. docs/bench.md explains the fields."""

    rows: tuple[AnyRow, ...]
    comparisons: tuple[DetectorDifference, ...]
    friedman: SourceTest | None
    breakdown: tuple[PartRow, ...]
    chats: ChatReport | None
    chatbots: ChatbotRows | None
    warnings: tuple[str, ...] = ()
    failed: str | None = None
    """Why `hallulab bench` exits with 1: a detector failed on every reply; None: it does not."""
    planted: tuple[PlantedRow, ...] | None = None
    planted_counts: tuple[Accuracy, ...] | None = None
    data: BenchData
    sweep: SweepReport | None = None

    def frame(self) -> pandas.DataFrame:
        """Return the rows of all levels, by detector; field b of field a is column `a.b`."""
        import pandas

        return pandas.json_normalize([row.model_dump(mode="json") for row in self.rows])

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
    samples: Mapping[tuple[str, Level], Sample]


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
        jackknife = Jackknife()
        floors = (flag_all(replies), predict_majority(replies, level))
        measured = {one.detector: collect_items(one, level, groups) for one in (*floors, *evaluations)}
        if not any(items.n for items in measured.values()):
            continue
        for one in (*floors, *evaluations):
            items = measured[one.detector]
            row = build_level_row(
                one, data.dataset, level, items, jackknife.leave_out(one.detector, items), len(groups)
            )
            if one in floors:  # another threshold would only make another floor of it
                row = row.model_copy(update={"thresholds": Thresholds(default=row.thresholds.default)})
            rows.append(row)
        for one in evaluations:
            parts += build_part_rows(one, level, measured[one.detector], fields)
            samples[one.detector, level] = measured[one.detector].sample
        compared = {one.detector: measured[one.detector] for one in evaluations}
        differences += compute_differences(level, compared, jackknife)
    for one in (flag_all(replies), predict_majority(replies, "word"), *evaluations):
        spans = build_span_row(one, data.dataset, groups)
        rows += [spans] if spans is not None else []
    failures = find_failed_judgements({one.detector: one.judgements for one in evaluations})
    report = BenchReport(
        data=data,
        warnings=failures.warnings,
        failed=failures.failed,
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
