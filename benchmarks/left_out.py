"""Hallucinations per turn of personas that a threshold was not fitted to: `python -m benchmarks.left_out`.

The table stands in docs/studies/methods.md. A threshold that is fitted so that as many hallucinations are
found as
labelled makes HPT-1 right by construction. So each of the four personas of the annotated runs is judged at
the threshold that is best for the three others. What the detectors say is replayed from recordings; prompts,
weights and corrections stay as shipped, and were chosen with all four personas in view.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import Callable, Sequence

from benchmarks.command import build_parser, format_signed, format_table
from benchmarks.detectors_table.measure import TableArguments, judged
from benchmarks.detectors_table.samples import FOLDER, KEPT
from hallulab.detectors.halludetect.detector import choose_kept_places
from hallulab.scenarios.text.wording import NOTHING
from hallulab.scenarios.transcript import Judgement, Span, Unit
from hallulab.simulator.bench.chats import ChatbotMean, ChatbotRow, build_chatbot_rows
from hallulab.simulator.bench.evaluate import Evaluation

Kept = Callable[[Judgement, Sequence[Unit], float], Sequence[int]]
"""Returns which of the scored units of a judgement are hallucinations at a threshold."""


def _by_reply(judgement: Judgement, units: Sequence[Unit], threshold: float) -> Sequence[int]:
    """HalluDetect's rule."""
    return choose_kept_places([unit.score or 0.0 for unit in units], judgement.score or 0.0, threshold)


def _by_unit(judgement: Judgement, units: Sequence[Unit], threshold: float) -> Sequence[int]:
    """MetaRAG's rule."""
    return [place for place, unit in enumerate(units) if (unit.score or 0.0) >= threshold]


_COLUMNS = (
    "detector",
    "thresholds of the left-out personas",
    "HPT-1, error, mean over five bots",
    "largest error of a bot",
    "coverage",
)

RULES: dict[str, Kept] = {"halludetect": _by_reply, "metarag": _by_unit}


def decide(judgement: Judgement, kept: Kept, threshold: float) -> Judgement:
    """Return a judgement at another threshold; one that was not scored stays."""
    if judgement.outcome != "scored":
        return judgement
    units = [unit for unit in judgement.units if unit.score is not None]
    chosen = [units[place] for place in kept(judgement, units, threshold)]
    spans = tuple(Span(start=unit.start, end=unit.end, text=unit.text, score=unit.score) for unit in chosen)
    return judgement.model_copy(update={"spans": spans, "flagged": bool(spans)})


def best_threshold(evaluation: Evaluation, kept: Kept, places: Sequence[int]) -> float:
    """Return the threshold at which the number of hallucinations in some replies is nearest to the labels'.

    Each reply counts once for each turn that has it. The lowest of several equally good ones is returned.
    """
    replies, judgements = evaluation.replies, evaluation.judgements
    scored = [place for place in places if judgements[place].outcome == "scored"]
    scores = {unit.score for place in scored for unit in judgements[place].units if unit.score is not None}
    labelled = sum(len(replies[place].spans or ()) * len(replies[place].turns) for place in scored)

    def distance(threshold: float) -> int:
        found = (
            len(decide(judgements[place], kept, threshold).spans or ()) * len(replies[place].turns)
            for place in scored
        )
        return abs(sum(found) - labelled)

    return min(sorted(scores), key=distance)


def leave_out(evaluation: Evaluation, kept: Kept) -> tuple[Evaluation, dict[str, float]]:
    """Judge each persona at the threshold of the others; return the judgements, and threshold by persona."""
    groups = [reply.group for reply in evaluation.replies]
    thresholds = {
        group: best_threshold(evaluation, kept, [i for i, own in enumerate(groups) if own != group])
        for group in sorted(set(groups))
    }
    judgements = tuple(
        decide(judgement, kept, thresholds[group])
        for judgement, group in zip(evaluation.judgements, groups, strict=True)
    )
    return dataclasses.replace(evaluation, judgements=judgements), thresholds


def row_of(detector: str, evaluation: Evaluation, thresholds: dict[str, float]) -> list[str]:
    """Return the table's row of a detector."""
    report = build_chatbot_rows([evaluation]) or ()
    bots = [row.error for row in report if isinstance(row, ChatbotRow) and row.error is not None]
    [mean] = [row for row in report if isinstance(row, ChatbotMean)]
    span = f"{min(thresholds.values()):.2f} to {max(thresholds.values()):.2f}"
    coverage = NOTHING if mean.coverage is None else f"{mean.coverage:.0%}"
    return [f"`{detector}`", span, format_signed(mean.error), format_signed(max(bots, key=abs)), coverage]


def table(detectors: Sequence[str]) -> str:
    """Return the table, as Markdown.

    Raises:
        OperationalError: a recording lacks an answer.
    """
    asked = TableArguments(KEPT, FOLDER, limit=0, record=False, base_url=None, model=None)
    rows = []
    for detector in detectors:
        evaluation = asyncio.run(judged("gold", detector, asked))
        rows.append(row_of(detector, *leave_out(evaluation, RULES[detector])))
    return format_table(_COLUMNS, rows) + "\n"


def main() -> int:
    """Print the table."""
    build_parser("left_out", __doc__).parse_args()
    print(table(tuple(RULES)), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
