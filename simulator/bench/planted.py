"""Planted errors (`make-data planted`): the share of each kind found, and false alarms on clean twins.

A pair is an error and its twin. It counts where both were scored. Kinds, turns before the reply and passages
of the evidence come from `meta`, whoever wrote it there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.spans import split_sentences
from hallulab.scenarios.text.words import parse_whole_number
from hallulab.scenarios.transcript import Frozen, Judgement
from hallulab.simulator.bench.evaluate import Evaluation
from hallulab.simulator.bench.levels import list_located_ends
from hallulab.simulator.metrics.hallucinations import compute_mean
from hallulab.simulator.metrics.known_errors import Accuracy, PairCounts
from hallulab.simulator.statistics.intervals import (
    Interval,
    Ratio,
    Rounded,
    compute_interval,
    compute_ratio_of_sums,
)

FILE = "planted.jsonl"
TWIN = "twin"
"""Key of `meta` under which an error and its clean twin name each other."""
ALL = "all"
"""Stands for all kinds, turns or passages."""


class PlantedRow(Frozen):
    """A detector on errors of a kind, a turn and a length of context; docs/metrics.md explains the fields."""

    detector: str
    kind: str
    turn: str
    context: str
    pairs: int
    coverage: Rounded | None
    recall: Rounded | None
    recall_ci95: Interval
    placed: Rounded | None
    false_alarms: Rounded | None
    false_alarms_ci95: Interval
    told_apart: Rounded | None

    @property
    def is_margin(self) -> bool:
        """True if at most one of kind, turn and context is fixed."""
        return [self.kind, self.turn, self.context].count(ALL) >= 2


@dataclass(frozen=True)
class _ErrorAndTwin:
    """An error and its twin, as judged; None: not scored."""

    group: str
    cell: tuple[str, str, str]
    error: LabelledReply
    twin: LabelledReply
    wrong: Judgement | None
    clean: Judgement | None


def is_planted(replies: Sequence[LabelledReply]) -> bool:
    """Check whether every reply has a twin. Such data is for measuring, but `--folds` learns from it."""
    return all(TWIN in reply.meta for reply in replies)


def build_planted_rows(evaluations: Sequence[Evaluation]) -> tuple[PlantedRow, ...] | None:
    """Return a row for each detector and each combination of kind, turn and context, and their margins.

    None: the data has no pairs.
    """
    found = [row for one in evaluations for row in _build_rows(one.detector, list(_pair_replies(one)))]
    return tuple(found) or None


def count_planted(evaluations: Sequence[Evaluation]) -> tuple[Accuracy, ...] | None:
    """Count what each detector says of errors and twins, for `hallulab report --planted`.

    None: the data has no pairs.
    """
    found = tuple(_count_accuracy(one, pairs) for one in evaluations if (pairs := list(_pair_replies(one))))
    return found or None


def _count_accuracy(evaluation: Evaluation, pairs: Sequence[_ErrorAndTwin]) -> Accuracy:
    groups: dict[str, list[tuple[_ErrorAndTwin, Judgement, Judgement]]] = defaultdict(list)
    for pair in pairs:
        if pair.wrong and pair.clean and pair.wrong.localised and pair.clean.localised:
            groups[pair.group].append((pair, pair.wrong, pair.clean))
    return Accuracy(
        detector=evaluation.detector,
        version=evaluation.version,
        all_pairs=len(pairs),
        groups=tuple(
            PairCounts(
                pairs=len(judged),
                errors_flagged=sum(bool(wrong.flagged) for _, wrong, _ in judged),
                twins_flagged=sum(bool(clean.flagged) for *_, clean in judged),
                error_spans=sum(len(wrong.spans or ()) for _, wrong, _ in judged),
                twin_spans=sum(len(clean.spans or ()) for *_, clean in judged),
                error_sentences=sum(len(split_sentences(pair.error.reply)) for pair, *_ in judged),
                twin_sentences=sum(len(split_sentences(pair.twin.reply)) for pair, *_ in judged),
            )
            for _, judged in sorted(groups.items())
        ),
    )


def _pair_replies(evaluation: Evaluation) -> Iterator[_ErrorAndTwin]:
    judged = {
        reply.id: (reply, judgement if judgement.outcome == "scored" else None)
        for reply, judgement in zip(evaluation.replies, evaluation.judgements, strict=True)
    }
    for reply, wrong in judged.values():
        twin = judged.get(str(reply.meta.get(TWIN)))
        if reply.label and twin is not None:
            cell = (_get_meta(reply, "kind"), _get_meta(reply, "turn"), _get_meta(reply, "context"))
            yield _ErrorAndTwin(reply.group, cell, reply, twin[0], wrong, twin[1])


def _get_meta(reply: LabelledReply, key: str) -> str:
    return str(reply.meta.get(key, "?"))


def _build_rows(detector: str, pairs: Sequence[_ErrorAndTwin]) -> Iterator[PlantedRow]:
    """Yield the row of all pairs, then of each kind, of each turn, of each context, and of all three."""
    if not pairs:
        return

    def get_sort_key(value: str) -> tuple[bool, int, str]:
        number = parse_whole_number(value)
        return number is None, number or 0, value

    kinds, turns, contexts = (sorted({pair.cell[at] for pair in pairs}, key=get_sort_key) for at in range(3))
    cells = [
        (ALL, ALL, ALL),
        *((kind, ALL, ALL) for kind in kinds),
        *((ALL, turn, ALL) for turn in turns),
        *((ALL, ALL, context) for context in contexts),
        *((kind, turn, context) for kind in kinds for turn in turns for context in contexts),
    ]
    for cell in dict.fromkeys(cells):
        inside = [pair for pair in pairs if all(x in (ALL, y) for x, y in zip(cell, pair.cell, strict=True))]
        if inside:
            yield _build_row(detector, cell, inside)


def _build_row(detector: str, cell: tuple[str, str, str], pairs: Sequence[_ErrorAndTwin]) -> PlantedRow:
    scored = [(pair, pair.wrong, pair.clean) for pair in pairs if pair.wrong and pair.clean]
    found = _count_by_group((pair.group, wrong.flagged) for pair, wrong, _ in scored)
    alarms = _count_by_group((pair.group, clean.flagged) for pair, _, clean in scored)
    placed = [_is_at_its_place(pair.error, wrong) for pair, wrong, _ in scored if wrong.spans is not None]
    scores = [(wrong.score or 0.0, clean.score or 0.0) for _, wrong, clean in scored]
    # A pair that ties is told apart half the time, as in an AUROC.
    apart = [float(one > two) + 0.5 * (one == two) for one, two in scores]
    return PlantedRow(
        detector=detector,
        kind=cell[0],
        turn=cell[1],
        context=cell[2],
        pairs=len(pairs),
        coverage=len(scored) / len(pairs),
        recall=compute_ratio_of_sums(found),
        recall_ci95=compute_interval(found, "share"),
        placed=compute_mean(placed),
        false_alarms=compute_ratio_of_sums(alarms),
        false_alarms_ci95=compute_interval(alarms, "share"),
        told_apart=compute_mean(apart),
    )


def _count_by_group(flags: Iterable[tuple[str, bool | None]]) -> list[Ratio]:
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for group, flag in flags:
        counts[group][0] += bool(flag)
        counts[group][1] += 1
    return [Ratio(flagged, total) for flagged, total in counts.values()]


def _is_at_its_place(error: LabelledReply, judgement: Judgement) -> bool:
    """Check whether a flagged span overlaps the planted words."""
    places = list_located_ends(judgement)
    return any(start < gold.end and gold.start < end for start, end in places for gold in error.spans or ())
