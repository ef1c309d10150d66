"""What `hallulab run`, `detect` and `branch` do, up to the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack import Scenario
from hallulab.simulator.engine.fixed_prefix import find_branching
from hallulab.simulator.engine.manifest import load_experiment_to_judge
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.run import Conduct, run_experiment
from hallulab.simulator.options.commands import BranchOptions, DetectOptions, RunOptions
from hallulab.simulator.options.groups import read_whole_numbers, to_path
from hallulab.simulator.records.config import ALL_CHATBOTS, Experiment
from hallulab.simulator.records.experiment_file import load_experiment, load_unchecked, put_over
from hallulab.simulator.records.folder import RunFolder, name_folder_by_time
from hallulab.simulator.records.outputs import check_outputs
from hallulab.simulator.records.recipients import UserWords, find_run_folder

_JUDGING = frozenset(
    {
        "detectors",
        "models",
        "roles",
        "model",
        "base_url",
        "base_urls",
        "endpoint_limits",
        "api_key_env",
        "extra",
        "headers",
        "query",
        "thoughts",
        "concurrency",
        "timeout",
        "decision_samples",
        "prices",
    }
)
"""Fields of an experiment file that say how a saved run is judged."""
_ANSWERING = _JUDGING | {"chatbots", "top_k", "reply_tokens", "embedding_model"}
"""Fields that say how chatbots answer, too."""


SAMPLED = 2
"""Personas that `hallulab run --estimate` plays."""


async def run_from_options(options: RunOptions, conduct: Conduct | None = None) -> tuple[RunFolder, Scenario]:
    """Hold the conversations of an experiment, and judge them unless the options have `no_judge`.

    Args:
        options: those of the command.
        conduct: see `run_experiment`.

    Returns:
        The run folder, and the pack.

    Raises:
        UsageError: the experiment has a contradiction, or does not fit the folder.
        OperationalError: server, endpoint or disk failed.
    """
    folder = RunFolder(to_path(options.out) or name_folder_by_time())
    experiment = load_asked_experiment(options)
    settings = RunSettings.from_options(options, options.fresh, options.batch)
    if options.estimate:
        few = {"limit": SAMPLED, "repeats": 1, "count": None, "until_decided": None}
        experiment = experiment.model_copy(update=few)
    return folder, await run_in_folder(experiment, folder, settings, not options.no_judge, conduct)


def load_asked_experiment(options: RunOptions) -> Experiment:
    """Return the experiment that options ask for.

    Raises:
        UsageError: the experiment has a contradiction.
    """
    fields = {
        **options.collect_model_fields(),
        **options.collect_conversation_fields(),
        "detectors": options.detectors,
        "until_decided": _read_deciding(options),
    }
    return load_experiment(options.config_path, fields)


def _read_deciding(options: RunOptions) -> dict[str, Any] | None:
    """Return what is given of `until_decided`; None: nothing is.

    Raises:
        UsageError: an option of `--until-decided` is given without it.
    """
    given = options.collect_deciding_fields()
    if options.until_decided or not given:
        return given if options.until_decided else None
    if load_unchecked(options.config_path, {}).until_decided is None:
        flag = next(iter(given)).replace("_", "-")
        raise UsageError(f"--{flag} says how --until-decided goes on. Give --until-decided, too.")
    return given


async def run_in_folder(
    experiment: Experiment,
    folder: RunFolder,
    settings: RunSettings,
    judge: bool,
    conduct: Conduct | None = None,
) -> Scenario:
    """Hold the conversations of an experiment in a folder, and judge them if `judge`; return the pack.

    Args:
        experiment: what is asked for.
        folder: where it goes.
        settings: how it is run.
        judge: see `run_experiment`.
        conduct: see there; it is for experiments with `until_decided`.

    Raises:
        UsageError: the folder cannot be written, or as `run_from_options`.
        OperationalError: as `run_from_options`.
    """
    check_outputs({}, folders={"--out": folder.path})
    if experiment.until_decided is not None:
        _require_decidable(settings, judge)
    else:
        conduct = None
    return await run_experiment(experiment, folder, settings, simulate=True, judge=judge, conduct=conduct)


def _require_decidable(settings: RunSettings, judge: bool) -> None:
    """Check that a run can go on until it is decided.

    Raises:
        UsageError: nothing is judged, or models are asked in waves.
    """
    if not judge:
        raise UsageError(
            "`until_decided` needs verdicts while conversations are held. Leave out --no-judge, or "
            "`until_decided`."
        )
    if settings.batch is not None:
        raise UsageError(
            "--batch asks for all conversations at once, --until-decided for a few at a time. Leave one out."
        )


async def detect_from_options(options: DetectOptions) -> tuple[RunFolder, Scenario]:
    """Judge the turns of a saved run that lack a verdict.

    Returns:
        The run folder, and the pack.

    Raises:
        UsageError: folder, experiment file or a detector are at fault.
        OperationalError: server, endpoint or disk failed.
    """
    folder = RunFolder(Path(options.folder))
    folder.require()
    fields = {**options.collect_model_fields(), "detectors": options.detectors}
    experiment, words = load_saved_experiment(folder, options.config_path, fields)
    settings = RunSettings.from_options(options, batch=options.batch)
    return folder, await run_experiment(experiment, folder, settings, simulate=False, words=words)


async def branch_from_options(options: BranchOptions) -> tuple[RunFolder, Scenario]:
    """Give chatbots the same messages after the same histories, taken from a finished run.

    Returns:
        The new run folder, and the pack.

    Raises:
        UsageError: folders, turns, experiment file or a component are at fault.
        OperationalError: server, endpoint or disk failed.
    """
    chosen = None if options.turns == "all" else read_whole_numbers("--turns", options.turns, 0)
    old, new = RunFolder(Path(options.run)), RunFolder(to_path(options.out) or name_folder_by_time())
    branching = find_branching(old, options.source, chosen)
    fields = {**options.collect_model_fields(), "detectors": options.detectors}
    experiment, words = load_saved_experiment(old, options.config_path, fields, options.chatbots, _ANSWERING)
    check_outputs({}, folders={"--out": new.path})
    settings = RunSettings.from_options(options, options.fresh, batch=options.batch)
    return new, await run_experiment(
        experiment, new, settings, simulate=True, branching=branching, words=words
    )


def load_saved_experiment(
    run: RunFolder,
    config: Path | None,
    flags: Mapping[str, Any],
    chatbots: Sequence[str] | None = None,
    fields: frozenset[str] = _JUDGING,
) -> tuple[Experiment, UserWords]:
    """Return the experiment of a saved run, to go on with, and whom the user has named of those it asks.

    Args:
        run: its folder.
        config: an experiment file, of which only `fields` count; None: there is none.
        flags: fields that were given (not None); they win over the file.
        chatbots: names of its chatbots, or of the file's, or kinds of others; None: all.
        fields: see above. With `chatbots` among them, they are going to answer.

    Raises:
        UsageError: folder or file are at fault, or only the folder names a chatbot that is not ours.
    """
    file = load_unchecked(config, {})
    given = file.model_dump(mode="json", exclude_unset=True)
    values = load_experiment_to_judge(run, given.get("scenario"))
    values.pop("until_decided", None)  # it decided which conversations there are
    values = put_over(values, {name: given[name] for name in given.keys() & fields})
    own = {name: value for name, value in flags.items() if value is not None}
    values = put_over(values, own)
    theirs = config is not None and find_run_folder(config) is not None
    told = {} if theirs else {name: given[name] for name in given.keys() - {"until_decided"}}
    words = UserWords(load_unchecked(None, put_over(told, own)), run.experiment)
    if chatbots is not None:
        known = {bot["name"]: bot for bot in values["chatbots"]}
        values["chatbots"] = [known.get(name, name) for name in chatbots]
    if "chatbots" in fields and (theirs or "chatbots" not in given):
        for bot in values["chatbots"]:
            # The folder may be a stranger's, and such a chatbot could name any program.
            if not isinstance(bot, str) and bot["kind"] not in ALL_CHATBOTS:
                raise UsageError(
                    f"{run.path}: its chatbot {bot['name']!r} is other people's code or service "
                    f"({bot['kind']}), which a run folder alone does not start. Give the experiment file "
                    "that names it with -c, or leave it out with --chatbots."
                )
    return load_unchecked(None, values).with_places_of(file), words
