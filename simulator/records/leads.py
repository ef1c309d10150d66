"""Targets of texts in an experiment, by the kind that each field declares, and which a stranger may name.

A stranger (a page, a run folder) names what comes with hallulab and what a hub has: names. A path, code, and
texts whose target is unknown are the user's word alone.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel

from hallulab.agents.machine.weights import EMBEDDING_MODELS
from hallulab.agents.serving.catalogue import CATALOGUE
from hallulab.chatbots.guarded.policy import Part, list_built_in_policies
from hallulab.chatbots.registry import CHATBOTS, find_chatbot
from hallulab.detectors.base.protocol import Detector
from hallulab.detectors.registry import DETECTORS, find_detector
from hallulab.scenarios.components import LeadsTo, Target, is_code, read_options
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import is_there
from hallulab.scenarios.packs.pack_files import list_built_in_packs
from hallulab.scenarios.text.wording import render_one_line
from hallulab.simulator.records.agreement import require_agreement
from hallulab.simulator.records.experiment import Component, Experiment
from hallulab.simulator.records.recipients import UserWords, iterate_inner, list_asked, list_foreign

RUNNING_CODE = frozenset({"callable", "autogen"})
"""Kinds of chatbots that are other people's code."""

_READ: frozenset[str] = frozenset({"served", "embedding", "weights", "file", "policy"})
"""Targets that are read, and may be made to harm by whoever writes them."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)?")
"""A model's name at a server, or on the hub: `name` or `organisation/name`."""

_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Lead:
    """A text of an experiment that leads out of it."""

    field: str
    component: str
    """Name of the chatbot or detector whose option it is; empty: it is no option."""
    target: Target | Literal["unknown"]
    """Where it leads to; `unknown`: it is an option of other people's component, which declares no target."""
    value: str

    @property
    def is_harmless(self) -> bool:
        """True if a stranger may name it: it is a name of what comes with hallulab, or of what a hub has.

        Whom an address leads to is another question (`hallulab.simulator.records.recipients`).
        """
        match self.target:
            case "served":
                return self.value.lower() in CATALOGUE or _is_name(self.value)
            case "embedding":
                return self.value.lower() in EMBEDDING_MODELS or _is_name(self.value)
            case "weights":
                return _is_name(self.value)
            case "policy":
                return self.value in list_built_in_policies()
            case "pack":
                return self.value in list_built_in_packs()
            case "variable":
                return bool(_VARIABLE.fullmatch(self.value))
            case "address" | "header":
                return True
            case "file" | "code" | "unknown":
                return False


def list_leads(experiment: Experiment) -> list[Lead]:
    """Return what leads out of an experiment, without its components, in the order of its fields.

    A served model's name leads nowhere where an endpoint serves it. Nor do defaults, which are ours.
    """
    elsewhere = experiment.base_url is not None
    return [
        Lead(field, "", target, value)
        for field in Experiment.model_fields
        if field in experiment.model_fields_set and field not in ("chatbots", "detectors")
        for target, value in _walk_field(experiment, field, elsewhere)
    ]


def list_component_leads(field: str, component: Component) -> list[Lead]:
    """Return what leads out of a chatbot or a detector.

    Args:
        component: one of them.

    Raises:
        UsageError: there is no such component, or an option of it is unknown or wrong.
    """
    walked = _walk_part(field == "detectors", component.kind, component.options)
    return [Lead(field, component.name, target, value) for target, value in walked]


def list_leads_of_components(
    experiment: Experiment, chatbots: bool = True, known: Experiment | None = None
) -> list[Lead]:
    """Return what leads out of detectors, and of chatbots if they answer, but those of a known experiment.

    Raises:
        UsageError: see `list_component_leads`.
    """
    fields = ("chatbots", "detectors") if chatbots else ("detectors",)
    found: list[Lead] = []
    for field in fields:
        for component in getattr(experiment, field):
            if known is None or component not in getattr(known, field):
                with experiment.placing_errors(component):
                    found += list_component_leads(field, component)
    return found


def require_components_named(words: UserWords, experiment: Experiment, chatbots: bool) -> None:
    """Check that the user has named what other people's components ask, and what components read, or agrees.

    Args:
        chatbots: whether chatbots answer; else only detectors judge.

    Raises:
        UsageError: the user has not named one, and cannot be asked or says no.
    """
    words.require(experiment, list_foreign(experiment, chatbots))
    _require_named(words, list_leads_of_components(experiment, chatbots), chatbots)


