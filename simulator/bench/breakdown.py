"""The same numbers for parts of a data set: tasks, kinds of hallucination, lengths, and fields of `meta`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from hallulab.scenarios.labelled import LabelledReply
from hallulab.simulator.bench.evaluate import Evaluation
from hallulab.simulator.bench.levels import Items, Level, get_gold_labels, split_items
from hallulab.simulator.bench.rows import ItemCounts, count_items
from hallulab.simulator.measure.detection import (
    Booleans,
    compute_auroc,
    compute_average_precision,
    compute_flag_scores,
)
from hallulab.simulator.measure.numbers import Rounded

ALL = "all"
"""The part that is the whole data set, beside the parts by a field of `meta`."""
_UNTOLD = "not told"
"""The part of replies whose `meta` lacks the field."""


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
        *((f"meta.{field}", _build_field_namer(field)) for field in fields),
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


def _build_field_namer(field: str) -> Callable[[LabelledReply], str]:
    def name(reply: LabelledReply) -> str:
        value = reply.meta.get(field)
        return _UNTOLD if value is None else f"{value}"

    return name


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
    owners = np.unique(items.owners)
    for kind in kinds:
        here = np.concatenate([_mark_kind(replies[place], level, kind) for place in owners])
        yield kind, here | ~items.gold


def _mark_kind(reply: LabelledReply, level: Level, kind: str) -> Booleans:
    found = get_gold_labels(reply, level, kind)
    return np.zeros(1, dtype=bool) if found is None else found


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
