"""Read an experiment file, with flags over it, and write one.

Flags win over the file, the file over defaults.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from hallulab.agents.serving.catalogue import CATALOGUE
from hallulab.scenarios.components import is_code
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import (
    choose_main_error,
    explain_error,
    render_complaint,
    suggest_key,
)
from hallulab.scenarios.files.json_text import find_unwritable
from hallulab.scenarios.files.yaml_text import YamlText, dump_yaml, read_yaml
from hallulab.scenarios.packs.pack_files import locate_pack
from hallulab.simulator.records.experiment import ALL_CHATBOTS, Component, Experiment, choose_concurrency
from hallulab.simulator.records.experiment_fields import join_deciding
from hallulab.simulator.records.recipients import UserWords, find_run_folder, list_recipients

_SCHEMA = "docs/experiment.md"


def put_over(values: Mapping[str, Any], newer: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of an experiment with newer ones over them.

    `base_url` and `base_urls` say the same thing, so either replaces both; an empty one replaces nothing.
    Of `until_decided`, fields that the newer one lacks stay.
    """
    endpoints = {"base_url", "base_urls"}
    replaced = endpoints if any(newer.get(name) for name in endpoints) else set()
    kept = {name: value for name, value in values.items() if name not in replaced}
    return {**kept, **newer, **join_deciding(values, newer)}


def load_experiment(path: Path | None, flags: Mapping[str, Any]) -> Experiment:
    """Read an experiment file and put the flags that were given (not None) over it.

    A model of the catalogue may have other defaults than `Experiment`'s (`CatalogueModel.experiment`).
    A file in a run folder may be a stranger's: whom it names and the flags do not is asked only if the user
    agrees (`hallulab.simulator.records.recipients`).

    >>> load_experiment(None, {"model": "smollm2-135m"}).max_turns
    2

    Raises:
        UsageError: the file is missing, empty, malformed or has a wrong field, or the user does not agree.
    """
    experiment = load_unchecked(path, flags)
    if path is not None and find_run_folder(path) is not None:
        if not flags.get("detectors"):
            refuse_code(path, experiment.detectors)
        if not flags.get("chatbots"):
            refuse_others(path, experiment.chatbots)
        UserWords(load_unchecked(None, flags), path).require(experiment, list_recipients(experiment))
    return experiment


def refuse_code(place: Path, detectors: Iterable[Component]) -> None:
    """Refuse detectors that are code to import: nobody but a run folder, perhaps a stranger's, names them.

    Raises:
        UsageError: one is.
    """
    for one in detectors:
        if is_code(one.kind):
            raise UsageError(
                f"{place}: its detector {one.name!r} is other people's code ({one.kind}), which a run folder "
                "alone does not start. Name the detectors that judge with --detectors."
            )


def refuse_others(place: Path, chatbots: Iterable[Component]) -> None:
    """Refuse chatbots that are not ours, which could be any program, if only a run folder names them.

    Raises:
        UsageError: one is.
    """
    for bot in chatbots:
        if bot.kind not in ALL_CHATBOTS:
            raise UsageError(
                f"{place}: its chatbot {bot.name!r} is other people's code or service ({bot.kind}), which "
                "a run folder alone does not start. Name it in an experiment file outside any run folder, "
                "given with -c, or leave it out with --chatbots."
            )


def load_unchecked(path: Path | None, flags: Mapping[str, Any]) -> Experiment:
    """Do as `load_experiment`, for callers that check themselves whom the user has named."""
    return build_experiment(None if path is None else read_yaml(path, _SCHEMA, given=True), path, flags)


