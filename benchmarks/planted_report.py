"""Measure detectors on errors planted into a run: `python -m benchmarks.planted_report`.

The output stands in docs/studies/stress.md. Two personas of the headline run are replayed, errors are planted
into their conversations as by `hallulab make-data planted RUN --count 460`, and each detector judges errors
and twins. Then the rates of these conversations, and of the annotated runs of the data set gold, are
corrected by what the detectors found. All answers of the model are replayed from tests/recordings. A detector
whose recording is missing or unfinished is not measured, and the output says so; `--record --base-url URL`
asks for missing answers, and may be stopped at any time.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.command import build_parser, format_row, get_exit_code, open_recording
from benchmarks.detectors_table.samples import FOLDER as TABLE
from benchmarks.detectors_table.samples import KEPT, sample
from hallulab import plant, run
from hallulab.agents.models.recording import Recording
from hallulab.scenarios.errors import ReplayMiss, UsageError
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.wording import NOTHING, format_number, format_with_interval
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.bench.chats import LABELS, collect_annotated
from hallulab.simulator.bench.evaluate import Evaluation, evaluate
from hallulab.simulator.bench.planted import ALL, PlantedRow, build_planted_rows, count_planted
from hallulab.simulator.engine.models import RunSettings, open_pool, serve_models
from hallulab.simulator.engine.participants import is_model_needed, make_detectors
from hallulab.simulator.metrics.annotations import Annotations
from hallulab.simulator.metrics.corrected import ALL as ALL_CHATBOTS
from hallulab.simulator.metrics.corrected import CorrectedRow, correct
from hallulab.simulator.metrics.corrections import Correction
from hallulab.simulator.metrics.judged_turns import collect_judged_turns, sum_judged_turns
from hallulab.simulator.metrics.known_errors import Accuracy, derive_from_planted_errors, require_measured
from hallulab.simulator.planting.kinds import KINDS
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder

MODEL = "qwen2.5-coder-1.5b"
EXPERIMENT = Path("examples") / "headline.yaml"
PERSONAS = ("agartala-which-commission", "upi-failed-transfer")
"""None of their replies is clean, so that all errors stand in sentences of passages."""
ANSWERS = Path("tests") / "recordings" / "headline.jsonl.gz"
RECORDINGS = Path("tests") / "recordings" / "planted"
GOLD_DETECTOR = "halludetect"
"""The detector by which the annotated runs are corrected."""
GOLD_ANSWERS = TABLE / f"gold.{GOLD_DETECTOR}.jsonl.gz"
SEED = 0
COUNT = 460
"""Errors asked for; some kinds find no place in so few texts."""
DETECTORS = ("evidence-chain-rf", "halludetect", "metarag")
WHOLE = ("other-rule", "case-fact", "step")
"""Kinds that put a whole wrong sentence into the reply."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = build_parser("planted_report", __doc__)
    parser.add_argument("--record", action="store_true", help="ask the model what is not recorded yet")
    parser.add_argument("--recordings", type=Path, default=RECORDINGS, help="folder of the recordings")
    parser.add_argument("--base-url", help="where the model is served, to record")
    given = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        return get_exit_code(lambda: report(Path(folder), given))


def report(folder: Path, given: argparse.Namespace) -> None:
    """Plant, judge, correct and print.

    Args:
        folder: for the run and the errors.
        given: the command's arguments.
    """
    chats = RunFolder(folder / "run")
    run(EXPERIMENT, out=chats.path, replay=ANSWERS, model=MODEL, personas=PERSONAS, quiet=True)
    replies = plant(
        str(chats.path), out=folder / "planted", count=COUNT, turns=(0,), contexts=(1,), seed=SEED
    ).replies
    evaluations, missing = [], []
    for name in DETECTORS:
        try:
            recording = open_recording(given.recordings / f"{name}.jsonl", grows=given.record)
            evaluations.append(asyncio.run(judged(name, replies, recording, given.base_url)))
        except ReplayMiss:
            missing.append(f"`{name}`")
    rows = {
        (row.detector, row.kind, row.turn): row
        for one in evaluations
        for row in build_planted_rows([one]) or ()
    }
    counted = _counted(chats, _accuracies(evaluations))
    parts = [_found(rows), _by_depth(rows), counted, *_gold(evaluations)]
    if missing:
        parts.append(
            f"Not measured, as the recording of the model's answers is not finished: {', '.join(missing)}."
        )
    print("\n\n".join(parts))


