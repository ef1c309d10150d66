"""The protocol of chatbots, and what is checked of a bot of somebody else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hallulab.agents.models.answers import ONLY_THOUGHTS, WRITTEN_CALL
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.redaction import remove_keys
from hallulab.agents.models.written_calls import writes_call
from hallulab.detectors.base.protocol import Detector, DetectorContext
from hallulab.scenarios.errors import HallulabError
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.text.thoughts import leave_out_thoughts
from hallulab.scenarios.text.wording import is_blank
from hallulab.scenarios.transcript import Call, Evidence, Frozen, Message, Step
from hallulab.scenarios.turn_views import Retriever


class Reply(Frozen):
    """A chatbot's answer and how it was made."""

    text: str
    """The reply as the user sees it."""
    query: str | None = None
    """The stand-alone query of the search, if any."""
    passages: Evidence = ()
    steps: tuple[Step, ...] = ()
    """The steps to the reply, in order."""
    calls: tuple[Call, ...] = ()
    """Model calls; empty if the bot under test does not report them."""


class ChatbotError(HallulabError):
    """No reply could be made. The conversation ends; the calls are kept."""

    def __init__(self, reason: str, calls: Sequence[Call] = ()) -> None:
        super().__init__(reason)
        self.calls = tuple(calls)


class Chatbot(Protocol):
    """Answers a user in a conversation. One instance serves one conversation.

    A chatbot that verifies its claims with models has an attribute `claim_check` (`hallulab.ClaimCheck`).
    Without it, the report cannot show that one of these models also judges the chatbot. One whose replies
    depend on a detector has an attribute `parts_version`, which changes with that detector's
    version. One that remembers more of the conversation than `history` holds has an attribute `remembers`,
    which is True: if the conversation is cut off, it begins anew instead of going on.
    """

    async def reply(self, history: Sequence[Message]) -> Reply:
        """Answer the last message of `history`, which is the user's.

        Raises:
            ChatbotError: no reply could be made.
        """
        ...


class Parts(Protocol):
    """Makes the parts of a chatbot that is put together from others."""

    def chatbot(self, kind: str, context: ChatbotContext) -> Chatbot:
        """Make a chatbot for one conversation.

        Raises:
            UsageError: see `hallulab.chatbots.registry.make_chatbot`.
        """
        ...

    def detector(self, kind: str, context: DetectorContext) -> Detector:
        """Return a detector, made once for all conversations with equal arguments.

        Raises:
            UsageError: see `hallulab.detectors.registry.make_detector`.
        """
        ...


def describe_parts_version(chatbot: Chatbot) -> str:
    """Return the version of a chatbot's parts that only the made chatbot knows; empty if it has none."""
    return str(getattr(chatbot, "parts_version", ""))


def has_memory(chatbot: Chatbot) -> bool:
    """Return whether a chatbot remembers more of a conversation than the history that it is given."""
    return bool(getattr(chatbot, "remembers", False))


@dataclass(frozen=True)
class ChatbotContext:
    """The argument of a chatbot's factory, which is called once a conversation."""

    models: ModelPool
    """The served models by name; `models.get()` is the default one."""
    knowledge: Retriever
    scenario: Scenario
    """The scenario, with domain, duties and role names."""
    model: str | None = None
    """Name in `models` of the chatbot's model; None: the default one."""
    seed: int = 0
    """Base seed of every sampled answer."""
    top_k: int = 4
    """Passages to retrieve (HalluDetect section 4.1)."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The chatbot's own options from the experiment file."""
    conversation: str = ""
    """Tells this conversation from the others of a run; empty: there is one."""
    parts: Parts | None = None
    """Makes other chatbots and detectors; `make_chatbot` gives one to a context without."""


def validate_reply(bot: str, reply: str) -> str:
    """Return the bot's reply, stripped and otherwise unchanged, because that is what is judged.

    Thoughts that its model left in it are no reply (`hallulab.agents.models.thoughts`). Keys and half
    characters are removed: see `hallulab.agents.models.redaction.remove_keys`.

    Args:
        bot: the bot's name, for errors.

    Raises:
        ChatbotError: the reply is empty, nothing but thoughts, or the call of a tool.
    """
    spoken = leave_out_thoughts(reply)
    if spoken.called or writes_call(spoken.text):
        raise ChatbotError(f"{bot}: {WRITTEN_CALL}")
    text = remove_keys(spoken.text.strip())
    if is_blank(text):
        why = ONLY_THOUGHTS if spoken.thought else "the bot's reply is empty."
        raise ChatbotError(f"{bot}: {why}")
    return text
