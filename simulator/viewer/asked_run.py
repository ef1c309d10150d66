"""A run that a page asks for: the experiment of a filled-in form, its YAML, and what it would do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import choose_main_error
from hallulab.scenarios.text.wording import format_count
from hallulab.simulator.engine.plan import load_attacked, plan
from hallulab.simulator.records.choices import ensure_model
from hallulab.simulator.records.experiment import Component, Experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.recipients import Recipient, list_recipients, list_unnamed
from hallulab.simulator.viewer.form import (
    FormError,
    FormField,
    dump_yaml,
    list_fields,
    read_form,
    show_value,
)
from hallulab.simulator.viewer.offers import StartSource, require_key, require_offered

HEAD = "# Written by `hallulab view`. What is not here has its default.\n"

_LISTS = ("chatbots", "detectors")


@dataclass(frozen=True)
class AskedRun:
    """A run that can be started."""

    experiment: Experiment
    yaml: str
    conversations: int
    """How many conversations it is to hold."""
    sentences: tuple[str, ...]
    """What it would do, in sentences."""
    unnamed: tuple[Recipient, ...] = ()
    """Those that it would ask and that the command line does not name: each has to be confirmed."""


@dataclass(frozen=True)
class FilledField:
    """A field of the form, and what it shows."""

    field: FormField
    text: str
    """Its text; of components, further ones as YAML."""
    is_on: bool
    """Whether it is switched on; of other kinds False."""


def fill_form(source: StartSource) -> list[FilledField]:
    """Return the form as it is shown first: with what the command line says."""
    given = drop_defaults(source.experiment.model_dump(mode="json", exclude_unset=True))
    filled = []
    for field in list_fields(Experiment):
        value = given.get(field.name)
        shown = "" if field.kind == "components" else show_value(field.kind, value)
        default = Experiment.model_fields[field.name].default
        filled.append(FilledField(field, shown, (default if value is None else value) is True))
    return filled


def read_asked_run(source: StartSource, given: Mapping[str, Any]) -> AskedRun:
    """Return the run that a form asks for.

    Args:
        source: what can be chosen, and where runs go.
        given: what the page sent, field by field.

    Raises:
        FormError: a field is wrong; the field is empty if the sentence is about none.
    """
    folder = source.folder
    if folder is None:
        raise FormError(
            "", "No folder is shown that runs can be written in. Give one that holds run folders."
        )
    fields = list_fields(Experiment)
    names = [field.name for field in fields]
    values = read_form(fields, given)
    for field in _LISTS:
        chosen = [source.find_component(field, one) if isinstance(one, str) else one for one in values[field]]
        values[field] = [one.model_dump() if isinstance(one, Component) else one for one in chosen]
    try:
        scenario = values.get("scenario", Experiment().scenario)
        if scenario not in source.scenarios:  # before any path is looked at
            raise FormError("scenario", "there is no such scenario here. Choose one of the list.")
        experiment = load_experiment(None, values)
        require_offered(experiment, source.experiment)
        experiment_to_run = ensure_model(experiment)
        scenario_to_run, _ = load_attacked(experiment_to_run)
        require_key(experiment)
        number = len(plan(experiment_to_run, scenario_to_run))
    except FormError:
        raise
    except UsageError as error:
        raise place_error(error, names) from error
    return AskedRun(
        experiment,
        write_yaml(experiment),
        number,
        _describe(experiment_to_run, number, folder),
        list_unnamed(list_recipients(experiment), list_recipients(source.experiment)),
    )


def place_error(error: UsageError, names: Sequence[str]) -> FormError:
    """Return an error with the field that it is about.

    It is the field that the schema names, else one that the sentence names; else none.
    """
    sentence, cause = str(error), error.__cause__
    if isinstance(cause, ValidationError):
        location = [str(step) for step in choose_main_error(cause)["loc"]]
        if location and location[0] in names:
            sentence = sentence.removeprefix(f"field `{location[0]}`: ")
            return FormError(location[0], sentence)
    quoted = [name.replace("-", "_") for name in re.findall(r"(?:`|--)([a-z_-]+)", sentence)]
    first = re.match(r"[a-z_]+", sentence)
    lacking = [f"{word}s" for word in re.findall(r"\bno ([a-z]+) ", sentence)]
    about = [*lacking, *([first[0]] if first else []), *quoted]
    return FormError(next((name for name in about if name in names), ""), sentence)


def drop_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an experiment file without those that change nothing.

    Defaults depend on other fields, so each is left out in turn, and stays out if the experiment is the same.
    """
    wanted = load_experiment(None, values).model_dump()
    kept = dict(values)
    for name in values:
        others = {key: value for key, value in kept.items() if key != name}
        try:
            if load_experiment(None, others).model_dump() == wanted:
                kept = others
        except UsageError:  # the others need it
            continue
    return kept


def write_yaml(experiment: Experiment) -> str:
    """Return the experiment file of an experiment, with what differs from the defaults."""
    values = drop_defaults(experiment.model_dump(mode="json", exclude_unset=True))
    for field in _LISTS:
        if field in values:
            values[field] = [_shorten(one) for one in values[field]]
    ordered = {name: values[name] for name in Experiment.model_fields if name in values}
    return HEAD + (dump_yaml(ordered) if ordered else "")


def _shorten(component: Mapping[str, Any]) -> Any:
    """Return a component as people write it."""
    name, kind, options = component["name"], component["kind"], component.get("options")
    if name == kind and not options:
        return name
    return {
        "name": name,
        **({} if name == kind else {"kind": kind}),
        **({"options": options} if options else {}),
    }


def _describe(experiment: Experiment, number: int, folder: Path) -> tuple[str, ...]:
    most = "At most " if experiment.until_decided else ""
    bots, turns = format_count(len(experiment.chatbots), "chatbot"), experiment.max_turns
    judges = format_count(len(experiment.detectors), "detector") if experiment.detectors else "no detector"
    where = experiment.base_url or "this machine, where hallulab starts it"
    held = f"{most}{format_count(number, 'conversation')}"
    return (
        f"{held} of {bots}, of at most {format_count(turns, 'turn')}, judged by {judges}.",
        f"The model is {experiment.model}, at {where}.",
        f"The run is written to a new folder in {folder}, named by the time.",
    )
