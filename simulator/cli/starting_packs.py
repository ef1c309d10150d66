"""`hallulab init-scenario`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hallulab.agents.machine.stopping import run_until_stopped
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.text.wording import render_one_line
from hallulab.simulator.cli.options import ModelOptions, RecordingOptions, expand_option_groups
from hallulab.simulator.cli.running import build_settings, collect_flags
from hallulab.simulator.cli.saying import print_lines

if TYPE_CHECKING:
    from hallulab.simulator.authoring.packs import Written

_PERSONAS, _GOALS = 20, "70/20/10"
_SHOWN = 10
"""Lines at most about what was refused, what failed, and which documents nobody asks about."""


@expand_option_groups
def init_scenario(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")],
    models: ModelOptions,
    recording: RecordingOptions,
    documents: Annotated[
        Path | None,
        typer.Option(help="Folder of your documents: a model writes the pack's personas from them."),
    ] = None,
    from_chats: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Chats of real users, as `hallulab import` reads them: one persona of each.",
        ),
    ] = None,
    personas: Annotated[
        int | None,
        typer.Option(
            help=f"Personas to write from the documents, {_PERSONAS} by default; with --from-chats, how many "
            "chats are read, all by default."
        ),
    ] = None,
    goals: Annotated[
        str | None,
        typer.Option(
            help="Per cent of goals that the documents answer, answer in part, do not answer; "
            f"{_GOALS} by default."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of what is drawn.")] = None,
) -> None:
    """Write a scenario pack to start your own from; with --documents, one about your documents.

    What stands after `--` is passed on to the model server.
    """
    if documents is None:
        own = {"from_chats": from_chats, "personas": personas, "goals": goals, "seed": seed}
        _write_skeleton(directory, {**own, **collect_flags(models)}, context.args)
        return
    from hallulab.simulator.authoring.chats import load_chat_file
    from hallulab.simulator.authoring.packs import PackRequest, write_pack
    from hallulab.simulator.experiment.config import load_experiment

    if personas is not None and personas < 1:
        raise UsageError(f"--personas {personas}: give at least 1.")
    if from_chats is not None and goals is not None:
        raise UsageError(
            f"--goals {goals}: with --from-chats, the goals are those of the chats. Leave it out."
        )
    wanted = PackRequest(
        directory,
        documents,
        (personas or _PERSONAS) if from_chats is None else load_chat_file(from_chats, personas),
        _read_shares(_GOALS if goals is None else goals),
    )
    experiment = load_experiment(models.config, {**collect_flags(models), "seed": seed})
    written = run_until_stopped(write_pack(wanted, experiment, build_settings(context, recording)))
    _tell(directory, wanted.number, written)


def _write_skeleton(directory: Path, given: Mapping[str, object], args: Sequence[str]) -> None:
    for name, value in given.items():
        if value is not None:
            flag = name if name.startswith("--") else f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag} goes with --documents only: without it nothing is written by a model.")
    if args:
        raise UsageError(f"`-- {args[0]}`: no server is started here, so it takes no flags.")
    from hallulab.scenarios.packs.skeleton import init_scenario as write

    write(directory)
    print_lines(
        f"{directory}: edit scenario.yaml, documents/ and personas.yaml, then "
        f"`hallulab run --scenario {directory}`"
    )


def _read_shares(text: str) -> tuple[float, float, float]:
    parts = text.split("/")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts) or sum(map(int, parts)) != 100:
        raise UsageError(f"--goals {text}: give three whole numbers that make 100, such as {_GOALS}.")
    answered, in_part, not_answered = (int(part) / 100 for part in parts)
    return answered, in_part, not_answered


def _tell(directory: Path, wanted: int, written: Written) -> None:
    from hallulab.simulator.authoring.personas import KINDS

    making = written.making
    kinds = [goal.kind for one in making.made for goal in one.goals]
    counted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in KINDS)
    topics, passed = f", {written.topics} topics", "; every one passed its checks"
    if written.topics is None:
        topics = passed = ""
    print_lines(f"{directory}: {len(making.made)} of {wanted} personas{topics}")
    print_lines(f"goals by what the documents say: {counted}{passed}")
    for about, lines in (
        ("written again", making.refused),
        ("answered although they were to be otherwise", making.replaced),
        ("not there", making.failed),
        ("to complete or correct", making.doubtful),
        ("documents that nobody asks about", written.uncovered),
    ):
        if lines:
            print_lines(f"{about}: {len(lines)}")
            for line in sorted(lines)[:_SHOWN]:
                print_lines(f"  {render_one_line(line)}")
            if len(lines) > _SHOWN:
                print_lines(f"  and {len(lines) - _SHOWN} more")
    print_lines(
        f"read and correct scenario.yaml and personas.yaml, then `hallulab run --scenario {directory}`"
    )
