"""What may be started from a page: built-in scenarios, registered components, and the user's own file.

A page is a program that others may have written into. So it may choose among what runs no code of its
choice, and what runs code comes from the experiment file on the command line alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hallulab.agents.models.model import DEFAULT_MODEL
from hallulab.chatbots.registry import list_chatbot_names, read_chatbot_options
from hallulab.detectors.registry import list_detector_names
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.chat.command import load_live_experiment
from hallulab.simulator.options.groups import ModelOptions
from hallulab.simulator.records.experiment import Component, Experiment
from hallulab.simulator.records.leads import RUNNING_CODE, Lead, list_component_leads, list_leads
from hallulab.simulator.records.recipients import collect_endpoints
from hallulab.simulator.viewer.form import FormError
from hallulab.simulator.viewer.places import choose_folder, list_scenarios

_BRIEF = 100
"""Characters of a text that a sentence shows."""

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
    own = {(lead.target, lead.value) for lead in list_leads(known)}
    found = [lead for lead in list_leads(experiment) if (lead.target, lead.value) not in own]
    for field in ("chatbots", "detectors"):
        for component in getattr(experiment, field):
            if component not in getattr(known, field):
                try:
                    found += list_component_leads(field, component)
                except UsageError as error:
                    raise FormError(field, str(error)) from error
    for lead in found:
        if not lead.is_harmless:
            raise FormError(lead.field, _explain(lead))


def require_key(experiment: Experiment) -> None:
    """Check that the key of the experiment's endpoint is in the environment.

    Raises:
        FormError: it is not.
    """
    if experiment.base_url is None:
        return
    try:
        collect_endpoints(experiment)[DEFAULT_MODEL].read_credentials()
    except UsageError as error:
        raise FormError("api_key_env", f"{error} Then start the viewer again.") from error


def _is_ready(kind: str) -> bool:
    """Return whether a chatbot needs no options and may be started from a page."""
    try:
        read_chatbot_options(kind, {})
    except UsageError:
        return False
    return kind not in RUNNING_CODE


def _explain(lead: Lead) -> str:
    """Say in a sentence why a page does not start what leads somewhere."""
    said = repr(lead.value if len(lead.value) <= _BRIEF else f"{lead.value[:_BRIEF]}…")
    match lead.target:
        case "variable":
            return "this is no name of an environment variable. Give its name, never the key."
        case "pack":
            return f"this page starts no pack of another folder. {_FROM_FILE}"
        case "code":
            return f"{lead.component} runs code of yours, which no page may start. {_FROM_FILE}"
        case "unknown":
            return f"{lead.component}: nobody knows what the option {said} leads to. {_FROM_FILE}"
    if lead.component:
        return f"{lead.component}: an option is a path, {said}. {_FROM_FILE}"
    return f"this page loads no model from a folder, {said}. {_FROM_FILE}"
