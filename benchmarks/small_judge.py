"""Can the small judge learn consequence? `python -m benchmarks.small_judge runs/headline`.

The folder is what `make replay-headline` has made; the table stands in docs/studies/methods.md (`--docs`
puts it there). The default `halludetect` has no grade of consequence, and agrees with HalluDetect as
published on a strong model as by chance (docs/studies/chatbots.md). Here its mixture gets two more
measurements of a sentence: whether it gives a detail on which a user acts (a contact, a date, an amount),
and the model's answer again if it does. All answers are replayed.

Every number is of replies that the weights were not learnt from. The headline's labels are a strong model's,
not people's. The measurements were chosen with all of these data in view, the headline's included.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
from sklearn.metrics import cohen_kappa_score, roc_auc_score

from benchmarks.command import build_parser, format_table, get_exit_code, write_between
from benchmarks.detectors_table.measure import TableArguments, judged
from benchmarks.detectors_table.samples import FOLDER, KEPT, SOURCES
from benchmarks.second_judge import SECOND, judge_again
from benchmarks.train_mixture import (
    LIMIT,
    REPLY,
    SENTENCE,
    MeasuredReply,
    Numbers,
    claiming,
    learn,
    measured,
    reply_inputs,
)
from hallulab.scenarios.labelled import GoldSpan, LabelledReply
from hallulab.scenarios.text.items import find_items
from hallulab.scenarios.text.wording import format_with_interval
from hallulab.scenarios.transcript import Judgement, Verdict
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.statistics.intervals import compute_plain_interval

BEGINS, ENDS = "<!-- small judge begins -->\n", "<!-- small judge ends -->\n"
HEADLINE = "headline"
DETAILS = frozenset({"contact", "date", "quantity"})
"""Kinds of items with which the paper's severity is 5 (B.6.3)."""
WITH_DETAILS = (*SENTENCE, "detail", "unsupported detail")

Data = Mapping[str, Sequence[MeasuredReply]]
Level = Literal["sentences", "replies"]
LEVELS: tuple[Level, ...] = ("sentences", "replies")
_MODEL, _PEOPLE = "a strong language model", "people"
ROWS = (
    (HEADLINE, "headline, never learnt from", _MODEL, False),
    (HEADLINE, "headline, its other personas learnt from", _MODEL, True),
    ("gold", "`gold`", f"{_MODEL}, twice", False),
    ("mtrag", "MTRAG", _PEOPLE, False),
    ("ragtruth", "RAGTruth", _PEOPLE, False),
    ("wice", "WiCE claims", _PEOPLE, False),
    ("begin", "BEGIN", _PEOPLE, False),
)
"""Data set, title, who labelled it, and whether it is learnt from by persona."""
_COLUMNS = (
    "data",
    "labelled by",
    "of",
    "AUROC without details",
    "with details",
    "difference [95%]",
    "kappa without details",
    "with details",
)


@dataclass(frozen=True)
class Judged:
    """Log-odds of replies by weights that were not learnt from them."""

    replies: Sequence[MeasuredReply]
    reply_odds: Numbers
    """(replies,)"""
    sentence_odds: Sequence[Numbers]
    """(sentences,) of each reply."""


def measure_details(judgement: Judgement, found: MeasuredReply) -> MeasuredReply:
    """Return the reply with the measurements `WITH_DETAILS`."""
    texts = [unit.text for unit in judgement.units if "unsupported" in unit.details]
    detail = np.array([any(item.kind in DETAILS for item in find_items(text)) for text in texts], dtype=float)
    wide = np.column_stack([found.sentences, detail, found.sentences[:, 0] * detail])
    return dataclasses.replace(found, sentences=wide)


def read_data_sets() -> dict[str, list[MeasuredReply]]:
    """Return the replies of the five data sets that the default's answers are recorded of."""
    asked = TableArguments(KEPT, FOLDER, limit=LIMIT, record=False, base_url=None, model=None)
    found = {name: asyncio.run(judged(name, "halludetect", asked)) for name in SOURCES}
    return {
        name: _measure(zip(evaluation.replies, evaluation.judgements, strict=True))
        for name, evaluation in found.items()
    }


def read_headline(run: Path) -> list[MeasuredReply]:
    """Return the replies of the headline run, labelled by what the second judge flags.

    Raises:
        UsageError: it is no run folder.
        OperationalError: the recording lacks an answer.
    """
    with TemporaryDirectory() as folder:
        judge_again(run, Path(folder) / "run")
        copy = RunFolder(Path(folder) / "run")
        journals = copy.read_all_journals()
        conversations = {one.id: one for one in journals.conversations}
        verdicts: dict[tuple[str, int], dict[str, Verdict]] = {}
        for verdict in journals.verdicts:
            verdicts.setdefault((verdict.conversation, verdict.turn), {})[verdict.detector] = verdict
    pairs = []
    for (conversation, number), by_detector in verdicts.items():
        turn, second = conversations[conversation].turns[number], by_detector[SECOND]
        spans = tuple(
            GoldSpan(start=span.start, end=span.end)
            for span in second.spans or ()
            if span.start is not None and span.end is not None
        )
        reply = LabelledReply(
            id=f"{conversation}/{number}",
            dataset=HEADLINE,
            task="dialogue",
            question=turn.user,
            passages=turn.passages,
            reply=turn.reply,
            label=bool(second.flagged),
            spans=spans if spans or not second.flagged else None,
            group=conversations[conversation].persona,
        )
        pairs.append((reply, by_detector["halludetect"]))
    return _measure(pairs)


