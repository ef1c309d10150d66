"""`hallulab branch`: fixed-prefix mode."""

from __future__ import annotations

from typing import Annotated

import typer

from hallulab.agents.machine.stopping import run_until_stopped
from hallulab.simulator.cli.options import (
    AsJson,
    Detectors,
    FolderOptions,
    ModelOptions,
    RecordingOptions,
    RunArgument,
    expand_option_groups,
    read_whole_numbers,
    split_names,
)
from hallulab.simulator.cli.running import ANSWERING, build_settings, collect_flags, load_saved_experiment


@expand_option_groups
def branch(
    context: typer.Context,
    run: RunArgument,
    models: ModelOptions,
    folder: FolderOptions,
    recording: RecordingOptions,
    turns: Annotated[
        str, typer.Option(help="Turns that are held anew, from 0, separated by commas; or all.")
    ] = "all",
    source: Annotated[
        str | None,
        typer.Option("--from", help="Chatbot whose conversations they are; by default the first of the run."),
    ] = None,
    chatbots: Annotated[
        str | None,
        typer.Option(help="Chatbots that answer, separated by commas; by default those of the run."),
    ] = None,
    detectors: Detectors = None,
    as_json: AsJson = False,
) -> None:
    """Give chatbots the same messages after the same histories, taken from a finished run, and report.

    Each gives one reply, which is judged. The report sets these replies beside those of the run.
    What stands after `--` is passed on to the model server.
    """
    from hallulab.simulator.cli.folders import show_report
    from hallulab.simulator.experiment.fixed_prefix import find_branching
    from hallulab.simulator.experiment.run import run_experiment
    from hallulab.simulator.runs.folder import RunFolder, name_folder_by_time
    from hallulab.simulator.runs.outputs import check_outputs

    chosen = None if turns == "all" else read_whole_numbers("--turns", turns, 0)
    old, new = RunFolder(run), RunFolder(folder.out or name_folder_by_time())
    branching = find_branching(old, source, chosen)
    flags = {**collect_flags(models), "detectors": split_names(detectors)}
    experiment = load_saved_experiment(old, models.config, flags, split_names(chatbots), ANSWERING)
    check_outputs({}, folders={"--out": new.path})
    how = build_settings(context, recording, folder.fresh)
    pack = run_until_stopped(run_experiment(experiment, new, how, simulate=True, branching=branching))
    show_report(new, as_json, new.read_journals(), pack)
