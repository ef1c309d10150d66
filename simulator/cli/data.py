"""Commands that make data to work on: `hallulab import` and `hallulab build`."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hallulab.agents.concurrency import run_until_stopped
from hallulab.simulator.bench.answers import Wrong
from hallulab.simulator.cli.console import print_json, print_lines
from hallulab.simulator.cli.options import AsJson, ModelOptions, RecordingOptions, expand_option_groups
from hallulab.simulator.cli.run import build_settings, collect_flags

if TYPE_CHECKING:
    from hallulab.scenarios.labelled import LabelledData
    from hallulab.scenarios.packs.pack import Scenario
    from hallulab.simulator.runs.importing import EvidenceSource, ImportCounts


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Your chats (docs/own-chats.md).")],
    out: Annotated[Path | None, typer.Option(help="Run folder; by default runs/ and the time.")] = None,
    format: Annotated[
        str | None,
        typer.Option(
            help="openai, sharegpt, otel, openinference, langfuse, mlflow, csv, jsonl, parquet, hf or "
            "ragtruth; by default found out by the content."
        ),
    ] = None,
    documents: Annotated[
        Path | None, typer.Option(help="Folder of documents: evidence of replies that have none in the file.")
    ] = None,
    scenario: Annotated[
        str | None, typer.Option(help="The pack that the chats belong to, whose documents are searched so.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write your own chats as a run folder, for `detect`, `report`, `view` and `export`."""
    from hallulab.scenarios.chats.formats import format_of, list_formats
    from hallulab.scenarios.chats.record import SCENARIO
    from hallulab.scenarios.errors import UsageError
    from hallulab.scenarios.packs.pack_files import load_scenario, locate_pack
    from hallulab.simulator.runs.experiment_json import Imported
    from hallulab.simulator.runs.folder import RunFolder, name_folder_by_time
    from hallulab.simulator.runs.importing import import_chats, load_imported_documents
    from hallulab.simulator.runs.outputs import check_outputs

    if documents is not None and scenario is not None:
        raise UsageError("--documents and --scenario: give one of them.")
    if format is not None and format not in list_formats():
        raise UsageError(f"--format {format}: unknown. Give one of: {', '.join(list_formats())}.")
    run = RunFolder(out or name_folder_by_time())
    check_outputs({}, inputs=[file], folders={"--out": run.path})
    pack = load_scenario(scenario) if scenario is not None else load_imported_documents(documents)
    found = format or format_of(file)
    about = Imported(file=str(file), format=found, documents=None if documents is None else str(documents))
    name = SCENARIO if scenario is None else locate_pack(scenario)
    source = _build_evidence_source(pack)
    counts = run_until_stopped(import_chats(file, found, run, about, name, source))
    if as_json:
        print_json(json.dumps(_convert_to_json(counts, found), indent=2) + "\n")
    else:
        _tell(counts, found, run.path)


def _build_evidence_source(pack: Scenario) -> EvidenceSource | None:
    """Return where evidence is searched; None without documents."""
    from hallulab.agents.retrieval.knowledge import KnowledgeBase
    from hallulab.simulator.experiment.config import Experiment
    from hallulab.simulator.runs.importing import EvidenceSource

    defaults = Experiment()
    if not pack.documents:
        return None
    return EvidenceSource(KnowledgeBase(pack, embedding_model=defaults.embedding_model), defaults.top_k)


def _convert_to_json(counts: ImportCounts, format: str) -> dict[str, object]:
    numbers = {
        key: value for key, value in dataclasses.asdict(counts).items() if key not in ("chatbots", "seeds")
    }
    return {"format": format, **numbers, "without_evidence": counts.without_evidence}


def _tell(counts: ImportCounts, format: str, folder: Path) -> None:
    from hallulab.scenarios.text.wording import format_count

    chats, turns = format_count(counts.conversations, "conversation"), format_count(counts.turns, "turn")
    print_lines(f"{chats} with {turns} imported as {format} to {folder}")
    if counts.without_reply:
        print_lines(
            f"{format_count(counts.without_reply, 'conversation')} left out: nobody replied", err=True
        )
    if counts.searched:
        print_lines(
            f"{format_count(counts.searched, 'turn')} without passages: they were searched for", err=True
        )
    if counts.without_evidence:
        print_lines(
            f"{format_count(counts.without_evidence, 'turn')} without evidence: detectors that need some "
            "abstain. "
            "--documents DIR has it searched",
            err=True,
        )


Out = Annotated[Path, typer.Option(help="JSON-lines file to write.")]


@expand_option_groups
def hotpotqa_derived(
    context: typer.Context,
    data: Annotated[Path, typer.Option(help="Folder that holds HotpotQA's distractor setting.")],
    out: Out,
    models: ModelOptions,
    recording: RecordingOptions,
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many questions.")] = None,
    seed: Annotated[
        int, typer.Option(help="Seed of the choice that --limit makes, of the answers drawn, and sampled.")
    ] = 0,
    wrong: Annotated[
        Wrong,
        typer.Option(help="Wrong answers: made up, or out of a passage that does not answer the question."),
    ] = "invented",
    both: Annotated[
        bool, typer.Option("--both", help="Both answers of each question; by default one at random.")
    ] = False,
) -> None:
    """Write HotpotQA's questions with right answers and with wrong ones of the model.

    What stands after `--` is passed on to the model server.
    """
    from hallulab.simulator.bench.build import BuildSettings, build_command
    from hallulab.simulator.bench.hotpotqa_derived import list_left_out
    from hallulab.simulator.experiment.config import load_experiment

    experiment = load_experiment(models.config, collect_flags(models))
    chosen = BuildSettings(
        data, models.config, out, limit, seed, wrong, both, build_settings(context, recording)
    )
    derived = run_until_stopped(build_command(chosen, experiment))
    _print_written(derived.data, out)
    for line in list_left_out(derived):
        print_lines(line, err=True)


def audit_corpus(out: Out) -> None:
    """Write EvidenceChain's audit corpus, which `hallulab bench audit-corpus` generates, too."""
    from hallulab.scenarios.datasets.audit_corpus import generate
    from hallulab.simulator.bench.build import write_labelled
    from hallulab.simulator.runs.outputs import check_outputs

    check_outputs({"--out": out})
    replies = generate()
    write_labelled(out, replies)
    _print_written(replies, out)


def _print_written(replies: LabelledData, out: Path) -> None:
    from hallulab.scenarios.text.wording import choose_noun

    written = f"{len(replies)} {choose_noun(len(replies), 'reply', 'replies')} written to {out}"
    print_lines(f"{written}, {sum(reply.hallucinated for reply in replies)} hallucinated")
