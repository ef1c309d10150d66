"""Detectors on a capable model, and what cheaper ways to ask it lose: `python -m benchmarks.capable_model`.

The tables stand in docs/studies/trust.md (`--docs` puts them there). A strong general-purpose language
model answered the prompts; its answers are replayed from `tests/recordings/strong`, whose README says how
they were made.

The first table has the detectors as published. The second judges the same replies twice, as published and in
a cheaper way, and has the differences of AUROC with a 95% interval, paired by reply, because `gold` has too
few personas.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import build_parser, format_table, get_exit_code, write_between
from benchmarks.detectors_table.measure import rows
from benchmarks.detectors_table.samples import KEPT, SEED, kept_sample
from hallulab.agents.models.recording import Recording
from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.registry import make_detector
from hallulab.scenarios.files.data_files import check_record
from hallulab.scenarios.files.json_text import parse_lines
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.wording import NOTHING, format_number, format_with_interval
from hallulab.simulator.bench.evaluate import Evaluation, compute_costs, evaluate
from hallulab.simulator.bench.levels import Level, collect_items, group_numbers
from hallulab.simulator.bench.rows import LevelRow
from hallulab.simulator.bench.split import choose_replies
from hallulab.simulator.engine.models import open_pool
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.statistics.detection import compute_auroc, leave_out_groups
from hallulab.simulator.statistics.intervals import compute_plain_interval

STRONG = Path("tests") / "recordings" / "strong"
"""Folder of the recordings, relative to the repository."""
MODEL: Mapping[str, str] = {"model": "strong-model", "base_url": "http://127.0.0.1:8901/v1"}
"""The endpoint of the recordings."""
BEGINS, ENDS = "<!-- capable model begins -->\n", "<!-- capable model ends -->\n"


@dataclass(frozen=True)
class Judging:
    """A detector on a data set."""

    title: str
    """What the table calls the data."""
    labelled_by: str
    """Who labelled the replies."""
    dataset: str
    """Name of the data set, with which the recording's name begins."""
    detector: str
    """Kind of the detector."""
    recording: str = ""
    """Second part of the recording's name; empty: the detector's kind."""
    limit: int | None = None
    """Number of the replies, drawn by the seed; None: all."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the detector."""

    @property
    def replay(self) -> Path:
        """The recording."""
        return STRONG / f"{self.dataset}.{self.recording or self.detector}.jsonl.gz"

    @property
    def kept(self) -> Path:
        """The file of its replies."""
        own = kept_sample(STRONG / "labelled", self.dataset)
        return own if own.is_file() else kept_sample(KEPT, self.dataset)


_MODEL, _PEOPLE, _SPANS = "a strong language model, twice", "people", "people, spans"
_GOLD = Judging("`gold`", _MODEL, "gold", "halludetect")
_RAGTRUTH = Judging("RAGTruth", _SPANS, "ragtruth", "halludetect")
_MTRAG = Judging("MTRAG", _PEOPLE, "mtrag", "halludetect", limit=24)
_BEGIN = Judging("BEGIN", _PEOPLE, "begin", "halludetect")
_MTRAG_METARAG = Judging("MTRAG", _PEOPLE, "mtrag", "metarag", limit=24)
PUBLISHED = (
    _GOLD,
    _RAGTRUTH,
    _MTRAG,
    _BEGIN,
    Judging("`gold`", _MODEL, "gold", "metarag", limit=16),
    _MTRAG_METARAG,
    Judging("MTRAG", _PEOPLE, "mtrag", "direct-judge", "metarag", limit=24),
)
CHEAPER: tuple[tuple[Judging, Mapping[str, Any]], ...] = (
    *((judging, {"samples": 1}) for judging in (_GOLD, _MTRAG, _RAGTRUTH, _BEGIN)),
    (_MTRAG, {"samples": 1, "examples": False}),
    (_MTRAG_METARAG, {"together": True}),
)
"""What is judged, and the options that make it cheaper."""

_COLUMNS = (
    "detector",
    "data (replies)",
    "labelled by",
    "replies: AUROC",
    "F1",
    "sentences: AUROC",
    "F1",
    "calls a reply",
    "tokens a reply",
)
_CHEAPER_COLUMNS = (
    "detector",
    "option",
    "data (replies)",
    "tokens a reply",
    "with the option",
    "share",
    "replies: AUROC",
    "with the option",
    "difference [95%]",
    "sentences: difference [95%]",
)


def read_replies(judging: Judging) -> list[LabelledReply]:
    """Return the replies to judge, as `hallulab bench FILE --limit LIMIT --seed 0` draws them."""
    with gzip.open(judging.kept, "rb") as file:
        replies = [
            check_record(line, LabelledReply, f"{judging.kept}, line {number}", "docs/bench.md")
            for number, line in parse_lines(file, judging.kept)
        ]
    return choose_replies(replies, judging.limit, SEED)


