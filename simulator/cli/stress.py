"""Commands that try detectors and prompts on known errors: `hallulab stress`, `plant` and `calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hallulab.agents.concurrency import run_until_stopped
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.cli.console import print_json, print_lines
from hallulab.simulator.cli.options import (
    AsJson,
    Detectors,
    FolderOptions,
    ModelOptions,
    RecordingOptions,
    expand_option_groups,
    read_whole_numbers,
    split_names,
)
from hallulab.simulator.cli.run import build_settings, collect_flags


@expand_option_groups
def stress(
    context: typer.Context,
    models: ModelOptions,
    folder: FolderOptions,
    recording: RecordingOptions,
    data: Annotated[
        Path | None, typer.Option(help="Folder that holds HotpotQA's distractor setting.")
    ] = None,
    questions: Annotated[int | None, typer.Option(help="At most this many questions.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of all choices.")] = None,
    as_json: AsJson = False,
) -> None:
    """Ask chatbots with four prompt strategies about poisoned and distracting documents, and report.

    What stands after `--` is passed on to the model server.
    """
    from hallulab.simulator.runs.folder import name_folder_by_time
    from hallulab.simulator.stress.rag_trust.command import StressFolder, run_stress
    from hallulab.simulator.stress.rag_trust.config import load_stress
    from hallulab.simulator.stress.rag_trust.tables import print_stress

    flags = {
        **collect_flags(models),
        "data": None if data is None else str(data),
        "questions": questions,
        "seed": seed,
    }
    config = load_stress(models.config, flags)
    target = StressFolder(folder.out or name_folder_by_time())
    report = run_until_stopped(run_stress(config, target, build_settings(context, recording, folder.fresh)))
    if as_json:
        print_json(report.text())
    else:
        print_stress(report)
        print_lines(f"\nreport: {target.page}")


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


@expand_option_groups
def calibrate(
    context: typer.Context,
    models: ModelOptions,
    recording: RecordingOptions,
    source: Annotated[
        str | None,
        typer.Argument(
            help="What errors are planted into: a scenario pack, a folder of documents, a run folder, or a "
            "labelled JSON-lines file. Default: the experiment's scenario."
        ),
    ] = None,
    detectors: Detectors = None,
    data: Annotated[
        list[str] | None, typer.Option(help="A file of labelled replies to fit to, too; may be repeated.")
    ] = None,
    count: Annotated[int, typer.Option(min=20, help="Errors to plant; each has a clean twin.")] = 200,
    seed: Annotated[int | None, typer.Option(help="Seed of all choices, and of the detectors.")] = None,
    policy: Annotated[
        str | None,
        typer.Option(help="Fit the thresholds of this policy's topics instead, for a guarded chatbot."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write that policy into.")] = None,
    as_json: AsJson = False,
) -> None:
    """Fit the detectors' thresholds on planted errors and their clean twins, for a model of one's own.

    The fits are kept, and used wherever the same model is asked the same. What stands after `--` is passed
    on to the model server.
    """
    from hallulab.simulator.experiment.config import load_experiment
    from hallulab.simulator.stress.calibrate.detectors import CalibrateSettings, calibrate_command
    from hallulab.simulator.stress.calibrate.policy import add_guard_detector, calibrate_policy
    from hallulab.simulator.stress.calibrate.tables import print_calibration, print_policy

    flags = {**collect_flags(models), "detectors": split_names(detectors), "seed": seed}
    experiment = load_experiment(models.config, flags)
    chosen = CalibrateSettings(source or experiment.scenario, count, tuple(data or ()))
    run = build_settings(context, recording)
    if policy is not None or out is not None:
        if policy is None or out is None:
            raise UsageError(
                "--policy and --out go together: name the policy, and the file to write it into."
            )
        guarded = add_guard_detector(experiment, split_names(detectors))
        found = run_until_stopped(calibrate_policy(chosen, guarded, run, policy, out, models.config))
        if as_json:
            print_json(found.model_dump_json(indent=2) + "\n")
        else:
            print_policy(found)
            print_lines(f"\nwritten to {out}")
        return
    report = run_until_stopped(calibrate_command(chosen, experiment, run))
    if as_json:
        print_json(report.model_dump_json(indent=2) + "\n")
    else:
        print_calibration(report)
        print_lines(f"\nkept in {report.kept_in}")
