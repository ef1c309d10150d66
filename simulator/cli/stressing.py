"""`hallulab stress`: prompt strategies against poisoned and distracting documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hallulab.agents.machine.stopping import run_until_stopped
from hallulab.simulator.cli.options import (
    AsJson,
    FolderOptions,
    ModelOptions,
    RecordingOptions,
    expand_option_groups,
)
from hallulab.simulator.cli.running import build_settings, collect_flags
from hallulab.simulator.cli.saying import print_json, print_lines


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
    from hallulab.simulator.stress.rag_trust.terminal import print_stress

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
