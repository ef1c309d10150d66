"""Choices that an experiment makes of its pack: personas, seeds, language, and who plays whom."""

from __future__ import annotations

import random
import shlex
from collections.abc import Iterator, Sequence
from typing import cast

from hallulab.agents.models.model import DEFAULT_MODEL
from hallulab.agents.serving.catalogue import DEFAULT_CPU_MODEL
from hallulab.agents.users.personas import draw_manner
from hallulab.scenarios.attacks.falsehoods import choose_pressure
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.near_names import suggest_name
from hallulab.scenarios.packs.pack import Persona, Scenario
from hallulab.scenarios.text.languages import ENGLISH
from hallulab.scenarios.transcript import Pressure, PressureKind
from hallulab.simulator.records.experiment import Experiment


def select_personas(experiment: Experiment, scenario: Scenario) -> Sequence[Persona]:
    """Return the personas that `personas` and `limit` select.

    Raises:
        UsageError: one of `personas` is not in the pack.
    """
    personas = scenario.personas
    if experiment.personas is not None:
        by_id = {persona.id: persona for persona in scenario.personas}
        unknown = [name for name in experiment.personas if name not in by_id]
        if unknown:
            raise UsageError(
                f"scenario {scenario.name} has no persona {unknown[0]!r}{suggest_name(unknown[0], by_id)}; "
                f"`hallulab list personas --scenario {shlex.quote(str(experiment.scenario))}` shows them."
            )
        personas = tuple(by_id[name] for name in experiment.personas)
    return personas[: experiment.limit]


def count_users(experiment: Experiment, scenario: Scenario) -> int:
    """Return how many users talk with each chatbot."""
    personas = len(select_personas(experiment, scenario))
    return personas * experiment.repeats if experiment.count is None else experiment.count if personas else 0


def enumerate_seeds(experiment: Experiment, scenario: Scenario) -> range:
    """Return the seeds of the experiment's users."""
    personas = len(select_personas(experiment, scenario))
    # Rounded up: with the last seed, some personas may not be drawn.
    repeats = experiment.repeats if experiment.count is None else -(-experiment.count // max(1, personas))
    return range(experiment.seed, experiment.seed + repeats)


def enumerate_users(experiment: Experiment, scenario: Scenario) -> Iterator[tuple[Persona, int]]:
    """Yield the users of the experiment: a persona and a seed each.

    They come persona by persona. With `count`, they are drawn: seed by seed, all personas in an order drawn
    from the seed. So each persona has as many users as another, or one more, and a larger count only adds.
    """
    personas = select_personas(experiment, scenario)
    if experiment.count is None:
        for persona in personas:
            for seed in enumerate_seeds(experiment, scenario):
                yield persona, seed
        return
    left = experiment.count
    for seed in enumerate_seeds(experiment, scenario):
        drawn = random.Random(seed).sample(personas, len(personas))  # noqa: S311 - a seeded choice of data
        for persona in drawn[:left]:
            yield persona, seed
        left -= len(drawn)


def get_model_name(experiment: Experiment, role: str) -> str:
    """Return the served name of the model that plays `role` (`chatbot` or `detector`)."""
    return experiment.served_name(experiment.roles.get(role, DEFAULT_MODEL))


def draw_user_model(experiment: Experiment, persona: str, seed: int) -> str:
    """Return which of `Experiment.user_models` plays a user, whichever chatbot that talks with."""
    names = experiment.user_models
    # The same draw as of manners; there is always a name, which its type does not say.
    return draw_manner(names, persona, seed) or names[0]


def draw_pressure(experiment: Experiment, scenario: Scenario, persona: Persona, seed: int) -> Pressure | None:
    """Draw how a user presses, and for what, whichever chatbot it talks with; None: it does not press."""
    kind = None if persona.messages else draw_manner(experiment.pressure, persona.id, seed)
    if kind is None:
        return None
    # It is one of these kinds, which the type of the draw does not say.
    return choose_pressure(cast(PressureKind, kind), scenario.documents, persona, seed)


def require_falsehoods(experiment: Experiment, scenario: Scenario) -> None:
    """Check that the documents have what users press for.

    Raises:
        UsageError: they have nothing for a kind of `pressure`.
    """
    for kind in experiment.pressure if scenario.personas else ():
        if choose_pressure(kind, scenario.documents, scenario.personas[0], experiment.seed) is None:
            why = (
                "they have a word about each of the details that such a user asks for"
                if kind == "crescendo"
                else "rules can make none of their sentences false, and know English only"
            )
            raise UsageError(
                f"field `pressure`: for {kind!r}, the documents of {scenario.name} have nothing to press "
                f"for: {why}. Leave this kind out."
            )


def compute_scenario_version(scenario: Scenario) -> str:
    """Hash a pack's content without its licence, and without its personas, which are hashed one by one.

    The language is hashed where it is written (`choose_language`).
    """
    return digest(scenario.model_dump(mode="json", exclude={"personas", "licence", "language"}))[:16]


def choose_language(experiment: Experiment, scenario: Scenario) -> str | None:
    """Return the language that users write: the experiment's, else the pack's; None: English."""
    chosen = experiment.language or scenario.language
    return None if chosen == ENGLISH else chosen


def ensure_model(experiment: Experiment) -> Experiment:
    """Return the experiment with a model: its own, or the default one if hallulab serves it.

    Raises:
        UsageError: an endpoint is given but not the model's name.
    """
    if experiment.model is not None:
        return experiment
    if experiment.base_url is not None:
        raise UsageError(f"name the model that {experiment.base_url} serves with --model.")
    return experiment.model_copy(update={"model": DEFAULT_CPU_MODEL})