async def judged(
    name: str, replies: Sequence[LabelledReply], recording: Recording, base_url: str | None = None
) -> Evaluation:
    """Let a detector judge replies.

    Args:
        name: the detector's.
        replies: to judge.
        recording: has the model's answers, or grows.
        base_url: where the model is served, to record.

    Raises:
        ReplayMiss: the recording lacks an answer.
    """
    flags = {"detectors": [name], "model": MODEL, "base_url": base_url, "seed": SEED}
    experiment = load_experiment(None, flags)
    async with (
        open_pool(experiment, recording) as pool,
        serve_models(pool, RunSettings(quiet=True), is_model_needed(make_detectors(experiment, pool, {}))),
    ):
        [detector] = make_detectors(experiment, pool, {})
        return await evaluate(detector, replies, experiment.measured_at_once)


Rows = Mapping[tuple[str, str, str], PlantedRow]
"""The rows of planted errors by detector, kind and turn; every reply has four passages."""


def _found(rows: Rows) -> str:
    """Return the table of recall and pairs told apart, by kind."""
    names = list(dict.fromkeys(name for name, _, _ in rows))
    every = [rows[name, ALL, ALL] for name in names]
    lines = [
        [_titled(kind), *(_recall(rows[name, kind, ALL]) for name in names)]
        for kind in (ALL, *KINDS)
        if (names[0], kind, ALL) in rows
    ]
    alarms = [
        "clean twins flagged",
        *(format_with_interval(one.false_alarms, one.false_alarms_ci95, 3) for one in every),
    ]
    head = ["kind", *(f"`{name}`" for name in names)]
    return "Recall; share of the pairs told apart; number of pairs:\n\n" + _table([head, *lines, alarms])


def _titled(kind: str) -> str:
    return "all errors" if kind == ALL else f"`{kind}`"


def _recall(row: PlantedRow) -> str:
    recall = format_with_interval(row.recall, row.recall_ci95, 2)
    return f"{recall}; {format_number(row.told_apart, 2)}; {row.pairs}"


def _by_depth(rows: Rows) -> str:
    """Return the table of recall by kind and by turns before the reply."""

    def format_found(row: PlantedRow | None) -> str:
        return NOTHING if row is None else f"{format_number(row.recall, 2)}; {row.pairs}"

    turns = sorted({turn for _, _, turn in rows if turn != ALL})
    cells = [(name, turn) for name in dict.fromkeys(name for name, _, _ in rows) for turn in turns]
    lines = [
        [_titled(kind), *(format_found(rows.get((name, kind, turn))) for name, turn in cells)]
        for kind in (ALL, *KINDS)
        if any((name, kind, turn) in rows for name, turn in cells)
    ]
    head = ["kind", *(f"`{name}`, {turn} before" for name, turn in cells)]
    return "Recall by turns before the reply; number of pairs:\n\n" + _table([head, *lines])


def _counted(chats: RunFolder, accuracies: Mapping[str, Accuracy]) -> str:
    """Return the table of the run's numbers, as counted and corrected."""
    journals = chats.read_journals()
    verdicts = [one for one in journals.verdicts if one.detector in accuracies]
    require_measured(accuracies, ((one.detector, one.version) for one in verdicts))
    head = ["detector", "chatbot", "turns flagged", "corrected", "HPT-1", "corrected"]
    lines = [
        [f"`{row.detector}`", row.chatbot or ALL_CHATBOTS, *_corrected(row)]
        for row in _rows(journals.conversations, verdicts, accuracies)
    ]
    return "The run:\n\n" + _table([head, *lines])