def _measure(pairs: Iterable[tuple[LabelledReply, Judgement]]) -> list[MeasuredReply]:
    """Return the scored replies that claim something."""
    found = [
        measure_details(judgement, measured(reply, judgement))
        for reply, judgement in pairs
        if judgement.outcome == "scored"
    ]
    return claiming(found)


def judge_left_out(data: Data, name: str, names: Sequence[str], *, same_run: bool = False) -> Judged:
    """Judge the replies of a data set by weights learnt from all others but the headline.

    Args:
        names: the sentences' measurements.
        same_run: whether the weights are also learnt from the headline's other personas; `name` is then the
            headline.
    """
    others = {other: data[other] for other in data if other not in (name, HEADLINE)}
    personas = sorted({one.reply.group for one in data[name]}) if same_run else [None]
    judged_parts = []
    for persona in personas:
        rest = [one for one in data[name] if persona is not None and one.reply.group != persona]
        part = [one for one in data[name] if persona in (None, one.reply.group)]
        judged_parts.append(_judge(part, {**others, name: rest} if rest else others, names))
    return Judged(
        [one for part in judged_parts for one in part.replies],
        np.concatenate([part.reply_odds for part in judged_parts]),
        [odds for part in judged_parts for odds in part.sentence_odds],
    )


def _judge(replies: Sequence[MeasuredReply], learnt_from: Data, names: Sequence[str]) -> Judged:
    mixture = learn({name: _cut(found, names) for name, found in learnt_from.items()}, names)
    asked = _cut(replies, names)
    slopes = np.array([mixture.sentence.weights[name] for name in names])
    of_replies = np.array([mixture.reply.weights[name] for name in REPLY])
    return Judged(
        replies,
        reply_inputs(asked, mixture.sentence) @ of_replies + mixture.reply.intercept,
        [one.sentences @ slopes + mixture.sentence.intercept for one in asked],
    )


def _cut(replies: Sequence[MeasuredReply], names: Sequence[str]) -> list[MeasuredReply]:
    return [dataclasses.replace(one, sentences=one.sentences[:, : len(names)]) for one in replies]


@dataclass(frozen=True)
class Rated:
    """Labels, log-odds and groups of the replies or the sentences of a data set, each of shape (items,)."""

    labels: Numbers
    odds: Numbers
    groups: Sequence[str]

    def compute_auroc(self, kept: Sequence[bool] | slice = slice(None)) -> float:
        """Return the AUROC of the kept items; 0.5 where they have one label."""
        labels = self.labels[kept]
        return float(roc_auc_score(labels, self.odds[kept])) if len(set(labels.tolist())) > 1 else 0.5


def rate(found: Judged, level: Level) -> Rated:
    """Return the replies, or the sentences whose label is known."""
    if level == "replies":
        labels = np.array([float(one.reply.hallucinated) for one in found.replies])
        return Rated(labels, found.reply_odds, [one.reply.group for one in found.replies])
    known = [
        (float(label), odds, one.reply.group)
        for one, of_reply in zip(found.replies, found.sentence_odds, strict=True)
        for label, odds in zip(one.labels, of_reply.tolist(), strict=True)
        if label is not None
    ]
    return Rated(
        np.array([label for label, _, _ in known]),
        np.array([odds for _, odds, _ in known]),
        [group for _, _, group in known],
    )


def compare(first: Rated, second: Rated) -> str:
    """Return the difference of AUROC with its interval, by the jackknife over groups."""
    groups = np.array(first.groups)
    kept = [groups != group for group in sorted(set(first.groups))]
    left_out = np.array([second.compute_auroc(one) - first.compute_auroc(one) for one in kept])
    change = second.compute_auroc() - first.compute_auroc()
    return format_with_interval(change, compute_plain_interval(change, left_out), 3)


def build_row(title: str, labelled_by: str, level: Level, first: Judged, second: Judged) -> list[str]:
    """Return a row of the table."""
    rated = [rate(one, level) for one in (first, second)]
    kappas = [cohen_kappa_score(one.labels, one.odds >= 0) for one in rated]
    return [
        title,
        labelled_by,
        f"{len(rated[0].labels)} {level}",
        *(f"{one.compute_auroc():.3f}" for one in rated),
        compare(*rated),
        *(f"{kappa:.2f}" for kappa in kappas),
    ]


def build_table(data: Data) -> str:
    """Return the table, as Markdown."""
    rows = []
    for name, title, labelled_by, same_run in ROWS:
        first, second = (
            judge_left_out(data, name, names, same_run=same_run) for names in (SENTENCE, WITH_DETAILS)
        )
        for level in LEVELS:
            if level == "replies" or name != "mtrag":
                rows.append(build_row(title, labelled_by, level, first, second))
    return format_table(_COLUMNS, rows) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print or write; return the exit code."""
    parser = build_parser("small_judge", __doc__)
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of the replayed headline run")
    parser.add_argument("--docs", type=Path, help="put the table into this page, between its marks")
    given = parser.parse_args(arguments)

    def run() -> None:
        table = build_table({**read_data_sets(), HEADLINE: read_headline(given.run)})
        if given.docs is None:
            print(table, end="")
        else:
            write_between(given.docs, BEGINS, ENDS, table)

    return get_exit_code(run)


if __name__ == "__main__":
    sys.exit(main())
