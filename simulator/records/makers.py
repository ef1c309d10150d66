"""The makers of a run's conversations, by version; conversations of other versions are held anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from hallulab.agents.models.model import DEFAULT_MODEL
from hallulab.agents.users.user import compute_user_version
from hallulab.agents.versions import compute_code_version
from hallulab.chatbots.registry import compute_chatbot_version
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.text.wording import format_count
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.records.experiment import Component, Experiment

_SHOWN = 12
"""Hexadecimal digits of a version that are shown."""


class ConversationHeader(Protocol):
    """What of a conversation says who made it."""

    @property
    def chatbot(self) -> str:
        """See `Conversation`."""
        ...

    @property
    def version(self) -> str:
        """See `Conversation`."""
        ...


class ComponentVersions(Frozen):
    """The versions of the user and the chatbots: `made_by` in `experiment.json`."""

    user: str
    """Version of the simulated user, its model and the rules of a conversation; of branched conversations the
    rules alone."""
    chatbots: dict[str, str]
    """Name in the experiment → version of the chatbot, its models and the search."""

    def made(self, conversation: ConversationHeader) -> bool:
        """Return whether they made a conversation."""
        chatbot = self.chatbots.get(conversation.chatbot)
        return chatbot is not None and conversation.version == self.version(conversation.chatbot)

    def joining(self, earlier: ComponentVersions | None) -> ComponentVersions:
        """Return these makers with the chatbots that took part earlier and do not now."""
        if earlier is None:
            return self
        return ComponentVersions(user=self.user, chatbots={**earlier.chatbots, **self.chatbots})

    def version(self, chatbot: str) -> str:
        """Return the `Conversation.version` of their conversations with a chatbot."""
        return f"{self.user}-{self.chatbots[chatbot]}"


def identify_makers(
    experiment: Experiment,
    models: Mapping[str, str] | None = None,
    parts: Mapping[str, str] | None = None,
    branched: bool = False,
) -> ComponentVersions:
    """Return who makes the experiment's conversations.

    Args:
        models: `hallulab.agents.served_model.identify_models` of its models; None: the names that they are
            served under.
        parts: `hallulab.chatbots.protocol.describe_parts_version` of chatbots by name; None: not known.
        branched: whether they branch off from other conversations, so that no user is simulated.

    Raises:
        UsageError: there is no such chatbot, or an option is unknown or wrong.
    """
    names = {DEFAULT_MODEL: experiment.model or ""}
    names |= {name: model.model for name, model in experiment.models.items()}
    known = {**names, **(models or {})}
    user = [compute_code_version("hallulab.simulator.engine.conversation")]
    if not branched:
        user[:0] = [compute_user_version(known[name]) for name in dict.fromkeys(experiment.user_models)]
    chatbots = {}
    for bot in experiment.chatbots:
        with experiment.placing_errors(bot):
            asked = _collect_models(experiment, bot, known)
            version = compute_chatbot_version(bot.kind, experiment.options_of(bot), asked)
        held = [version, *filter(None, [(parts or {}).get(bot.name)])]
        chatbots[bot.name] = digest(held)[:_SHOWN]
    return ComponentVersions(user=digest(user)[:_SHOWN], chatbots=chatbots)


def _collect_models(experiment: Experiment, bot: Component, known: Mapping[str, str]) -> dict[str, str]:
    """Return the models that a chatbot may ask: that of its role, and those that its options name."""
    named = {option: known[value] for option, value in _iterate_texts(bot.options) if value in known}
    return {**named, "chatbot": known[experiment.roles.get("chatbot", DEFAULT_MODEL)]}


def _iterate_texts(options: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts among options and the options of their parts: `chatbot.options.verifier`."""
    for name, value in options.items():
        if isinstance(value, str):
            yield f"{within}{name}", value
        elif isinstance(value, Mapping):
            yield from _iterate_texts(value, f"{within}{name}.")


def list_asked_models(experiment: Experiment, simulates: bool, judges: bool) -> frozenset[str]:
    """Return the names of the models that users, chatbots and detectors may ask; the default one always is.

    Args:
        simulates: whether users and chatbots take part.
        judges: whether detectors do.
    """
    known = experiment.models.keys()
    found = {DEFAULT_MODEL}
    if simulates:
        found |= {*experiment.user_models, experiment.roles.get("chatbot", DEFAULT_MODEL)}
    if judges:
        found.add(experiment.roles.get("detector", DEFAULT_MODEL))
    for component in (*(experiment.chatbots if simulates else ()), *(experiment.detectors if judges else ())):
        found |= {value for _, value in _iterate_texts(component.options) if value in known}
    return frozenset(found)


def describe_made_anew(held: Sequence[ConversationHeader], now: ComponentVersions) -> list[str]:
    """Return a sentence for each chatbot whose conversations have other makers now, with what has changed."""
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
            f"{changed} has changed: {format_count(len(stale), 'conversation')} with {name} of before "
            f"{'counts' if len(stale) == 1 else 'count'} no more, and what is asked for is made anew."
        )
    return said
