"""Commands that make data to work on: `hallulab import` and `hallulab build`."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hallulab.agents.concurrency import run_until_stopped
from hallulab.simulator.cli.console import print_json, print_lines
from hallulab.simulator.cli.options import AsJson, PassingOn, expand_options
from hallulab.simulator.options.commands import BuildOptions, ImportOptions

if TYPE_CHECKING:
    from hallulab.scenarios.chats.reading import Reading
    from hallulab.scenarios.labelled import LabelledData
    from hallulab.simulator.records.importing import ImportCounts


@expand_options
def import_(options: ImportOptions, as_json: AsJson = False) -> None:
    """Write your own chats as a run folder, for `detect`, `report`, `view` and `export`."""
    from hallulab.simulator.records.importing import import_from_options

    folder, format, counts, reading = run_until_stopped(import_from_options(options))
    if as_json:
        print_json(json.dumps(_convert_to_json(counts, format, reading), indent=2) + "\n")
    else:
        _tell(counts, format, reading, folder.path)


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


def _tell(counts: ImportCounts, format: str, reading: Reading, folder: Path) -> None:
    from hallulab.scenarios.text.wording import format_count

    chats, turns = format_count(counts.conversations, "conversation"), format_count(counts.turns, "turn")
    print_lines(f"{chats} with {turns} imported as {format} to {folder}")
    if described := reading.describe():
        print_lines(described)
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


@expand_options
def hotpotqa_derived(options: BuildOptions) -> None:
    """Write HotpotQA's questions with right answers and with wrong ones of the model.

    What stands after `--` is passed on to the model server.
    """
    from hallulab.simulator.bench.build import build_from_options
    from hallulab.simulator.bench.hotpotqa_derived import list_left_out

    derived = run_until_stopped(build_from_options(options))
    _print_written(derived.data, Path(options.out))
    for line in list_left_out(derived):
        print_lines(line, err=True)


def audit_corpus(out: Annotated[Path, typer.Option(help="JSON-lines file to write.")]) -> None:
    """Write EvidenceChain's audit corpus, which `hallulab bench audit-corpus` generates, too."""
    from hallulab.scenarios.datasets.audit_corpus import generate
    from hallulab.simulator.bench.build import write_labelled
    from hallulab.simulator.records.outputs import check_outputs

    check_outputs({"--out": out})
    replies = generate()
    write_labelled(out, replies)
    _print_written(replies, out)


def _print_written(replies: LabelledData, out: Path) -> None:
    from hallulab.scenarios.text.wording import choose_noun

    written = f"{len(replies)} {choose_noun(len(replies), 'reply', 'replies')} written to {out}"
    print_lines(f"{written}, {sum(reply.hallucinated for reply in replies)} hallucinated")


build = typer.Typer(help="Make labelled data that `bench` reads.", no_args_is_help=True)
build.command("hotpotqa-derived", cls=PassingOn)(hotpotqa_derived)
build.command("audit-corpus")(audit_corpus)

COMMANDS = {"import": import_, "build": build}
