"""The same numbers for parts of a data set: tasks, kinds of hallucination, lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from scenarios.labelled import LabelledReply
from simulator.bench.evaluate import Evaluation
from simulator.bench.levels import Items, Level, gold_labels, regions
from simulator.bench.rows import counts
from simulator.measure.detection import Booleans, auroc, average_precision, decisions


def breakdown(evaluation: Evaluation, level: Level, items: Items) -> list[dict[str, Any]]:
    """A row for each part that has items, scored or not; by `task`, `length` (thirds by words), `error_type`.

    A row by error type has the items with that kind of gold span as its positives and all clean items as its
    negatives: its recall is the share of that kind that is found.
    """
    replies = evaluation.replies
    found = []
    for by, name_of in (("task", _task), ("length", _length(replies))):
        names = [name_of(reply) for reply in replies]
        for name in dict.fromkeys(sorted(names)):
            part = np.array([other == name for other in names])[items.owners]
            found.append(_row(evaluation, level, by, name, items.part(part)))
    for kind, part in _by_error_type(replies, level, items):
        found.append(_row(evaluation, level, "error_type", kind, items.part(part)))
    return [row for row in found if row["n"]]


def _task(reply: LabelledReply) -> str:
    return reply.task


def _length(replies: Sequence[LabelledReply]) -> Callable[[LabelledReply], str]:
    """Name of the third of the data that a reply is in by its number of words."""
    words = {reply.reply: len(regions(reply.reply, "word")) for reply in replies}
    counts = [words[reply.reply] for reply in replies]
    low, high = (int(bound) for bound in np.quantile(counts, [1 / 3, 2 / 3], method="lower"))

    def name(reply: LabelledReply) -> str:
        count = words[reply.reply]
        if count <= low:
            return f"1: up to {low} words"
        return f"2: up to {high} words" if count <= high else f"3: more than {high} words"

    return name


def _by_error_type(
    replies: Sequence[LabelledReply], level: Level, items: Items
) -> Iterable[tuple[str, Booleans]]:
    """For each kind the mask of its items and all clean ones."""
    kinds = sorted({span.label for reply in replies for span in reply.spans or ()})
    owners = np.unique(items.owners)
    for kind in kinds:
        here = np.concatenate([_of_kind(replies[place], level, kind) for place in owners])
        yield kind, here | ~items.gold


def _of_kind(reply: LabelledReply, level: Level, kind: str) -> Booleans:
    found = gold_labels(reply, level, kind)
    return np.zeros(1, dtype=bool) if found is None else found


def _row(evaluation: Evaluation, level: Level, by: str, name: str, items: Items) -> dict[str, Any]:
    numbers: Mapping[str, float | None] = {
        **counts(items),
        "auroc": auroc(items.sample),
        "auprc": average_precision(items.sample),
        **decisions(items.sample),
    }
    return {
        "detector": evaluation.detector,
        "level": level,
        "by": by,
        "part": name,
        **{key: round(value, 6) if isinstance(value, float) else value for key, value in numbers.items()},
    }
