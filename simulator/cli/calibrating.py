"""`hallulab calibrate`: thresholds for a model and documents of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hallulab.agents.machine.stopping import run_until_stopped
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.cli.options import (
    AsJson,
    Detectors,
    ModelOptions,
    RecordingOptions,
    expand_option_groups,
    split_names,
)
from hallulab.simulator.cli.running import build_settings, collect_flags
from hallulab.simulator.cli.saying import print_json, print_lines


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
    from hallulab.simulator.stress.calibration import CalibrateSettings, calibrate_command
    from hallulab.simulator.stress.calibration_table import print_calibration, print_policy
    from hallulab.simulator.stress.policy_calibration import add_guard_detector, calibrate_policy

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
