"""List the conversations of an experiment: from their beginning, or branching off from a finished run's.

In fixed-prefix mode (docs/fixed-prefix.md) all chatbots get the same history and the same message of the
user, and each gives one reply. So what differs between the replies is the chatbot's doing, and not that of
the way a conversation took.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hallulab.agents.users.personas import draw_manner, find_manner
from hallulab.chatbots.registry import collect_instructions
from hallulab.scenarios.attacks.attack import (
    AttackRecord,
    UserOrder,
    apply_attack,
    draw_user_order,
    hash_attack,
)
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.near_names import suggest_name
from hallulab.scenarios.packs.pack import Persona, Scenario
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.text.wording import format_count
from hallulab.scenarios.transcript import Branch, Conversation, Pairing, Turn
from hallulab.simulator.engine.conversation import ConversationKey, GivenMessage
from hallulab.simulator.records.choices import (
    choose_language,
    compute_scenario_version,
    count_users,
    draw_pressure,
    draw_user_model,
    enumerate_users,
    get_model_name,
    require_falsehoods,
    select_personas,
)
from hallulab.simulator.records.experiment import Component, Experiment
from hallulab.simulator.records.experiment_json import BranchedFrom, ComponentVersions
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journals import Journals
from hallulab.simulator.records.provenance import identify_makers

MOST_CONVERSATIONS = 1_000_000
"""Most conversations of one experiment. At a tenth of a second each they take a day."""


@dataclass(frozen=True)
class Job:
    """A conversation to be simulated."""

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


def plan(
    experiment: Experiment,
    scenario: Scenario,
    made_by: ComponentVersions | None = None,
    branching: Branching | None = None,
) -> Plan:
    """Return all conversations of the experiment, user by user, so that pairs are complete early.

    Args:
        made_by: who makes them; None: `identify_makers`, with models identified by their names.
        branching: where they branch off from a finished run; None: they begin at their beginning.

    Raises:
        UsageError: like `check_plan` and `identify_makers`.
    """
    made_by = made_by or identify_makers(experiment)
    if branching is None:
        check_plan(experiment, scenario)
        return _ExperimentPlan(experiment, scenario, made_by)
    return branch_jobs(branching.prefixes, experiment, scenario, made_by)


def load_attacked(experiment: Experiment) -> tuple[Scenario, AttackRecord | None]:
    """Load the experiment's scenario, with its attack; and what was planted, None without an attack.

    Raises:
        UsageError: like `load_scenario` and `apply_attack`.
    """
    scenario = load_scenario(experiment.scenario)
    if experiment.attack is None:
        return scenario, None
    scenario, planted = apply_attack(scenario, experiment.attack)
    known = {bot.name: collect_instructions(bot.kind, bot.options) for bot in experiment.chatbots}
    return scenario, planted.model_copy(update={"instructions": known})


def check_plan(experiment: Experiment, scenario: Scenario) -> None:
    """Check that the experiment can be planned.

    Raises:
        UsageError: a persona does not exist, there are more conversations than `MOST_CONVERSATIONS`, or the
            documents have no falsehood for `pressure`.
    """
    require_falsehoods(experiment, scenario)
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


def _build_jobs(experiment: Experiment, scenario: Scenario, made_by: ComponentVersions) -> Iterator[Job]:
    chatbot_model = get_model_name(experiment, "chatbot")
    shared = {
        "scenario": compute_scenario_version(scenario),
        "turns": [experiment.min_turns, experiment.max_turns],
        **_get_reply_settings(experiment),
    }
    if experiment.attack is not None:  # without one, identifiers are those of before there were attacks
        shared["attack"] = hash_attack(experiment.attack)
    if (language := choose_language(experiment, scenario)) is not None:
        shared["language"] = language
    for persona, seed in enumerate_users(experiment, scenario):
        order = None
        if (attack := experiment.attack) is not None:
            given = attack.user_injections
            order = draw_user_order(given, attack.seed, experiment.min_turns, persona.id, seed)
        pressure = draw_pressure(experiment, scenario, persona, seed)
        own_manner = persona.messages or pressure
        manner = None if own_manner else draw_manner(experiment.manners, persona.id, seed)
        pressed = {} if pressure is None else {"pressure": pressure.model_dump(mode="json")}
        spoken = {} if manner is None else {"manner": [manner, find_manner(manner).model_dump(mode="json")]}
        played_by = experiment.served_name(draw_user_model(experiment, persona.id, seed))
        for bot in experiment.chatbots:
            version = made_by.version(bot.name)
            identity = {
                **shared,
                **spoken,
                **pressed,
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
                pressure=pressure,
            )
            yield Job(key, persona, bot, order)


REPLIES = 1
"""Replies of a branched conversation."""


def _get_reply_settings(experiment: Experiment) -> dict[str, Any]:
    """Return the settings that decide replies and belong to no chatbot."""
    return {
        "reply_tokens": experiment.reply_tokens,
        "retrieval": [experiment.top_k, experiment.embedding_model],
    }


@dataclass(frozen=True)
class PrefixSource:
    """Where conversations branch off."""

    chatbot: str
    conversations: Sequence[Conversation]
    """These conversations; no two have the same persona and seed."""
    turns: frozenset[int] | None
    """Turns that are repeated; None: all."""

    def branches(self) -> list[tuple[Conversation, Turn]]:
        """Return the turns that are repeated, each with its conversation."""
        return [
            (conversation, turn)
            for conversation in self.conversations
            for turn in conversation.turns
            if self.turns is None or turn.index in self.turns
        ]

    def identity(self) -> dict[str, str]:
        """Return what must not change while a folder with branches grows: hashes of the texts given."""
        texts = {
            f"conversation with persona {one.persona}, seed {one.seed}": digest(
                [one.id, [[turn.user, turn.reply] for turn in one.turns]]
            )[:16]
            for one in self.conversations
        }
        return {"the chatbot that is branched off from": self.chatbot, **texts}


def branch_jobs(
    prefixes: PrefixSource, experiment: Experiment, scenario: Scenario, made_by: ComponentVersions
) -> list[Job]:
    """Return a conversation for every branch and chatbot, branch by branch, so that pairs are complete early.

    The seed is that of the earlier conversation, so its own chatbot is asked the same again.
    """
    model = get_model_name(experiment, "chatbot")
    shared = {
        "scenario": compute_scenario_version(scenario),
        "model": model,
        **_get_reply_settings(experiment),
    }
    attack = experiment.attack
    if attack is not None and attack.retrieval is not None:  # the scenario shows what is done to documents
        shared["attack"] = hash_attack(attack)
    jobs = []
    for conversation, turn in prefixes.branches():
        branch = Branch(
            conversation=conversation.id,
            turn=turn.index,
            history=conversation.history(turn.index),
            passages=tuple(conversation.list_passages(turn.index)),
        )
        for bot in experiment.chatbots:
            version = made_by.version(bot.name)
            identity = {
                **shared,
                "made_by": version,
                "chatbot": bot.name,
                "seed": conversation.seed,
                "branch": branch.model_dump(mode="json", exclude={"passages"}),
                "message": turn.user,
            }
            key = ConversationKey(
                digest(identity)[:16],
                conversation.scenario,
                conversation.persona,
                bot.name,
                model,
                conversation.seed,
                version,
                branch,
            )
            jobs.append(Job(key, GivenMessage(turn.user, turn.goal), bot))
    return jobs


@dataclass(frozen=True)
class Branching:
    """A finished run, and where conversations branch off from it."""

    run: Path
    prefixes: PrefixSource
    free: Journals
    """Conversations of all its chatbots with the same personas and seeds, and the verdicts on them."""

    def saved(self) -> BranchedFrom:
        """Return what `experiment.json` says of it."""
        return BranchedFrom(run=str(self.run), chatbot=self.prefixes.chatbot, digest=digest(self.identity))

    @property
    def identity(self) -> dict[str, str]:
        """Values that must not change while a folder with branches grows."""
        return self.prefixes.identity()

    def require_other(self, folder: RunFolder) -> None:
        """Raise UsageError if `folder` is the run itself, which would be overwritten."""
        if os.path.realpath(folder.path) == os.path.realpath(self.run):
            raise UsageError(f"--out {folder.path}: this is the run to branch off from. Give another folder.")


def find_branching(folder: RunFolder, chatbot: str | None, turns: Collection[int] | None) -> Branching:
    """Find the turns of one chatbot's conversations that are repeated.

    One chatbot's, because every chatbot then answers after each history once: another chatbot's conversations
    with the same personas begin with the same messages.

    Args:
        chatbot: the one whose conversations they are; None: the first of the experiment that said something,
            else the first by name.
        turns: the turns, from 0; None: all.

    Raises:
        UsageError: it is no run folder or is damaged, it branches off itself, or nothing is found.
    """
    folder.require()
    saved = folder.read_experiment()
    if saved is not None and saved.branched_from is not None:
        raise UsageError(
            f"{folder.path}: its conversations branch off from {saved.branched_from.run}. "
            "Branch off from that one."
        )
    journals = folder.read_journals()
    spoken = [one for one in journals.conversations if one.turns]
    if not spoken:
        raise UsageError(f"{folder.conversations} has no reply yet: there is nothing to branch off from.")
    said = {one.chatbot for one in spoken}
    named = [bot.name for bot in saved.experiment.chatbots if bot.name in said] if saved else []
    name = chatbot or (named or sorted(said))[0]
    own = [one for one in spoken if one.chatbot == name]
    if not own:
        names = sorted(said)
        raise UsageError(
            f"{folder.conversations} has no reply of a chatbot {name!r}{suggest_name(name, names)}. It has "
            f"those of {', '.join(names)}."
        )
    prefixes = PrefixSource(name, _sort_unique(own, folder), None if turns is None else frozenset(turns))
    if not prefixes.branches():
        longest = max(len(one.turns) for one in own)
        asked = ", ".join(map(str, sorted(turns or ())))
        raise UsageError(
            f"{folder.conversations}: no conversation of {name} has turn {asked}. The longest has "
            f"{format_count(longest, 'turn')}; the first is turn 0."
        )
    cases = {one.pairing for one in prefixes.conversations}
    free = journals.current(saved).about(lambda head: head.pairing in cases)
    return Branching(folder.path, prefixes, free)


def _sort_unique(own: Sequence[Conversation], folder: RunFolder) -> list[Conversation]:
    """Return the conversations in the order of personas and seeds, of which none may occur twice."""
    found: dict[Pairing, Conversation] = {}
    for conversation in own:
        if conversation.pairing in found:
            raise UsageError(
                f"{folder.conversations}: {conversation.chatbot} has two conversations with persona "
                f"{conversation.persona}, seed {conversation.seed}, scenario {conversation.scenario}. "
                "Branch off from one configuration at a time."
            )
        found[conversation.pairing] = conversation
    return [found[key] for key in sorted(found)]
