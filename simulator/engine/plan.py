"""List the conversations of an experiment."""

from __future__ import annotations

import random
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hallulab.agents.models.model import DEFAULT_MODEL
from hallulab.agents.users.personas import draw_manner, find_manner
from hallulab.scenarios.attacks.attack import UserOrder, draw_user_order, hash_attack
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.packs.pack import Persona, Scenario
from hallulab.scenarios.text.languages import ENGLISH
from hallulab.simulator.engine.conversation import ConversationKey, GivenMessage
from hallulab.simulator.records.experiment import Component, Experiment
from hallulab.simulator.records.makers import ComponentVersions, identify_makers

MOST_CONVERSATIONS = 1_000_000
"""Most conversations of one experiment. At a tenth of a second each they take a day."""


@dataclass(frozen=True)
class Job:
    """A conversation to be held."""

    key: ConversationKey
    user: Persona | GivenMessage
    """The user: a persona to simulate, or the only message."""
    chatbot: Component
    order: UserOrder | None = None
    """An order that the user gives the chatbot, see `Attack.user_injections`."""

    def most_turns(self, max_turns: int) -> int:
        """Return after how many replies the conversation is stopped: a script comes to its own end."""
        scripted = self.user.messages if isinstance(self.user, Persona) else ()
        return len(scripted) + 1 if scripted else max_turns


class Plan(Protocol):
    """The conversations of an experiment, made each time that they are asked for."""

    def __len__(self) -> int:
        """Return their number."""
        ...

    def __iter__(self) -> Iterator[Job]:
        """Yield them; those of one user come one after the other."""
        ...


class _ExperimentPlan:
    def __init__(self, experiment: Experiment, scenario: Scenario, made_by: ComponentVersions) -> None:
        self._experiment, self._scenario, self._made_by = experiment, scenario, made_by

    def __len__(self) -> int:
        return count_users(self._experiment, self._scenario) * len(self._experiment.chatbots)

    def __iter__(self) -> Iterator[Job]:
        return _build_jobs(self._experiment, self._scenario, self._made_by)


def plan(experiment: Experiment, scenario: Scenario, made_by: ComponentVersions | None = None) -> Plan:
    """Return all conversations of the experiment, user by user, so that pairs are complete early.

    Args:
        made_by: who makes them; None: `identify_makers`, with models identified by their names.

    Raises:
        UsageError: like `check_plan` and `identify_makers`.
    """
    check_plan(experiment, scenario)
    return _ExperimentPlan(experiment, scenario, made_by or identify_makers(experiment))


def check_plan(experiment: Experiment, scenario: Scenario) -> None:
    """Check that the experiment can be planned.

    Raises:
        UsageError: a persona does not exist, or there are more conversations than `MOST_CONVERSATIONS`.
    """
    personas, chatbots = len(select_personas(experiment, scenario)), len(experiment.chatbots)
    wanted = count_users(experiment, scenario) * chatbots
    if wanted <= MOST_CONVERSATIONS:
        return
    if experiment.count is not None:
        made_of, lower = f"{experiment.count:,} × {chatbots} (users, chatbots)", "`count`"
    else:
        made_of = f"{personas} × {chatbots} × {experiment.repeats} (personas, chatbots, repeats)"
        lower = "`repeats` or `limit`"
    raise UsageError(
        f"{made_of} are {wanted:,} conversations, and one experiment has at most {MOST_CONVERSATIONS:,}. "
        f"Lower {lower}."
    )


def count_users(experiment: Experiment, scenario: Scenario) -> int:
    """Return how many users talk with each chatbot."""
    personas = len(select_personas(experiment, scenario))
    return personas * experiment.repeats if experiment.count is None else experiment.count if personas else 0


def enumerate_seeds(experiment: Experiment, scenario: Scenario) -> range:
    """Return the seeds of the experiment's users."""
    personas = len(select_personas(experiment, scenario))
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


def _build_jobs(experiment: Experiment, scenario: Scenario, made_by: ComponentVersions) -> Iterator[Job]:
    chatbot_model = get_model_name(experiment, "chatbot")
    shared = {
        "scenario": compute_scenario_version(scenario),
        "turns": [experiment.min_turns, experiment.max_turns],
        **reply_settings(experiment),
    }
    if experiment.attack is not None:  # without one, identifiers are those of before there were attacks
        shared["attack"] = hash_attack(experiment.attack)
    if (language := choose_language(experiment, scenario)) is not None:
        shared["language"] = language
    for persona, seed in enumerate_users(experiment, scenario):
        order = _order(experiment, persona, seed)
        manner = None if persona.messages else draw_manner(experiment.manners, persona.id, seed)
        spoken = {} if manner is None else {"manner": [manner, find_manner(manner).model_dump(mode="json")]}
        played_by = experiment.served_name(draw_user_model(experiment, persona.id, seed))
        for bot in experiment.chatbots:
            version = made_by.version(bot.name)
            identity = {
                **shared,
                **spoken,
                "models": [played_by, chatbot_model],
                "made_by": version,
                "persona": persona.described(),
                "chatbot": bot.name,
                "seed": seed,
            }
            key = ConversationKey(
                digest(identity)[:16],
                scenario.name,
                persona.id,
                bot.name,
                chatbot_model,
                seed,
                version,
                manner=manner,
                user_model=played_by if experiment.user and not persona.messages else None,
            )
            yield Job(key, persona, bot, order)


def _order(experiment: Experiment, persona: Persona, seed: int) -> UserOrder | None:
    attack = experiment.attack
    if attack is None:
        return None
    return draw_user_order(attack.user_injections, attack.seed, experiment.min_turns, persona.id, seed)


def reply_settings(experiment: Experiment) -> dict[str, Any]:
    """Return the settings that decide replies and belong to no chatbot."""
    return {
        "reply_tokens": experiment.reply_tokens,
        "retrieval": [experiment.top_k, experiment.embedding_model],
    }


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
                f"scenario {scenario.name} has no persona {unknown[0]!r}; "
                f"`hallulab list personas --scenario {shlex.quote(str(experiment.scenario))}` shows them."
            )
        personas = tuple(by_id[name] for name in experiment.personas)
    return personas[: experiment.limit]


def get_model_name(experiment: Experiment, role: str) -> str:
    """Return the served name of the model that plays `role` (`chatbot` or `detector`)."""
    return experiment.served_name(experiment.roles.get(role, DEFAULT_MODEL))


def draw_user_model(experiment: Experiment, persona: str, seed: int) -> str:
    """Return which of `Experiment.user_models` plays a user, whichever chatbot that talks with."""
    names = experiment.user_models
    return draw_manner(names, persona, seed) or names[0]


def compute_scenario_version(scenario: Scenario) -> str:
    """Hash a pack's content without its licence, and without its personas, which are hashed one by one.

    The language is hashed where it is written (`choose_language`).
    """
    return digest(scenario.model_dump(mode="json", exclude={"personas", "licence", "language"}))[:16]


def choose_language(experiment: Experiment, scenario: Scenario) -> str | None:
    """Return the language that users write: the experiment's, else the pack's; None: English."""
    chosen = experiment.language or scenario.language
    return None if chosen == ENGLISH else chosen