def build_experiment(text: YamlText | None, path: Path | None, flags: Mapping[str, Any]) -> Experiment:
    """Do as `load_unchecked` with the text of an experiment file, which errors call `path`."""
    if text is not None and not text.data:
        raise UsageError(
            f"{path} is empty. Name in it what to run ({_SCHEMA}), or leave it out for the defaults."
        )
    given = {name: value for name, value in flags.items() if value is not None}
    flaw = find_unwritable(given)
    if flaw is not None:
        raise UsageError(f"field `{'.'.join(map(str, flaw[0]))}`: {flaw[1]}. Correct it.")
    if text is not None and (path is None or find_run_folder(path) is None):
        given |= {field: _choose_own(text.data.get(field), given[field]) for field in _LISTS & given.keys()}
    values = put_over(text.data if text else {}, given)
    known = CATALOGUE.get(str(values.get("model")).lower())
    try:
        experiment = Experiment.model_validate({**(known.experiment if known else {}), **values})
    except ValidationError as error:
        raise place_error(error, text, path, given, _SCHEMA, Experiment) from error
    place = _find_true_number(values, experiment.model_dump())
    if place is not None:
        sentence = f"must be a number, not true or false. Correct it; see {_SCHEMA}."
        if text is not None and place[0] not in given:
            raise text.error(place, sentence)
        raise UsageError(f"field `{'.'.join(map(str, place))}`: {sentence}")
    if text is not None:
        experiment = experiment.with_places(
            tuple(
                (component, text.place((field, number)))
                for field in text.data.keys() & {"chatbots", "detectors"} - given.keys()
                for number, component in enumerate(getattr(experiment, field))
            )
        )
    if "scenario" not in experiment.model_fields_set:
        return experiment
    beside = None if path is None or "scenario" in given else path.parent
    found = experiment.model_copy(update={"scenario": locate_pack(experiment.scenario, beside)})
    return found.with_places_of(experiment)


def _find_true_number(given: Any, read: Any) -> tuple[int | str, ...] | None:
    """Return the place of a `true` or `no` that was read as 1 or 0; None: there is none."""
    if isinstance(given, bool):
        return () if type(read) in (int, float) else None
    if isinstance(given, Mapping) and isinstance(read, Mapping):
        steps: Iterable[int | str] = given.keys() & read.keys()
    elif isinstance(given, list | tuple) and isinstance(read, list | tuple):
        steps = range(min(len(given), len(read)))
    else:
        return None
    found = ((step, _find_true_number(given[step], read[step])) for step in steps)
    return next(((step, *inner) for step, inner in found if inner is not None), None)


_LISTS = frozenset({"chatbots", "detectors"})


def _choose_own(listed: Any, names: Any) -> list[Any]:
    """Replace names that a file gives to components of another kind by these components."""
    own = {
        one["name"]: one
        for one in (listed if isinstance(listed, list) else [])
        if isinstance(one, dict) and isinstance(one.get("name"), str) and one.get("kind") is not None
    }
    return [own.get(name, name) if isinstance(name, str) else name for name in names]


def write_yaml(experiment: Experiment) -> str:
    """Return the experiment file of an experiment: what differs from the defaults."""
    known = CATALOGUE.get(str(experiment.model).lower())
    others = set(known.experiment) if known else set()  # defaults that the model changes
    values = experiment.model_dump(mode="json", exclude_defaults=True)
    values |= experiment.model_dump(mode="json", include=others)
    chosen = choose_concurrency(dict(experiment))  # it depends on other fields, so pydantic knows no default
    if values["concurrency"] == chosen:
        del values["concurrency"]
    return dump_yaml(values) if values else ""


def place_error(
    error: ValidationError,
    text: YamlText | None,
    path: Path | None,
    given: Container[str],
    schema: str,
    model: type[BaseModel],
) -> UsageError:
    """Return the first mistake in a file's fields with flags over them: with its line, unless it is a flag's.

    Args:
        text: the file; None: there is none.
        given: names of the fields that flags gave.
        schema: the page that describes the file.
        model: what the fields are read as.
    """
    first = choose_main_error(error)
    if text is not None and first["loc"] and first["loc"][0] not in given:
        return text.error(first["loc"], render_complaint(first, schema, model))
    where = f"{path}: " if path is not None and not first["loc"] else ""
    return UsageError(where + describe(error, model))


def describe(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    """Describe the first mistake of a pydantic error in one sentence with the field's path.

    Args:
        model: what a person wrote the fields for, to name the one that was meant; None: a program wrote them.
    """
    first = choose_main_error(error)
    field = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        near = "" if model is None else suggest_key(model, first["loc"])
        return f"unknown field `{field}`{near}. Remove it or correct its spelling."
    sentence = f"{explain_error(first)}."
    return f"field `{field}`: {sentence}" if field else sentence


def describe_flaw(path: Path, number: int, error: ValidationError) -> str:
    """Say what is wrong with a line."""
    return f"{path}, line {number}: {describe(error)} Correct or delete the line."
