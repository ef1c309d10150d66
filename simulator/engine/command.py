"""The work of `hallulab run`, `detect` and `branch`, up to the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hallulab.detectors.registry import DETECTORS
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.packs.pack_files import list_built_in_packs, load_scenario
from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.plan import find_branching
from hallulab.simulator.engine.run import Strategy, run_experiment
from hallulab.simulator.options.commands import BranchOptions, DetectOptions, RunOptions
from hallulab.simulator.options.groups import read_whole_numbers, to_path
from hallulab.simulator.records.experiment import Component, Experiment
from hallulab.simulator.records.experiment_file import (
    load_experiment,
    load_unchecked,
    put_over,
    refuse_code,
    refuse_others,
)
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.outputs import check_outputs, name_folder_by_time
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


async def run_from_options(
    options: RunOptions, strategy: Strategy | None = None, on_start: Callable[[], object] | None = None
) -> tuple[RunFolder, Scenario]:
    """Hold the conversations of an experiment, judge them unless `no_judge`; return run folder and pack.

    Args:
        strategy: see `run_experiment`, as for `on_start`.

    Raises:
        UsageError: the experiment has a contradiction, or does not fit the folder.
        OperationalError: server, endpoint or disk failed.
    """
    folder = RunFolder(to_path(options.out) or name_folder_by_time())
    experiment = load_experiment_to_play(options)
    settings = RunSettings.from_options(options, options.fresh, options.batch)
    return folder, await run_in_folder(experiment, folder, settings, not options.no_judge, strategy, on_start)


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


def load_experiment_to_play(options: RunOptions) -> Experiment:
    """Return the experiment that options ask for; with `estimate`, that of two of its personas.

    Raises:
        UsageError: the experiment has a contradiction.
    """
    experiment = load_asked_experiment(options)
    few = {"limit": SAMPLED, "repeats": 1, "count": None, "until_decided": None}
    return experiment.model_copy(update=few) if options.estimate else experiment


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
    strategy: Strategy | None = None,
    on_start: Callable[[], object] | None = None,
) -> Scenario:
    """Hold the conversations of an experiment in a folder, and judge them if `judge`; return the pack.

    Args:
        folder: where it goes.
        strategy: see there; it is for experiments with `until_decided`.
        on_start: see there.

    Raises:
        UsageError: the folder cannot be written, or as `run_from_options`.
        OperationalError: as `run_from_options`.
    """
    check_outputs({}, folders={"--out": folder.path})
    if experiment.until_decided is not None:
        _require_decidable(settings, judge)
    else:
        strategy = None
    return await run_experiment(
        experiment, folder, settings, simulate=True, judge=judge, strategy=strategy, on_start=on_start
    )


def _require_decidable(settings: RunSettings, judge: bool) -> None:
    """Check that a run can go on until it is decided.

    Raises:
        UsageError: nothing is judged, or models are asked in waves.
    """
    if not judge:
        raise UsageError(
            "`until_decided` needs verdicts while conversations run. Leave out --no-judge, or "
            "`until_decided`."
        )
    if settings.batch is not None:
        raise UsageError(
            "--batch asks for all conversations at once, --until-decided for a few at a time. Leave one out."
        )


async def detect_from_options(options: DetectOptions) -> tuple[RunFolder, Scenario]:
    """Judge turns of a saved run that lack a verdict, or ask again; return the run folder and the pack.

    Raises:
        UsageError: folder, experiment file or a detector are at fault.
        OperationalError: server, endpoint or disk failed.
    """
    if options.again is not None and options.again < 1:
        raise UsageError(f"--again {options.again}: give the number of replies to ask about again, from 1.")
    folder = RunFolder(Path(options.folder))
    folder.require()
    fields = {**options.collect_model_fields(), "detectors": options.detectors}
    experiment, words = load_saved_experiment(folder, options.config_path, fields)
    settings = RunSettings.from_options(options, batch=options.batch)
    return folder, await run_experiment(
        experiment, folder, settings, simulate=False, words=words, again=options.again or 0
    )


async def branch_from_options(options: BranchOptions) -> tuple[RunFolder, Scenario]:
    """Give chatbots the messages and histories of a finished run; return the new run folder and the pack.

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
    named = {} if theirs else {name: given[name] for name in given.keys() - {"until_decided"}}
    words = UserWords(load_unchecked(None, put_over(named, own)), run.experiment)
    if chatbots is not None:
        known = {bot["name"]: bot for bot in values["chatbots"]}
        values["chatbots"] = [known.get(name, name) for name in chatbots]
    experiment = load_unchecked(None, values)
    if "chatbots" in fields and (theirs or "chatbots" not in given):
        refuse_others(run.path, experiment.chatbots)
    if "detectors" not in own and (theirs or "detectors" not in given):
        refuse_code(run.path, experiment.detectors)
    return experiment.with_places_of(file), words


def load_experiment_to_judge(folder: RunFolder, scenario: str | None) -> dict[str, Any]:
    """Return the fields of the experiment that made a folder's conversations.

    They come from its experiment.json; imported chats have the detectors that judged them. Without that
    file, scenario, chatbots and seed come from the journal, and the other fields are left out.

    Args:
        scenario: the pack of the conversations, for a folder without experiment.json. None: a built-in one.

    Raises:
        UsageError: experiment.json is damaged, or is missing and the journal does not say enough.
    """
    saved = folder.read_experiment()
    if saved is not None:
        values = saved.experiment.model_dump(mode="json", exclude_unset=True)
        judged = [name for name in saved.detectors if name in DETECTORS]
        # No experiment made imported chats, so those that judged them judge on.
        return {"detectors": judged, **values} if saved.imported and judged else values
    conversations = folder.read_conversations()
    if not conversations:
        raise UsageError(f"{folder.conversations} is empty: there is nothing to judge yet.")
    chatbots = []
    for name in sorted({conversation.chatbot for conversation in conversations}):
        try:
            chatbots.append(Component(name=name, kind=name).model_dump(exclude_unset=True))
        except ValidationError as error:
            raise UsageError(
                f"{folder.conversations}: a chatbot is called {name!r}. Rename it: letters, digits, `.`, `_` "
                "and `-` make a name."
            ) from error
    return {
        "scenario": _determine_scenario(folder, conversations, scenario),
        "chatbots": chatbots,
        "seed": min(conversation.seed for conversation in conversations),
    }


def _determine_scenario(folder: RunFolder, conversations: Sequence[Conversation], given: str | None) -> str:
    names = sorted({conversation.scenario for conversation in conversations})
    if len(names) > 1:
        raise UsageError(
            f"{folder.conversations}: its conversations are about several scenarios ({', '.join(names)}). "
            "Put those of each into a folder of its own."
        )
    about = f"{folder.conversations}: its conversations are about scenario {names[0]!r}"
    if given is not None:
        found = load_scenario(given).name
        if found != names[0]:
            raise UsageError(f"{about}, not {found!r} as -c says.")
        return given
    if names[0] not in list_built_in_packs():
        raise UsageError(
            f"{about}, which is no built-in pack. Restore the folder's experiment.json, or give a file with "
            "`scenario: PATH` by -c."
        )
    return names[0]
