"""Commands for data of other tools and of people: import, export, annotate, make-data."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hallulab.agents.concurrency import run_until_stopped
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.cli.console import print_json, print_lines
from hallulab.simulator.cli.options import AsJson, RunArgument, add_command, expand_options
from hallulab.simulator.options.data import (
    DerivedOptions,
    DialogueOptions,
    ExportOptions,
    ImportOptions,
    PlantOptions,
)
from hallulab.simulator.records.run_files import require_run

if TYPE_CHECKING:
    from hallulab.scenarios.chats.reading import Reading
    from hallulab.scenarios.labelled import LabelledData
    from hallulab.simulator.annotate.sheet import DrawnSheet
    from hallulab.simulator.records.importing import ImportCounts
    from hallulab.simulator.report.export import ExportCounts
    from hallulab.simulator.report.selection import SelectionCounts


@expand_options
def import_(options: ImportOptions, as_json: AsJson = False) -> None:
    """Write your own chats as a run folder, for `detect`, `report`, `view` and `export`."""
    from hallulab.simulator.records.importing import import_from_options

    folder, format, counts, reading = run_until_stopped(import_from_options(options, quiet=False))
    if as_json:
        print_json(json.dumps(_convert_to_json(counts, format, reading), indent=2) + "\n")
    else:
        tell_import(counts, format, reading, folder.path)


def _convert_to_json(counts: ImportCounts, format: str, reading: Reading) -> dict[str, object]:
    numbers = {
        key: value
        for key, value in dataclasses.asdict(counts).items()
        if key not in ("chatbots", "detectors", "seeds")
    }
    return {
        "format": format,
        **numbers,
        "without_evidence": counts.without_evidence,
        "taken": {field: list(names) for field, names in reading.taken.items()},
        "unread": list(reading.unread),
        "notes": reading.notes,
        "skipped": reading.skipped,
    }


def tell_import(counts: ImportCounts, format: str, reading: Reading, folder: Path, err: bool = False) -> None:
    """Print what was imported and how names were read; with `err` all of it on standard error."""
    from hallulab.scenarios.text.wording import format_count

    chats, turns = format_count(counts.conversations, "conversation"), format_count(counts.turns, "turn")
    print_lines(f"{chats} with {turns} imported as {format} to {folder}", err=err)
    if described := reading.describe():
        print_lines(described, err=err)
    for note in reading.notes:
        print_lines(note, err=True)
    if reading.skipped:
        print_lines(f"{format_count(len(reading.skipped), 'wrong record')} left out:", err=True)
        for skipped in reading.skipped:
            print_lines(f"  {skipped}", err=True)
    if counts.without_reply:
        print_lines(
            f"{format_count(counts.without_reply, 'conversation')} left out: nobody replied", err=True
        )
    if counts.searched:
        way = {"words": "words (BM25)"}.get(str(counts.searched_by), counts.searched_by)
        print_lines(
            f"{format_count(counts.searched, 'turn')} without passages: searched in the documents by {way}",
            err=True,
        )
    if counts.without_evidence:
        print_lines(
            f"{format_count(counts.without_evidence, 'turn')} without evidence: detectors that need some "
            "abstain. --documents DIR has it searched",
            err=True,
        )


@expand_options
def export(options: ExportOptions, as_json: AsJson = False) -> None:
    """Write the conversations of a run in a format of other tools, or its replies for `bench`.

    For `bench` a detector annotates them. Without `--detector` they have no label, for annotators to add;
    `bench` leaves such lines out.
    """
    from hallulab.scenarios.text.wording import format_count
    from hallulab.simulator.report.export import ExportCounts, export_from_options

    exported = export_from_options(options)
    if isinstance(exported, dict):
        rows = {str(path): number for path, number in exported.items()}
        if as_json:
            print_json(json.dumps(rows, indent=2) + "\n")
        for path, number in {} if as_json else rows.items():
            print_lines(f"{path}: {format_count(number, 'row')}")
        return
    if as_json:
        print_json(json.dumps(dataclasses.asdict(exported), indent=2) + "\n")
    if isinstance(exported, ExportCounts):
        _tell_replies(exported, options.detector, Path(str(options.out)), as_json)
    elif not as_json:
        _tell_conversations(exported, Path(str(options.out)))


def _tell_conversations(exported: SelectionCounts, out: Path) -> None:
    from hallulab.scenarios.text.wording import choose_noun, format_count

    print_lines(f"{format_count(exported.written, 'conversation')} written to {out}")
    for count, why in (
        (exported.too_short, "too few turns"),
        (exported.not_clean, "flagged, or not scored in every turn"),
        (exported.flawed, "the simulated user has a flaw"),
        (exported.near_duplicates, "nearly the same as an earlier one (--keep-duplicates keeps them)"),
    ):
        if count:
            print_lines(f"{count} left out: {why}")
    if exported.not_judged:
        replies = f"{exported.not_judged} {choose_noun(exported.not_judged, 'reply', 'replies')}"
        print_lines(f"{replies} without spans: not every detector scored them and said where")


def _tell_replies(exported: ExportCounts, detector: str | None, out: Path, as_json: bool) -> None:
    from hallulab.scenarios.text.wording import choose_noun

    if not as_json:
        print_lines(
            f"{exported.written} {choose_noun(exported.written, 'reply', 'replies')} written to {out}"
        )
        if exported.without_evidence:
            print_lines(f"{exported.without_evidence} left out: no evidence, or an empty reply")
        if exported.not_scored:
            print_lines(
                f"{exported.not_scored} left out: {detector} failed, abstained, or did not judge them"
            )
    if detector is None:
        print_lines(
            "no line has a label: fill in `label` or `spans` before `hallulab bench` reads them, or give "
            "--detector",
            err=True,
        )


def annotate(
    folder: RunArgument,
    number: Annotated[
        int | None,
        typer.Option("--next", min=1, help="Draw so many turns, and write a sheet of them to be filled in."),
    ] = None,
    add: Annotated[
        Path | None,
        typer.Option(help="Add what is filled in of a sheet at the end of the run's annotations.jsonl."),
    ] = None,
    detector: Annotated[
        str | None,
        typer.Option(help="Draw by the scores of this detector; by default, the first one of the run."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw.")] = 0,
    annotator: Annotated[
        str, typer.Option(help="Who labels: `person`, `person:` and a name, or `model:` and its name.")
    ] = "person",
    guideline: Annotated[
        Path | None, typer.Option(help="File with the text that says what to label; the run folder keeps it.")
    ] = None,
) -> None:
    """Draw the turns of a run whose labels narrow its corrected numbers most, or add labels of a sheet."""
    require_run(folder)
    from hallulab.simulator.annotate.sheet import DrawOptions, add_sheet, draw_turns
    from hallulab.simulator.metrics.failures import find_failures
    from hallulab.simulator.records.folder import RunFolder

    run = RunFolder(folder)
    if (number is None) == (add is None):
        raise UsageError("annotate: give either --next NUMBER or --add FILE.")
    if number is not None:
        for warning in find_failures(run).warnings:
            print_lines(f"warning: {warning}", err=True)
        _tell_draw(draw_turns(run, DrawOptions(number, detector, seed, annotator, guideline)), folder)
        return
    assert add is not None
    done = add_sheet(run, add)
    print_lines(
        f"{done.added} added to {run.annotations}, {done.known} there already, {done.empty} not filled in"
    )


def _tell_draw(made: DrawnSheet, folder: Path) -> None:
    from hallulab.scenarios.text.wording import format_count
    from hallulab.simulator.annotate.sheet import name_command

    for name, (turns, annotated, drawn) in made.turns.items():
        print_lines(f"{name}: {drawn} drawn; {annotated} of {format_count(turns, 'turn')} annotated before")
    plan = made.plan
    if plan.width is not None:
        beside = "" if plan.random_width is None else f", and {plan.random_width:.2f} drawn evenly at random"
        guess = (
            "" if any(annotated for _, annotated, _ in made.turns.values()) else " (a guess before any label)"
        )
        print_lines(
            f"expected width of the 95% interval of this run's HPT-1 by {made.detector}, all chatbots: "
            f"{plan.width:.2f} with these labels{beside}{guess}"
        )
    print_lines(f"sheet: {made.path}\nfill in `spans`, then: {name_command(folder, made.path)}")


@expand_options
def make_planted(options: PlantOptions) -> None:
    """Plant errors of known kinds into clean replies, for `hallulab bench` to measure detectors on.

    The file holds every error and its clean twin, with the exact place and the kind. Arguments after
    `--` are passed on to the model server.
    """
    from hallulab.scenarios.text.wording import format_count
    from hallulab.simulator.bench.planted import FILE
    from hallulab.simulator.planting.command import plant_from_options

    done = run_until_stopped(plant_from_options(options))
    file = Path(options.out) / FILE
    print_lines(f"{format_count(len(done.replies) // 2, 'error')} with clean twins written to {file}")
    for kind, lacking in done.lacking.items():
        print_lines(f"{kind}: {lacking} fewer, as no place for them was found", err=True)
    for (kind, reason), dropped in sorted(done.dropped.items()):
        print_lines(f"{kind}: {dropped} fewer, as the model wrote no error twice: {reason}", err=True)


@expand_options
def make_dialogues(options: DialogueOptions) -> None:
    """Make a data set of simulated dialogues by quotas, split for training and testing, with a data card.

    The exit code is 1 if a quota is missed by more than 1% of the dialogues. Arguments after `--` are passed
    on to the model server.
    """
    from hallulab.scenarios.text.wording import format_count
    from hallulab.simulator.planting.data_card import write_dialogues
    from hallulab.simulator.planting.dialogues import make_dialogues

    made = run_until_stopped(make_dialogues(options))
    for path in write_dialogues(made, options):
        print_lines(str(path))
    errors = sum(made.planted.values())
    print_lines(
        f"{format_count(len(made.dialogues), 'dialogue')}, {errors} with a planted error and its twin"
    )
    for reason, number in sorted(made.rejected.items()):
        print_lines(f"{number} replaced: {reason}", err=True)
    missed = made.list_missed()
    for one in missed:
        print_lines(f"{one.of} {one.name}: {one.wanted} wanted, {one.met} there", err=True)
    if missed:
        raise typer.Exit(1)


@expand_options
def make_hotpotqa_derived(options: DerivedOptions) -> None:
    """Write HotpotQA's questions with right answers and with wrong ones of the model.

    Arguments after `--` are passed on to the model server.
    """
    from hallulab.simulator.bench.build import build_from_options
    from hallulab.simulator.bench.hotpotqa_derived import list_left_out

    derived = run_until_stopped(build_from_options(options))
    _print_written(derived.data, Path(options.out))
    for line in list_left_out(derived):
        print_lines(line, err=True)


def make_audit_corpus(out: Annotated[Path, typer.Option(help="JSON-lines file to write.")]) -> None:
    """Write EvidenceChain's audit corpus, which `hallulab bench audit-corpus` generates, too."""
    from hallulab.scenarios.datasets.audit_corpus import generate
    from hallulab.simulator.bench.build import write_labelled
    from hallulab.simulator.records.outputs import check_outputs

    check_outputs({"--out": out})
    replies = generate()
    write_labelled(out, replies)
    _print_written(replies, out)


