"""All readings of HalluDetect and MetaRAG on the same ten replies: `python -m benchmarks.readings`.

The table stands in docs/methods.md. The replies are five hallucinated and five clean ones of the annotated
runs in the repository, drawn by a seed. The default model's answers are replayed; `--record --base-url URL`
asks for those that are missing. A second table follows the reading `word` step by step: how many of the
sentences that the labels call hallucinated, and of the others, are left after each.

Ten replies tell a method that works from one that does not. They do not rank methods that work.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.command import format_table, run_recorded
from benchmarks.detectors_table.measure import rows
from benchmarks.detectors_table.samples import KEPT, SEED, sample
from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.recording import Recording
from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.halludetect.detector import HalluDetectOptions
from hallulab.detectors.halludetect.strategies import PAPER_THRESHOLD, WordReading, vote
from hallulab.detectors.registry import make_detector
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.spans import Region, cut_region, split_sentences
from hallulab.scenarios.text.wording import format_number
from hallulab.scenarios.transcript import Judgement
from hallulab.simulator.bench.evaluate import Evaluation, evaluate
from hallulab.simulator.bench.levels import list_located_ends
from hallulab.simulator.bench.split import choose_replies
from hallulab.simulator.engine.models import open_pool
from hallulab.simulator.records.experiment import Experiment

RECORDING = Path("tests") / "recordings" / "readings.jsonl.gz"
"""The packed answers, relative to the repository."""
READINGS = (
    ("halludetect", "mixture"),
    ("halludetect", "probability"),
    ("halludetect", "word"),
    ("metarag", "probability"),
    ("metarag", "word"),
)
EACH = 5
"""Hallucinated replies, and clean ones."""

_COLUMNS = (
    "detector",
    "reading",
    "hallucinated replies flagged",
    "clean replies flagged",
    "failed",
    "AUROC of sentences [95%]",
    "hallucinated sentences flagged",
    "other sentences flagged",
    "calls a reply",
)
_STEP_COLUMNS = ("after", "hallucinated sentences left", "other sentences left")


@dataclass(frozen=True)
class Left:
    """Sentences that are left after a step of the reading `word`."""

    step: str
    wrong: int
    """Those that the labels call hallucinated."""
    other: int


def drawn_replies() -> tuple[LabelledReply, ...]:
    """Return the ten replies."""
    replies = sample("gold", KEPT, 0)
    return tuple(
        reply
        for wrong in (True, False)
        for reply in choose_replies([one for one in replies if one.hallucinated == wrong], EACH, SEED)
    )


async def measured(pool: ModelPool, kind: str, reading: str) -> Evaluation:
    """Judge the ten replies by a reading."""
    context = DetectorContext(models=pool, seed=SEED, options={"reading": reading})
    return await evaluate(make_detector(kind, kind, context), drawn_replies(), concurrency=4)


def row_of(kind: str, reading: str, found: Evaluation) -> list[str]:
    """Return the table's row of a reading."""
    levels = rows(found, "gold")
    replies, sentence = levels["response"], levels["sentence"]
    flagged = [
        sum(bool(judged.flagged) for judged, reply in _pairs(found) if reply.hallucinated == wrong)
        for wrong in (True, False)
    ]
    hits, false = sentences_flagged(found)
    interval = "–" if sentence.auroc_ci95 is None else "[{:.2f}, {:.2f}]".format(*sentence.auroc_ci95)
    ranked = "–" if sentence.auroc is None else f"{sentence.auroc:.3f} {interval}"
    return [
        f"`{kind}`",
        f"`{reading}`",
        f"{flagged[0]} of {EACH}",
        f"{flagged[1]} of {EACH}",
        f"{replies.failed}",
        ranked,
        hits,
        false,
        format_number(replies.calls_per_reply, 1),
    ]


def sentences_flagged(found: Evaluation) -> tuple[str, str]:
    """Return how many hallucinated sentences are flagged, of how many, and how many others."""
    counts = {True: [0, 0], False: [0, 0]}
    for judged, reply in _pairs(found):
        spans = [Region(*ends) for ends in list_located_ends(judged)]
        for region in split_sentences(reply.reply):
            count = counts[is_wrong(region, reply)]
            count[0] += any(cut_region(region, span) for span in spans)
            count[1] += 1
    hits, false = (f"{flagged} of {n}" for flagged, n in (counts[True], counts[False]))
    return hits, false


def is_wrong(region: Region, reply: LabelledReply) -> bool:
    """Return whether the labels call a sentence hallucinated."""
    return any(cut_region(region, Region(span.start, span.end)) for span in reply.spans or ())


async def steps_of_word(pool: ModelPool) -> list[Left]:
    """Count the sentences that are left after each step of the reading `word`; failed replies have none."""
    options = HalluDetectOptions()
    reading = WordReading(
        options.samples, options.temperature, options.retrieval_factor, options.max_evidence_characters
    )
    left: dict[str, list[int]] = {}
    for reply in drawn_replies():
        session = pool.session("halludetect", SEED)
        grounds = await reading.ground(session, reply.view)
        regions = split_sentences(reply.reply)
        try:
            analyses = await reading.analyse(session, grounds, reply.view)
            rated = await reading.rate(session, grounds, reply.view)
        except ModelError:
            analyses, rated = [], []
        kept: dict[str, set[Region | None]] = {
            "the reply, before any step": set(regions),
            "analysis: in at least one of three lists": {
                rated.region for analysis in analyses for rated in vote([analysis], reply.reply)
            },
            "self-consistency: in most lists": {one.region for one in rated},
            "refiner: severity 4 or 5": {one.region for one in rated if one.severity >= PAPER_THRESHOLD},
        }
        for step, found in kept.items():
            counts = left.setdefault(step, [0, 0])
            for region in regions:
                counts[not is_wrong(region, reply)] += region in found
    return [Left(step, *counts) for step, counts in left.items()]


def _pairs(found: Evaluation) -> list[tuple[Judgement, LabelledReply]]:
    return list(zip(found.judgements, found.replies, strict=True))


async def table(recording: Recording, experiment: Experiment) -> str:
    """Return both tables, as Markdown.

    Raises:
        OperationalError: the recording lacks an answer, or the model gives none.
    """
    async with open_pool(experiment, recording) as pool:
        await pool.check()
        found = [row_of(kind, reading, await measured(pool, kind, reading)) for kind, reading in READINGS]
        left = [(one.step, f"{one.wrong}", f"{one.other}") for one in await steps_of_word(pool)]
    return f"{format_table(_COLUMNS, found)}\n\n{format_table(_STEP_COLUMNS, left)}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    return run_recorded("readings", __doc__, RECORDING, table, arguments)


if __name__ == "__main__":
    sys.exit(main())