def require_models_named(words: UserWords, experiment: Experiment, chatbots: bool) -> None:
    """Check that the user has named the endpoints and models of an experiment, or agrees.

    Arguments and errors as of `require_components_named`.
    """
    leads = list_leads(experiment)
    words.require(experiment, list_asked(experiment, chatbots))
    _require_named(words, leads, chatbots)


def _require_named(words: UserWords, leads: Sequence[Lead], chatbots: bool) -> None:
    """Check that the user has named each folder and file that is read as weights or as a policy, or agrees.

    Call this before any of them is read, and before anything is written. Which pack is read is not asked:
    documents and personas are data.

    Args:
        chatbots: whether chatbots answer; else what the user says of them does not count.

    Raises:
        UsageError: the user has not named one, and cannot be asked or says no.
    """
    named = {(lead.target, lead.value) for lead in list_leads(words.given)}
    named |= {(lead.target, lead.value) for lead in list_leads_of_components(words.given, chatbots)}
    lacking = [
        lead
        for lead in leads
        if lead.target in _READ and not lead.is_harmless and (lead.target, lead.value) not in named
    ]
    lines = list(dict.fromkeys(f"{render_one_line(lead.value)} is read" for lead in lacking))
    by_flag = "".join(f"--model {shlex.quote(lead.value)}, or " for lead in lacking if lead.field == "model")
    by_file = "an experiment file of your own that names it, in no run folder, with -c."
    require_agreement(words.source, lines, f"If you trust it, give {by_flag}{by_file}")


_Walked = Iterator[tuple[Target | Literal["unknown"], str]]


def _walk_part(judges: bool, kind: str, options: Mapping[str, Any]) -> _Walked:
    """Yield the targets and texts of a component's options; of code that it runs, its kind."""
    if is_code(kind) if judges else kind in RUNNING_CODE:
        yield "code", kind
        return
    schema = _find_schema(judges, kind)
    if schema is None:
        yield from (("unknown", text) for text in iterate_inner(options, str))
        return
    what = "detector" if judges else "chatbot"
    read = read_options(f"{what} {kind}", schema, options)
    for name in schema.model_fields:
        value = getattr(read, name)
        if isinstance(value, Part):
            yield from _walk_part(name == "detector", value.kind, value.options)
        elif name in read.model_fields_set:
            yield from _walk_field(read, name, elsewhere=False)


def _find_schema(judges: bool, kind: str) -> Any:
    """Return the class of a component's options; None: they are not known."""
    if not judges:
        find_chatbot(kind)
        return CHATBOTS[kind].OPTIONS if kind in CHATBOTS else None
    find_detector(kind)
    made = DETECTORS.get(kind)
    return made.OPTIONS if isinstance(made, type) and issubclass(made, Detector) else None


def _walk_field(owner: BaseModel, name: str, elsewhere: bool) -> _Walked:
    """Yield the targets and texts of a field, and of the models in it, which may be served elsewhere."""
    field = type(owner).model_fields[name]
    marks = [*field.metadata, *_list_marks(field.annotation)]
    target = next((mark.target for mark in marks if isinstance(mark, LeadsTo)), None)
    value = getattr(owner, name)
    if target is None:
        for inner in iterate_inner(value, BaseModel):
            there = elsewhere or getattr(inner, "base_url", None) is not None
            for part in inner.model_fields_set & type(inner).model_fields.keys():
                yield from _walk_field(inner, part, there)
    elif not (target == "served" and elsewhere):
        yield from ((target, text) for text in iterate_inner(value, str))


def _list_marks(annotation: Any) -> Iterator[object]:
    if get_origin(annotation) is Annotated:
        yield from get_args(annotation)[1:]
    for part in get_args(annotation):
        yield from _list_marks(part)


def _is_name(text: str) -> bool:
    """Return whether a model's name is one, and no folder or file of this machine has it."""
    try:
        return bool(_NAME.fullmatch(text)) and not is_there(Path(text))
    except UsageError:  # it is too long, or in a folder that may not be read
        return False
