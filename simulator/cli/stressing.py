"""`hallulab stress`: prompt strategies against poisoned and distracting documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hallulab.agents.machine.stopping import run_until_stopped
from hallulab.simulator.cli.options import AsJson, FolderOptions, ModelOptions, RecordingOptions, grouped
from hallulab.simulator.cli.running import flags_of, settings
from hallulab.simulator.cli.saying import say, say_json


@grouped
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
    from hallulab.simulator.runs.folder import folder_by_time
    from hallulab.simulator.stress.rag_trust.command import StressFolder, stress_command
    from hallulab.simulator.stress.rag_trust.config import load_stress
    from hallulab.simulator.stress.rag_trust.terminal import print_stress

    flags = {
        **flags_of(models),
        "data": None if data is None else str(data),
        "questions": questions,
        "seed": seed,
    }
    config = load_stress(models.config, flags)
    target = StressFolder(folder.out or folder_by_time())
    report = run_until_stopped(stress_command(config, target, settings(context, recording, folder.fresh)))
    if as_json:
        say_json(report.text())
    else:
        print_stress(report)
        say(f"\nreport: {target.page}")
