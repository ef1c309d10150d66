"""Commands that hold and judge conversations: `hallulab run`, `simulate`, `detect` and `branch`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hallulab.agents.concurrency import run_until_stopped
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.cli.console import print_lines
from hallulab.simulator.cli.options import (
    AsJson,
    ConversationOptions,
    Detectors,
    FolderOptions,
    ModelOptions,
    RecordingOptions,
    RunArgument,
    Workers,
    expand_option_groups,
    read_whole_numbers,
    split_names,
)

if TYPE_CHECKING:
    from hallulab.scenarios.packs.pack import Scenario
    from hallulab.simulator.experiment.config import Experiment
    from hallulab.simulator.experiment.models import RunSettings
    from hallulab.simulator.runs.folder import RunFolder

JUDGING = frozenset(
    {
        "detectors",
        "models",
        "roles",
        "model",
        "base_url",
        "base_urls",
        "endpoint_limits",
        "api_key_env",
        "concurrency",
        "timeout",
        "decision_samples",
    }
)
"""Fields of an experiment file that say how a saved run is judged."""
ANSWERING = JUDGING | {"chatbots", "top_k", "reply_tokens", "embedding_model"}
"""Fields that say how chatbots answer, too."""


@expand_option_groups
def run(
    context: typer.Context,
    models: ModelOptions,
    conversations: ConversationOptions,
    folder: FolderOptions,
    recording: RecordingOptions,
    detectors: Detectors = None,
    workers: Workers = 1,
    as_json: AsJson = False,
) -> None:
    """Simulate conversations, judge every reply, and report.

    What stands after `--` is passed on to the model server.
    """
    from hallulab.simulator.cli.report import show_report

    flags = {**collect_flags(models), **collect_flags(conversations), "detectors": split_names(detectors)}
    how = build_settings(context, recording, folder.fresh, workers)
    out, scenario = _execute(models.config, flags, folder, how)
    show_report(out, as_json, out.read_journals(), scenario)


@expand_option_groups
def simulate(
    context: typer.Context,
    models: ModelOptions,
    conversations: ConversationOptions,
    folder: FolderOptions,
    recording: RecordingOptions,
    workers: Workers = 1,
) -> None:
    """Simulate conversations only; `detect` judges them later.

    What stands after `--` is passed on to the model server.
    """
    flags = {**collect_flags(models), **collect_flags(conversations)}
    how = build_settings(context, recording, folder.fresh, workers)
    out, _ = _execute(models.config, flags, folder, how, judge=False)
    print_lines(out.path)


@expand_option_groups
def detect(
    context: typer.Context,
    folder: RunArgument,
    models: ModelOptions,
    recording: RecordingOptions,
    detectors: Detectors = None,
    workers: Workers = 1,
    as_json: AsJson = False,
) -> None:
    """Judge the turns of a saved run that lack a verdict, and report.

    What stands after `--` is passed on to the model server.
    """
    from hallulab.simulator.cli.report import show_report
    from hallulab.simulator.experiment.run import run_experiment
    from hallulab.simulator.runs.folder import RunFolder

    run = RunFolder(folder)
    run.require()
    flags = {**collect_flags(models), "detectors": split_names(detectors)}
    experiment = load_saved_experiment(run, models.config, flags)
    scenario = run_until_stopped(
        run_experiment(experiment, run, build_settings(context, recording, workers=workers), simulate=False)
    )
    show_report(run, as_json, run.read_journals(), scenario)


def load_saved_experiment(
    run: RunFolder,
    config: Path | None,
    flags: Mapping[str, Any],
    chatbots: Sequence[str] | None = None,
    fields: frozenset[str] = JUDGING,
) -> Experiment:
    """Return the experiment of a saved run, to go on with.

    Args:
        run: its folder.
        config: an experiment file, of which only `fields` count; None: there is none.
        flags: fields that were given (not None); they win over the file.
        chatbots: names of its chatbots, or of the file's, or kinds of others; None: all.
        fields: see above. With `chatbots` among them, they are going to answer.

    Raises:
        UsageError: folder or file are at fault, or only the folder names a chatbot that is not ours.
    """
    from hallulab.simulator.experiment.config import ALL_CHATBOTS, load_experiment, put_over
    from hallulab.simulator.experiment.manifest import load_experiment_to_judge

    file = load_experiment(config, {})
    given = file.model_dump(mode="json", exclude_unset=True)
    values = load_experiment_to_judge(run, given.get("scenario"))
    values = put_over(values, {name: given[name] for name in given.keys() & fields})
    values = put_over(values, {name: value for name, value in flags.items() if value is not None})
    if chatbots is not None:
        known = {bot["name"]: bot for bot in values["chatbots"]}
        values["chatbots"] = [known.get(name, name) for name in chatbots]
    if "chatbots" in fields - given.keys():
        for bot in values["chatbots"]:
            # The folder may be a stranger's, and such a chatbot could name any program.
            if not isinstance(bot, str) and bot["kind"] not in ALL_CHATBOTS:
                raise UsageError(
                    f"{run.path}: its chatbot {bot['name']!r} is other people's code or service "
                    f"({bot['kind']}), which a run folder alone does not start. Give the experiment file "
                    "that names it with -c, or leave it out with --chatbots."
                )
    return load_experiment(None, values).with_places_of(file)


def collect_flags(options: ModelOptions | ConversationOptions) -> dict[str, Any]:
    """Return flags as fields of an experiment; None for those that were not given."""
    values = dataclasses.asdict(options)
    values.pop("config", None)
    if values.get("base_url") is not None:
        several = values.pop("base_url")
        values |= {"base_url": several[0]} if len(several) == 1 else {"base_urls": several}
    for listed in ("chatbots", "personas", "manners"):
        if listed in values:
            values[listed] = split_names(values[listed])
    return values


def build_settings(
    context: typer.Context, recording: RecordingOptions, fresh: bool = False, workers: int = 1
) -> RunSettings:
    """Return the flags that say how, not what, to run; the words after `--` are for the model server."""
    from hallulab.simulator.experiment.models import RunSettings

    return RunSettings(
        fresh=fresh,
        record=recording.record,
        replay=recording.replay,
        quiet=recording.quiet,
        server_flags=tuple(context.args),
        workers=workers,
    )


def _execute(
    config: Path | None, flags: dict[str, Any], folder: FolderOptions, how: RunSettings, judge: bool = True
) -> tuple[RunFolder, Scenario]:
    from hallulab.simulator.experiment.config import load_experiment
    from hallulab.simulator.experiment.run import run_experiment
    from hallulab.simulator.runs.folder import RunFolder, name_folder_by_time
    from hallulab.simulator.runs.outputs import check_outputs

    run = RunFolder(folder.out or name_folder_by_time())
    experiment = load_experiment(config, flags)
    check_outputs({}, folders={"--out": run.path})
    scenario = run_until_stopped(run_experiment(experiment, run, how, simulate=True, judge=judge))
    return run, scenario


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
    from hallulab.simulator.cli.report import show_report
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