def make_tau_knowledge(
    folder: Annotated[Path, typer.Argument(help="Checkout of tau2-bench.")],
    out: Annotated[Path, typer.Option(help="New folder for the scenario pack.")],
    documents: Annotated[
        int | None,
        typer.Option(
            min=1, help="Documents: those that the customers require, and the nearest others; default: all."
        ),
    ] = None,
    users: Annotated[
        int | None,
        typer.Option(
            min=1, help="Customers at most, those who require the fewest documents first; default: all."
        ),
    ] = None,
    commit: Annotated[str | None, typer.Option(help="Commit of the checkout, for the pack's notice.")] = None,
) -> None:
    """Make a scenario pack of tau2-bench's banking_knowledge: a bank's documents, its customers as personas.

    Personas are made by rules, without a model. Customers whom the rules cannot read are left out.
    """
    from hallulab.scenarios.text.wording import format_count
    from hallulab.simulator.authoring.tau_knowledge.pack import write_tau_knowledge

    made = run_until_stopped(write_tau_knowledge(folder, out, documents, users, commit))
    counts = f"{format_count(made.documents, 'document')} and {format_count(made.personas, 'persona')}"
    print_lines(f"{counts} written to {out}")
    for line in made.left_out:
        print_lines(f"left out: {line}", err=True)


def _print_written(replies: LabelledData, out: Path) -> None:
    from hallulab.scenarios.text.wording import choose_noun

    written = f"{len(replies)} {choose_noun(len(replies), 'reply', 'replies')} written to {out}"
    print_lines(f"{written}, {sum(reply.hallucinated for reply in replies)} hallucinated")


make_data = typer.Typer(
    help="Make labelled data that `bench` reads, or a scenario pack.", no_args_is_help=True
)
add_command(make_data, "planted", make_planted)
add_command(make_data, "dialogues", make_dialogues)
add_command(make_data, "hotpotqa-derived", make_hotpotqa_derived)
add_command(make_data, "audit-corpus", make_audit_corpus)
add_command(make_data, "tau-knowledge", make_tau_knowledge)
