"""Who makes a run's conversations, by versions: those of an earlier user or chatbot are held anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agents.identity import code_version
from agents.models.model import DEFAULT_MODEL
from agents.users.user import user_version
from chatbots.registry import chatbot_version
from scenarios.files.digest import digest
from scenarios.text.wording import counted
from scenarios.transcript import Conversation, Frozen
from simulator.experiment.config import Component, Experiment

_SHOWN = 12
"""Hexadecimal digits of a version."""


class Makers(Frozen):
    """The versions of those who make conversations: `made_by` in `experiment.json`."""

    user: str
    """Of the simulated user, of its model and of the rules of a conversation."""
    chatbots: dict[str, str]
    """Of each chatbot, of its models and of the search, by its name in the experiment."""

    def made(self, conversation: Conversation) -> bool:
        """Whether a conversation is theirs."""
        chatbot = self.chatbots.get(conversation.chatbot)
        return chatbot is not None and conversation.version == self.version(conversation.chatbot)

    def joining(self, earlier: Makers | None) -> Makers:
        """Them, and the chatbots that took part earlier and do not now."""
        if earlier is None:
            return self
        return Makers(user=self.user, chatbots={**earlier.chatbots, **self.chatbots})

    def version(self, chatbot: str) -> str:
        """What their conversations with a chatbot have as `Conversation.version`."""
        return f"{self.user}-{self.chatbots[chatbot]}"


def makers(experiment: Experiment, models: Mapping[str, str] | None = None) -> Makers:
    """Who makes the experiment's conversations.

    Args:
        models: `agents.served_model.identities` of its models; None: the names that they are served under.

    Raises:
        UsageError: there is no such chatbot, or an option is unknown or wrong.
    """
    names = {DEFAULT_MODEL: experiment.model or ""}
    names |= {name: model.model for name, model in experiment.models.items()}
    known = {**names, **(models or {})}
    user = [
        user_version(known[experiment.roles.get("user", DEFAULT_MODEL)]),
        code_version("simulator.experiment.conversation"),
    ]
    search = code_version("agents.retrieval.knowledge")
    chatbots = {}
    for bot in experiment.chatbots:
        with experiment.placing_errors(bot):
            asked = _models_of(experiment, bot, known)
            version = chatbot_version(bot.kind, experiment.options_of(bot), asked)
        chatbots[bot.name] = digest([version, search])[:_SHOWN]
    return Makers(user=digest(user)[:_SHOWN], chatbots=chatbots)


def _models_of(experiment: Experiment, bot: Component, known: Mapping[str, str]) -> dict[str, str]:
    """What a chatbot may ask: the model of its role, and those that its options name."""
    named = {
        option: known[value]
        for option, value in bot.options.items()
        if isinstance(value, str) and value in known
    }
    return {**named, "chatbot": known[experiment.roles.get("chatbot", DEFAULT_MODEL)]}


def made_anew(held: Sequence[Conversation], now: Makers) -> list[str]:
    """What to tell of conversations that somebody else made than who would make them now: a sentence for each
    chatbot of theirs, with what has changed."""
    said = []
    for name in sorted({conversation.chatbot for conversation in held}):
        stale = [one for one in held if one.chatbot == name and not now.made(one)]
        if not stale:
            continue
        users = {one.version.partition("-")[0] for one in stale}
        changed = f"chatbot {name}" if users == {now.user} else "the simulated user or how conversations go"
        if users == {""}:
            changed = "hallulab"
        said.append(
            f"{changed} has changed: {counted(len(stale), 'conversation')} with {name} of before "
            f"{'counts' if len(stale) == 1 else 'count'} no more, and what is asked for is made anew."
        )
    return said
