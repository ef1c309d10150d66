"""From an experiment to the conversations it consists of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agents.users.user import user_version
from chatbots.registry import chatbot_version
from scenarios.errors import UsageError
from scenarios.files.digest import digest
from scenarios.packs.pack import Persona, Scenario
from simulator.experiment.config import Component, Experiment
from simulator.experiment.conversation import ConversationKey

MOST_CONVERSATIONS = 100_000
"""Conversations of one experiment. At a second each they take a day; what is planned is held in memory."""


@dataclass(frozen=True)
class Job:
    """A conversation to be held."""

    key: ConversationKey
    """What it is."""
    persona: Persona
    """Who the user is."""
    chatbot: Component
    """Who answers."""


def plan(experiment: Experiment, scenario: Scenario) -> list[Job]:
    """All conversations of the experiment, persona by persona, so that pairs are complete early.

    Raises:
        UsageError: a persona or chatbot does not exist, or there are more than `MOST_CONVERSATIONS`.
    """
    personas, chatbots = len(chosen_personas(experiment, scenario)), len(experiment.chatbots)
    wanted = personas * chatbots * experiment.repeats
    if wanted > MOST_CONVERSATIONS:
        raise UsageError(
            f"{personas} × {chatbots} × {experiment.repeats} (personas, chatbots, repeats) are {wanted:,} "
            f"conversations, and one experiment has at most {MOST_CONVERSATIONS:,}. Lower `repeats` or "
            "`limit`."
        )
    return list(_jobs(experiment, scenario))


def _jobs(experiment: Experiment, scenario: Scenario) -> Iterator[Job]:
    user_model, chatbot_model = model_name(experiment, "user"), model_name(experiment, "chatbot")
    shared = {
        "scenario": scenario_version(scenario),
        "user": [user_version(), user_model, experiment.min_turns, *_limit(experiment)],
        "model": chatbot_model,
        "turns": experiment.max_turns,
        "retrieval": [experiment.top_k, experiment.embedding_model],
    }
    versions = {}
    for bot in experiment.chatbots:
        with experiment.placing_errors(bot):
            versions[bot.name] = chatbot_version(bot.kind, experiment.options_of(bot))
    for persona in chosen_personas(experiment, scenario):
        for seed in range(experiment.seed, experiment.seed + experiment.repeats):
            for bot in experiment.chatbots:
                identity = {
                    **shared,
                    "persona": persona.model_dump(mode="json"),
                    "chatbot": [bot.name, versions[bot.name]],
                    "seed": seed,
                }
                key = ConversationKey(
                    digest(identity)[:16], scenario.name, persona.id, bot.name, chatbot_model, seed
                )
                yield Job(key, persona, bot)


def chosen_personas(experiment: Experiment, scenario: Scenario) -> Sequence[Persona]:
    """The personas that `personas` and `limit` leave.

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
                f"`hallulab list personas --scenario {scenario.name}` shows them."
            )
        personas = tuple(by_id[name] for name in experiment.personas)
    return personas[: experiment.limit]


def model_name(experiment: Experiment, role: str) -> str:
    """The served name of the model that plays `role` (`user`, `chatbot` or `detector`)."""
    named = experiment.roles.get(role)
    return experiment.models[named].model if named else experiment.model or ""


def scenario_version(scenario: Scenario) -> str:
    """Hash of a pack's content without its personas, which count one by one."""
    return digest(scenario.model_dump(mode="json", exclude={"personas"}))[:16]


def _limit(experiment: Experiment) -> list[int]:
    """What the experiment sets of the length of messages; runs without it keep the keys they had."""
    return [] if experiment.reply_tokens is None else [experiment.reply_tokens]