async def judge(judging: Judging) -> Evaluation:
    """Replay what a detector says of the replies.

    Raises:
        ReplayMiss: the recording lacks an answer.
    """
    async with open_pool(load_experiment(None, dict(MODEL)), Recording.replay(judging.replay)) as pool:
        await pool.check()
        context = DetectorContext(models=pool, seed=SEED, options=judging.options)
        detector = make_detector(judging.detector, judging.detector, context)
        return await evaluate(detector, read_replies(judging), concurrency=4)


def format_published(judging: Judging, found: Mapping[Level, LevelRow]) -> list[str]:
    """Return the first table's row of a detector."""
    replies, sentences = found["response"], found.get("sentence")
    of_sentences = (sentences.auroc, sentences.f1) if sentences and judging.detector != "direct-judge" else ()
    shown = [replies.auroc, replies.f1, *(of_sentences or (None, None))]
    return [
        f"`{judging.detector}`",
        f"{judging.title} ({replies.n})",
        judging.labelled_by,
        *(NOTHING if number is None else f"{number:.3f}" for number in shown),
        format_number(replies.calls_per_reply, 1),
        f"{replies.tokens_per_reply or 0:,.0f}",
    ]


@dataclass(frozen=True)
class Difference:
    """AUROC in the cheaper way less AUROC as published, on the same replies."""

    before: float
    """AUROC as published."""
    after: float
    """AUROC in the cheaper way."""
    interval: tuple[float, float] | None
    """95% interval of the difference; None where nothing tells it."""

    @property
    def change(self) -> float:
        """The difference."""
        return self.after - self.before


def compare_auroc(first: Evaluation, second: Evaluation, level: Level) -> Difference | None:
    """Compare two evaluations of the same replies; None where AUROC is not defined."""
    groups = group_numbers(first.replies)
    both = [collect_items(evaluation, level, groups) for evaluation in (first, second)]
    shared = both[0].scored & both[1].scored
    samples = [
        dataclasses.replace(items.sample, clusters=items.replies)
        for items in (one.only(shared) for one in both)
    ]
    before, after = map(compute_auroc, samples)
    if before is None or after is None:
        return None
    left_out = [leave_out_groups(sample)["auroc"] for sample in samples]
    change = left_out[1] - left_out[0]
    if not np.nan_to_num(change).any():
        return Difference(before, after, (0.0, 0.0))  # equal verdicts have no spread, for any replies
    return Difference(before, after, compute_plain_interval(after - before, change))


def format_cheaper(
    judging: Judging, options: Mapping[str, Any], first: Evaluation, second: Evaluation
) -> list[str]:
    """Return the second table's row."""
    before, after = (compute_costs(evaluation).tokens_per_reply or 0.0 for evaluation in (first, second))
    replies = compare_auroc(first, second, "response")
    sentences = compare_auroc(first, second, "sentence")
    return [
        f"`{judging.detector}`",
        ", ".join(f"`{name}: {str(value).lower()}`" for name, value in options.items()),
        f"{judging.title} ({len(first.replies)})",
        f"{before:,.0f}",
        f"{after:,.0f}",
        f"{after / before:.2f}",
        *([NOTHING] * 2 if replies is None else [f"{replies.before:.3f}", f"{replies.after:.3f}"]),
        *(
            NOTHING if one is None else format_with_interval(one.change, one.interval, 3)
            for one in (replies, sentences)
        ),
    ]


def page() -> str:
    """Return both tables as Markdown.

    Raises:
        OperationalError: a recording lacks an answer.
    """
    published = []
    for judging in PUBLISHED:
        published.append(format_published(judging, rows(asyncio.run(judge(judging)), judging.dataset)))
    cheaper = []
    for judging, options in CHEAPER:
        first = asyncio.run(judge(judging))
        second = asyncio.run(judge(dataclasses.replace(judging, options=options)))
        cheaper.append(format_cheaper(judging, options, first, second))
    return f"{format_table(_COLUMNS, published)}\n\n{format_table(_CHEAPER_COLUMNS, cheaper)}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay, print and write; return the exit code, as of `hallulab`."""
    parser = build_parser("capable_model", __doc__)
    parser.add_argument("--docs", type=Path, help="put the tables into this page, between its marks")
    given = parser.parse_args(arguments)

    def run() -> None:
        tables = page()
        print(tables, end="")
        if given.docs is not None:
            write_between(given.docs, BEGINS, ENDS, tables)

    return get_exit_code(run)


if __name__ == "__main__":
    sys.exit(main())
