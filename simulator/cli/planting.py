"""`hallulab plant`: known errors in replies that are right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hallulab.agents.machine.stopping import run_until_stopped
from hallulab.simulator.cli.options import (
    ModelOptions,
    RecordingOptions,
    expand_option_groups,
    read_whole_numbers,
    split_names,
)
from hallulab.simulator.cli.running import build_settings, collect_flags
from hallulab.simulator.cli.saying import print_lines


@expand_option_groups
def plant(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            help="Where clean replies come from: a run folder, a labelled JSON-lines file, or a scenario "
            "pack or folder of documents that replies are made of."
        ),
    ],
    models: ModelOptions,
    recording: RecordingOptions,
    out: Annotated[Path, typer.Option(help="Folder to write planted.jsonl into.")],
    count: Annotated[int, typer.Option(min=1, help="Errors to plant; each has a clean twin.")] = 400,
    kinds: Annotated[
        str | None, typer.Option(help="Kinds of errors, with commas between; default: all.")
    ] = None,
    turns: Annotated[str, typer.Option(help="Turns before a reply made of documents, in turn.")] = "0,2,4",
    contexts: Annotated[
        str, typer.Option(help="Passages in the evidence of a reply made of documents, in turn.")
    ] = "1,4,8",
    seed: Annotated[int, typer.Option(help="Seed of all choices.")] = 0,
    fluent: Annotated[
        bool,
        typer.Option("--fluent", help="Let the model write the errors; else rules do, and none is asked."),
    ] = False,
) -> None:
    """Plant errors of known kinds into clean replies, for `hallulab bench` to measure detectors on.

    The file holds every error and its clean twin, with the exact place and the kind. What stands after `--`
    is passed on to the model server.
    """
    from hallulab.scenarios.text.wording import format_count
    from hallulab.simulator.bench.planted import FILE
    from hallulab.simulator.experiment.config import load_experiment
    from hallulab.simulator.stress.command import PlantSettings, plant_command, plant_fluently_command

    chosen = PlantSettings(
        source,
        out,
        count,
        split_names(kinds) or (),
        read_whole_numbers("--turns", turns, 0),
        read_whole_numbers("--contexts", contexts, 1),
        seed,
    )
    if fluent:
        experiment = load_experiment(models.config, collect_flags(models))
        done = run_until_stopped(
            plant_fluently_command(chosen, experiment, build_settings(context, recording))
        )
    else:
        _refuse_models(models, recording, context)
        done = plant_command(chosen)
    print_lines(f"{format_count(len(done.replies) // 2, 'error')} with clean twins written to {out / FILE}")
    for kind, lacking in done.lacking.items():
        print_lines(f"{kind}: {lacking} fewer, as no place for them was found", err=True)
    for (kind, reason), dropped in sorted(done.dropped.items()):
        print_lines(f"{kind}: {dropped} fewer, as the model wrote no error twice: {reason}", err=True)


def _refuse_models(models: ModelOptions, recording: RecordingOptions, context: typer.Context) -> None:
    """Raise UsageError if anything is given that only a model needs."""
    from hallulab.scenarios.errors import UsageError

    given = [models.config, recording.record, recording.replay, *collect_flags(models).values()]
    if context.args or any(value is not None for value in given):
        raise UsageError(
            "without --fluent, no model is asked: leave out the options of models and recordings, or add "
            "--fluent."
        )
