"""What may be started from a page: built-in scenarios, registered components, and the user's own file.

A page is a program that others may have written into. So it may choose among what runs no code of its
choice, and what runs code comes from the experiment file on the command line alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hallulab.agents.models.endpoints import Endpoint
from hallulab.chatbots.registry import list_chatbot_names, read_chatbot_options
from hallulab.detectors.registry import find_detector, list_detector_names
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import expand_home, is_there
from hallulab.scenarios.packs.pack_files import list_built_in_packs
from hallulab.simulator.chat.command import load_live_experiment
from hallulab.simulator.experiment.config import Component, Experiment
from hallulab.simulator.options.groups import ModelOptions
from hallulab.simulator.viewer.form import FormError
from hallulab.simulator.viewer.places import choose_folder, list_scenarios

RUNNING_CODE = frozenset({"callable", "autogen"})
"""Kinds of chatbots that are other people's code."""

LONGEST_PATH = 255
"""Characters up to which a text may be a path."""

_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")

_FROM_FILE = "Name it in an experiment file, and start the viewer with --experiment FILE."


@dataclass(frozen=True)
class StartSource:
    """What the form of a new run begins with, and where runs go."""

    experiment: Experiment
    """What `--experiment` and `--model` of the viewer say; else the defaults."""
    folder: Path | None
    """The folder in which each run gets a run folder; None: none is shown that holds run folders."""

    @property
    def scenarios(self) -> list[str]:
        """The scenarios that can be chosen: the experiment's, then the built-in ones."""
        return list_scenarios(self.experiment)

    def list_offered(self, field: str) -> list[Component]:
        """Return the components that need no more than a name: the experiment's, then the registered ones.

        Args:
            field: `chatbots` or `detectors`.
        """
        own: Sequence[Component] = getattr(self.experiment, field)
        known = list_detector_names() if field == "detectors" else filter(_is_ready, list_chatbot_names())
        others = [Component(name=name, kind=name) for name in known]
        return list({one.name: one for one in (*others, *own)}.values())

    def find_component(self, field: str, name: str) -> Component | str:
        """Return what a name stands for: the experiment's component, else the registered kind."""
        own: Sequence[Component] = getattr(self.experiment, field)
        return next((one for one in own if one.name == name), name)


NOTHING_OFFERED = StartSource(Experiment(), None)
"""No run can be started."""


def load_start_source(options: ModelOptions, paths: Sequence[Path]) -> StartSource:
    """Return what a form begins with, by the options of a command.

    Raises:
        UsageError: the experiment is at fault.
    """
    experiment = load_live_experiment(options)
    try:
        return StartSource(experiment, choose_folder(paths))
    except UsageError:
        return StartSource(experiment, None)


def require_offered(experiment: Experiment, known: Experiment) -> None:
    """Check that an experiment names nothing that only an experiment file of the command line may name.

    Args:
        experiment: what a page, or the experiment.json of a run folder, asks for.
        known: what the command line names.

    Raises:
        FormError: it does; or a component is not registered, or an option of a chatbot is wrong.
    """
    if experiment.scenario not in (known.scenario, *list_built_in_packs()):
        raise FormError("scenario", f"this page starts no pack of another folder. {_FROM_FILE}")
    for bot in experiment.chatbots:
        if bot not in known.chatbots:
            _require_harmless("chatbots", bot, lambda bot: read_chatbot_options(bot.kind, bot.options))
    for judge in experiment.detectors:
        if judge not in known.detectors:
            _require_harmless("detectors", judge, lambda judge: find_detector(judge.kind))
    _require_no_folders(experiment, known)
    for field, name in _list_variables(experiment):
        if not _VARIABLE.fullmatch(name):
            raise FormError(
                field, "this is no name of an environment variable. Give its name, never the key."
            )


def require_key(experiment: Experiment) -> None:
    """Check that the key of the experiment's endpoint is in the environment.

    Raises:
        FormError: it is not.
    """
    if experiment.base_url is None:
        return
    try:
        Endpoint(experiment.model or "", experiment.base_url, experiment.api_key_env).api_key()
    except UsageError as error:
        raise FormError("api_key_env", f"{error} Then start the viewer again.") from error


def _is_ready(kind: str) -> bool:
    """Return whether a chatbot needs no options and may be started from a page."""
    try:
        read_chatbot_options(kind, {})
    except UsageError:
        return False
    return kind not in RUNNING_CODE


def _require_harmless(field: str, component: Component, find: Callable[[Component], object]) -> None:
    texts = list(_iterate_texts(component.options))
    if RUNNING_CODE & {component.kind, *texts}:
        raise FormError(field, f"{component.name} runs code of yours, which no page may start. {_FROM_FILE}")
    path = next(filter(_is_path, texts), None)
    if path is not None:
        raise FormError(field, f"{component.name}: an option is a path, {path!r}. {_FROM_FILE}")
    try:
        find(component)
    except UsageError as error:
        raise FormError(field, str(error)) from error


def _require_no_folders(experiment: Experiment, known: Experiment) -> None:
    """Check that no model is loaded from a folder that the command line does not name."""
    own = {known.model, known.embedding_model, *(one.model for one in known.models.values())}
    loaded = [("embedding_model", experiment.embedding_model)]
    if experiment.base_url is None:
        loaded.append(("model", experiment.model or ""))
        loaded += [("models", one.model) for one in experiment.models.values() if one.base_url is None]
    for field, name in loaded:
        if name not in own and _is_path(name):
            raise FormError(field, f"this page loads no model from a folder, {name!r}. {_FROM_FILE}")


def _list_variables(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Yield the names of variables with keys, and the fields that they stand in."""
    if experiment.api_key_env is not None:
        yield "api_key_env", experiment.api_key_env
    for one in experiment.models.values():
        if one.api_key_env is not None:
            yield "models", one.api_key_env
    for bot in experiment.chatbots:
        if isinstance(name := bot.options.get("api_key_env"), str):
            yield "chatbots", name


def _iterate_texts(value: Any) -> Iterator[str]:
    """Yield the texts in a value of JSON, without keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _iterate_texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _iterate_texts(inner)


def _is_path(text: str) -> bool:
    """Return whether a text leads to a file or a folder."""
    if not text or len(text) > LONGEST_PATH or not text.isprintable():
        return False
    parts = text.replace(os.sep, "/").split("/")
    return text.startswith(("/", "~", "./")) or ".." in parts or is_there(expand_home(text))