def _corrected(row: Correction) -> list[str]:
    return [
        format_number(row.flagged_turns, 2),
        format_with_interval(row.hallucinated_turns, row.hallucinated_turns_ci95, 2)
        + (f" (was {row.clipped})" if row.clipped else ""),
        format_number(row.hpt_1, 2),
        format_with_interval(row.corrected_hpt_1, row.corrected_hpt_1_ci95, 2),
    ]


def _gold(evaluations: Sequence[Evaluation]) -> list[str]:
    """Return tables of the annotated runs: by labels, as counted, and corrected by all and by some kinds."""
    planted = next(one for one in evaluations if one.detector == GOLD_DETECTOR)
    annotated = asyncio.run(judged(GOLD_DETECTOR, sample("gold", KEPT, 200), Recording.replay(GOLD_ANSWERS)))
    if annotated.version != planted.version:
        raise UsageError(f"{GOLD_ANSWERS}: {GOLD_DETECTOR} has another version here than on planted errors.")
    conversations, verdicts = collect_annotated([annotated])
    by_all, by_whole = (
        {
            row.chatbot: row
            for row in _rows(conversations, verdicts, _accuracies([_of_kinds(planted, kinds)]))
            if row.detector == GOLD_DETECTOR
        }
        for kinds in (tuple(KINDS), WHOLE)
    )
    labels = {row.chatbot: row for row in _rows(conversations, verdicts, {}) if row.detector == LABELS}
    head = ["chatbot", "labels", "as counted", "corrected", f"corrected by {', '.join(WHOLE)} alone"]
    shares, counts = [], []
    for name, row in by_all.items():
        flagged, share, counted, hpt = _corrected(row)
        _, other_share, _, other_hpt = _corrected(by_whole[name])
        title = name or ALL_CHATBOTS
        shares.append([title, format_number(labels[name].flagged_turns, 2), flagged, share, other_share])
        counts.append([title, format_number(labels[name].hpt_1, 2), counted, hpt, other_hpt])
    return [
        f"The annotated runs, share of hallucinated turns, by `{GOLD_DETECTOR}`:\n\n"
        + _table([head, *shares]),
        f"The annotated runs, HPT-1, by `{GOLD_DETECTOR}`:\n\n" + _table([head, *counts]),
    ]


def _accuracies(evaluations: Sequence[Evaluation]) -> dict[str, Accuracy]:
    return {one.detector: one for each in evaluations for one in count_planted([each]) or ()}


def _rows(
    conversations: Sequence[Conversation], verdicts: Sequence[Verdict], accuracies: Mapping[str, Accuracy]
) -> list[CorrectedRow]:
    """Correct the numbers over all turns."""
    known = {name: derive_from_planted_errors(one) for name, one in accuracies.items()}
    chatbots = sorted({one.chatbot for one in conversations})
    detectors = list(dict.fromkeys(one.detector for one in verdicts))
    turns = collect_judged_turns(conversations, verdicts, Annotations())
    sums = {name: sum_judged_turns(own) for name, own in turns.items()}
    rows = correct(sums, chatbots, detectors, known)
    return [row for row in rows if row.depth is None]


def _of_kinds(evaluation: Evaluation, kinds: Sequence[str]) -> Evaluation:
    """Return the evaluation on errors of some kinds and their twins."""
    kept = [
        (reply, judgement)
        for reply, judgement in zip(evaluation.replies, evaluation.judgements, strict=True)
        if reply.meta["kind"] in kinds
    ]
    return replace(
        evaluation,
        replies=tuple(reply for reply, _ in kept),
        judgements=tuple(judgement for _, judgement in kept),
    )


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *lines = rows
    return "\n".join(map(format_row, (head, ["---"] * len(head), *lines)))


if __name__ == "__main__":
    sys.exit(main())
