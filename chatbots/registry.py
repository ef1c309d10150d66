"""The chatbots by name: ours, and those of installed distributions.

A distribution offers a chatbot with an entry point in the group `hallulab.chatbots`: a callable that takes a
`ChatbotContext` and returns a `Chatbot`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from hallulab.agents.models.prompt import load_prompt_at
from hallulab.agents.served_model import read_tuned_number
from hallulab.agents.versions import compute_version
from hallulab.chatbots.agent import AgentBot
from hallulab.chatbots.editor import EditorBot
from hallulab.chatbots.external import AutoGenBot, CallableBot, EndpointBot
from hallulab.chatbots.fact_checker import FactCheckerBot
from hallulab.chatbots.guarded.bot import GuardedBot
from hallulab.chatbots.guarded.policy import KIND as GUARDED
from hallulab.chatbots.guarded.policy import GuardedOptions, find_wrapped_chatbot, load_policy
from hallulab.chatbots.http_bot import HttpBot
from hallulab.chatbots.prompt_engineered import PromptEngineeredBot
from hallulab.chatbots.protocol import Chatbot, ChatbotContext
from hallulab.chatbots.vanilla import VanillaBot
from hallulab.detectors.base.protocol import Detector, DetectorContext
from hallulab.detectors.registry import make_detector
from hallulab.scenarios.components import (
    find_component,
    list_component_names,
    list_entry_points,
    make_component,
    read_options,
)
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.transcript import Frozen

GROUP = "hallulab.chatbots"

ChatbotFactory = Callable[[ChatbotContext], Chatbot]
"""Makes a chatbot for one conversation."""


class OwnChatbot(Protocol):
    """One of our factories, with what its version depends on."""

    @property
    def VERSION(self) -> int:
        """See `hallulab.chatbots.pipeline.RagChatbot`."""

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
    "http": HttpBot,
    "guarded": GuardedBot,
}
"""Our chatbots by name. An entry point cannot take one of these names."""


def list_chatbot_names() -> list[str]:
    """Return all names, ours first."""
    return list_component_names(CHATBOTS, GROUP)


def make_chatbot(kind: str, context: ChatbotContext) -> Chatbot:
    """Make a chatbot for one conversation.

    Raises:
        UsageError: there is no such chatbot, its options are wrong, or its constructor failed.
    """
    factory = find_chatbot(kind)
    whole = context if context.parts is not None else replace(context, parts=ComponentFactory())
    return make_component("chatbot", kind, CHATBOTS, ("reply",), lambda: factory(whole))


class ComponentFactory:
    """Makes the parts of chatbots that hold others, as `hallulab.chatbots.protocol.Parts` says."""

    def __init__(self) -> None:
        self._detectors: dict[str, Detector] = {}

    def chatbot(self, kind: str, context: ChatbotContext) -> Chatbot:
        """See `Parts.chatbot`."""
        return make_chatbot(kind, context)

    def detector(self, kind: str, context: DetectorContext) -> Detector:
        """See `Parts.detector`."""
        given = [context.model, context.seed, dict(context.identity_thresholds), dict(context.options)]
        key = digest([kind, *given])
        if key not in self._detectors:
            self._detectors[key] = make_detector(kind, kind, context)
        return self._detectors[key]


def find_chatbot(kind: str) -> ChatbotFactory:
    """Return the factory of that name.

    Raises:
        UsageError: there is none, or the distribution that offers it cannot be imported.
    """
    return find_component("chatbot", kind, CHATBOTS, GROUP)


def is_searching(kind: str) -> bool:
    """Return whether a chatbot searches the knowledge base for its replies; other people's are assumed to.

    Raises:
        UsageError: there is no such chatbot.
    """
    return bool(getattr(find_chatbot(kind), "SEARCHES", True))


def is_asking_model(kind: str) -> bool:
    """Return whether a chatbot asks a model of the experiment; other people's are assumed to.

    Raises:
        UsageError: there is no such chatbot.
    """
    return bool(getattr(find_chatbot(kind), "ASKS_MODEL", True))


def compute_chatbot_version(
    kind: str, options: Mapping[str, Any], models: Mapping[str, str] | None = None
) -> str:
    """Hash what decides a chatbot's replies besides scenario and seed: code, prompts, options, models.

    Of a guarded chatbot this includes the wrapped chatbot and the policy. The version of its detector is not
    known before its model is served: `hallulab.chatbots.protocol.describe_parts_version`.

    For an entry point these are the distribution's version, the options as given and the models. The code
    behind an endpoint or a callable is not included, so start afresh after changing it.

    Args:
        models: the models it may ask: role → `hallulab.agents.served_model.identify_model`.

    Raises:
        UsageError: there is no such chatbot, or an option is unknown or wrong.
    """
    resolved = read_chatbot_options(kind, options)
    used = dict(models or {})
    own = CHATBOTS.get(kind)
    if own is None:
        dist = list_entry_points(GROUP)[kind].dist
        return digest([kind, resolved, used, dist.version if dist else None])[:16]
    prompts = [load_prompt_at(path) for path in own.PROMPTS]
    learnt: list[Any] = [read_tuned_number("hallulab.chatbots", kind, model) for model in used.values()]
    if own is GuardedBot:
        wrapped = resolved["chatbot"]
        learnt.append(compute_chatbot_version(wrapped["kind"], wrapped["options"], models))
    return compute_version(own.__module__, own.VERSION, [kind, resolved], prompts, used, learnt=learnt)


def read_chatbot_options(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a chatbot's options with defaults; for an entry point as given.

    Raises:
        UsageError: there is no such chatbot, or an option is unknown or wrong.
    """
    own = CHATBOTS.get(kind)
    if own is None:
        find_chatbot(kind)
        return dict(options)
    read = read_options(f"chatbot {kind}", own.OPTIONS, options)
    resolved = read.model_dump(mode="json")
    if isinstance(read, GuardedOptions):
        wrapped = read_chatbot_options(read.chatbot.kind, read.chatbot.options)
        resolved["chatbot"]["options"] = wrapped
        resolved["policy"] = load_policy(read.policy).model_dump(mode="json")
    return resolved


_GAP = "\x00"


def collect_instructions(kind: str, options: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the texts of a chatbot's system prompts; None for a bot whose prompts we do not have.

    Filled-in values (documents, the pack's words) are left out, so a text ends there and another begins. A
    guarded chatbot has those of the one that it wraps.
    """
    if kind == GUARDED:
        wrapped = find_wrapped_chatbot(options)
        return None if wrapped is None else collect_instructions(wrapped.kind, wrapped.options)
    own = CHATBOTS.get(kind)
    if own is None or not own.PROMPTS:
        system = options.get("system") if kind == EndpointBot.KIND else None
        return (system,) if system else None
    filled = [
        message.text
        for prompt in (load_prompt_at(path) for path in own.PROMPTS)
        for message in prompt.fill(dict.fromkeys(prompt.placeholders, _GAP))
        if message.role == "system"
    ]
    return tuple(piece.strip() for text in filled for piece in text.split(_GAP) if piece.strip())
