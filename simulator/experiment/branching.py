"""Fixed-prefix mode: conversations that branch off from those of a finished run (docs/fixed-prefix.md).

All chatbots get the same history and the same message of the user, and each gives one reply. So what differs
between the replies is the chatbot's doing, and not that of the way a conversation took.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hallulab.scenarios.files.digest import digest
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.transcript import Branch, Conversation, Turn
from hallulab.simulator.experiment.config import Experiment
from hallulab.simulator.experiment.conversation import ConversationKey, GivenMessage
from hallulab.simulator.experiment.makers import ComponentVersions
from hallulab.simulator.experiment.plan import Job, compute_scenario_version, get_model_name, reply_settings

REPLIES = 1
"""Replies of a branched conversation."""


@dataclass(frozen=True)
class PrefixSource:
    """Where conversations branch off."""

    chatbot: str
    """Name of the chatbot with whom they were held."""
    conversations: Sequence[Conversation]
    """These conversations; no two have the same persona and seed."""
    turns: frozenset[int] | None
    """Turns that are held anew; None: all."""

    def branches(self) -> list[tuple[Conversation, Turn]]:
        """Return the turns that are held anew, each with its conversation."""
        return [
            (conversation, turn)
            for conversation in self.conversations
            for turn in conversation.turns
            if self.turns is None or turn.index in self.turns
        ]

    def identity(self) -> dict[str, str]:
        """Return what must not change while a folder with branches grows: the text that is given."""
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
    shared = {"scenario": compute_scenario_version(scenario), "model": model, **reply_settings(experiment)}
    jobs = []
    for conversation, turn in prefixes.branches():
        branch = Branch(
            conversation=conversation.id, turn=turn.index, history=conversation.history(turn.index)
        )
        for bot in experiment.chatbots:
            version = made_by.version(bot.name)
            identity = {
                **shared,
                "made_by": version,
                "chatbot": bot.name,
                "seed": conversation.seed,
                "branch": branch.model_dump(mode="json"),
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
            jobs.append(Job(key, GivenMessage(turn.user), bot))
    return jobs
