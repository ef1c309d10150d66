"""The experiment of a live conversation, out of a file and flags."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.options.commands import ChatOptions
from hallulab.simulator.options.groups import Chosen, ModelOptions
from hallulab.simulator.records.experiment import Component, Experiment
from hallulab.simulator.records.experiment_file import load_experiment


def load_live_experiment(
    options: ModelOptions,
    scenario: str | None = None,
    chatbots: Sequence[Chosen] | None = None,
    detectors: Sequence[Chosen] | None = None,
) -> Experiment:
    """Return the experiment of an experiment file, with the flags that were given over it.

    A chatbot or detector is found by the name that the file gives it, else by its kind.

    Args:
        options: the models, and the file.
        scenario: replaces the file's; None: it stays, as for the others.
        chatbots: those to talk to.
        detectors: the judges.

    Raises:
        UsageError: the file or a flag is at fault.
    """
    path: Path | None = options.config_path
    file = load_experiment(path, {**options.collect_model_fields(), "scenario": scenario})
    answering, judging = file.chatbots, file.detectors
    if chatbots is not None:
        answering = _find("chatbots", chatbots, answering)
    if detectors is not None:
        judging = _find("detectors", detectors, judging)
    chosen = file.model_copy(update={"chatbots": answering, "detectors": judging})
    return chosen.with_places_of(file)


def load_terminal_experiment(options: ChatOptions) -> Experiment:
    """Return the experiment of `hallulab chat`, with the one chatbot that is talked to.

    Raises:
        UsageError: as `load_live_experiment`, or several chatbots are named.
    """
    if options.chatbots is not None and len(options.chatbots) != 1:
        raise UsageError("--chatbots: you talk to one at a time. Give one name.")
    experiment = load_live_experiment(options, options.scenario, options.chatbots, options.detectors)
    first = experiment.model_copy(update={"chatbots": experiment.chatbots[:1]})
    return first.with_places_of(experiment)


def _find(field: str, names: Sequence[Chosen], known: Sequence[Component]) -> tuple[Component, ...]:
    by_name = {one.name: one.model_dump() for one in known}
    given = [by_name.get(name, name) if isinstance(name, str) else name for name in names]
    found = load_experiment(None, {field: given})
    return found.chatbots if field == "chatbots" else found.detectors
