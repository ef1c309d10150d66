"""The prompt files and documents that a run's conversations are made of, by hash.

Versions say that something has changed (`hallulab.simulator.records.makers`); these say which file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from hallulab.agents.models.prompt import load_prompt, load_prompt_at
from hallulab.agents.users.flaws import USER_PROMPTS
from hallulab.chatbots.guarded.policy import KIND as GUARDED
from hallulab.chatbots.guarded.policy import find_wrapped_chatbot
from hallulab.chatbots.registry import CHATBOTS
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.records.experiment import Experiment


class Sources(Frozen):
    """What a run's conversations are made of: `sources` in `experiment.json`."""

    user: dict[str, str] = Field(default_factory=dict)
    """Prompt file of the simulated user → its version (`Prompt.version`)."""
    chatbots: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Chatbot → prompt file → its version; those of other people's chatbots are not known."""
    documents: dict[str, str] = Field(default_factory=dict)
    """Document of the pack, with what an attack put there → hash of it."""

    def joining(self, earlier: Sources | None) -> Sources:
        """Return these with the chatbots that took part earlier and do not now."""
        if earlier is None:
            return self
        return self.model_copy(update={"chatbots": {**earlier.chatbots, **self.chatbots}})


def describe_sources(experiment: Experiment, scenario: Scenario, branched: bool = False) -> Sources:
    """Return what an experiment's conversations are made of.

    Args:
        experiment: it.
        scenario: its pack, with what an attack put there.
        branched: whether they branch off from other conversations, so that no user is simulated.
    """
    asked = () if branched else USER_PROMPTS
    return Sources(
        user={name: load_prompt("hallulab.agents.users", name).version for name in asked},
        chatbots={bot.name: list_prompts(bot.kind, bot.options) for bot in experiment.chatbots},
        documents={one.name: digest(one.model_dump(mode="json"))[:16] for one in scenario.documents},
    )


def list_prompts(kind: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Return the prompt files of a chatbot with their versions, those of a wrapped chatbot included."""
    own = CHATBOTS.get(kind)
    if own is None:
        return {}
    wrapped = find_wrapped_chatbot(options) if kind == GUARDED else None
    inner = {} if wrapped is None else list_prompts(wrapped.kind, wrapped.options)
    return {**inner, **{path: load_prompt_at(path).version for path in own.PROMPTS}}
