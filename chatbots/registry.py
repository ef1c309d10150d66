"""The chatbots by name: ours, and those of installed distributions.

A distribution offers a chatbot with an entry point in the group `hallulab.chatbots`: a callable that takes a
`ChatbotContext` and returns a `Chatbot`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from agents.identity import identity
from agents.models.prompt import load_prompt
from agents.tuned import tuned_number
from chatbots.agent import AgentBot
from chatbots.autogen import AutoGenBot
from chatbots.callable import CallableBot
from chatbots.editor import EditorBot
from chatbots.endpoint import EndpointBot
from chatbots.fact_checker import FactCheckerBot
from chatbots.prompt_engineered import PromptEngineeredBot
from chatbots.protocol import Chatbot, ChatbotContext
from chatbots.vanilla import VanillaBot
from scenarios.files.digest import digest
from scenarios.options import read_options
from scenarios.plugins import component_names, find_component, make_component, offered
from scenarios.transcript import Frozen

GROUP = "hallulab.chatbots"
"""The group of entry points."""

ChatbotFactory = Callable[[ChatbotContext], Chatbot]
"""Makes a chatbot for one conversation."""


class OwnChatbot(Protocol):
    """One of our factories, with what its version depends on."""

    @property
    def OPTIONS(self) -> type[Frozen]:
        """The class of its options."""

    @property
    def PROMPTS(self) -> tuple[str, ...]:
        """Its prompt files, as `package/name`."""

    def __call__(self, context: ChatbotContext) -> Chatbot:
        """Make a chatbot for one conversation."""


CHATBOTS: dict[str, OwnChatbot] = {
    "vanilla": VanillaBot,
    "prompt-engineered": PromptEngineeredBot,
    "editor": EditorBot,
    "fact-checker": FactCheckerBot,
    "agent": AgentBot,
    "endpoint": EndpointBot,
    "callable": CallableBot,
    "autogen": AutoGenBot,
}
"""Our chatbots by name. An entry point cannot take one of these names."""


def chatbot_names() -> list[str]:
    """Return all names, ours first."""
    return component_names(CHATBOTS, GROUP)


def make_chatbot(kind: str, context: ChatbotContext) -> Chatbot:
    """Make a chatbot for one conversation.

    Raises:
        UsageError: there is no such chatbot, its options are wrong, or its constructor failed.
    """
    factory = find_chatbot(kind)
    return make_component("chatbot", kind, CHATBOTS, ("reply",), lambda: factory(context))


def find_chatbot(kind: str) -> ChatbotFactory:
    """Return the factory of that name.

    Raises:
        UsageError: there is none, or the distribution that offers it cannot be imported.
    """
    return find_component("chatbot", kind, CHATBOTS, GROUP)


def chatbot_version(kind: str, options: Mapping[str, Any], models: Mapping[str, str] | None = None) -> str:
    """Hash what decides a chatbot's replies besides scenario and seed: code, prompts, options, models.

    For an entry point these are the distribution's version, the options as given and the models. The code
    behind an endpoint or a callable is not included, so start afresh after changing it.

    Args:
        models: the models it may ask: role → `agents.served_model.identity_of`.

    Raises:
        UsageError: there is no such chatbot, or an option is unknown or wrong.
    """
    resolved = chatbot_options(kind, options)
    used = dict(models or {})
    own = CHATBOTS.get(kind)
    if own is None:
        dist = offered(GROUP)[kind].dist
        return digest([kind, resolved, used, dist.version if dist else None])[:16]
    prompts = [load_prompt(*path.split("/")) for path in own.PROMPTS]
    learnt = [tuned_number("chatbots", kind, model) for model in used.values()]
    return identity(own.__module__, [kind, resolved], prompts, used, learnt=learnt)


def chatbot_options(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a chatbot's options with defaults; for an entry point as given.

    Raises:
        UsageError: there is no such chatbot, or an option is unknown or wrong.
    """
    own = CHATBOTS.get(kind)
    if own is None:
        find_chatbot(kind)
        return dict(options)
    return read_options(f"chatbot {kind}", own.OPTIONS, options).model_dump(mode="json")
