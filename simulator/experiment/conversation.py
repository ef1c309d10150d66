"""One conversation: a simulated user and a chatbot take turns until there is a reason to stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Protocol, runtime_checkable

from hallulab.agents.concurrency import call_untrusted, require_failure, require_running
from hallulab.agents.models.redaction import remove_keys
from hallulab.agents.users.flaws import is_loop
from hallulab.agents.users.user import UserFailed, UserMove
from hallulab.chatbots.protocol import Chatbot, ChatbotError
from hallulab.scenarios.components import describe_exception
from hallulab.scenarios.transcript import Branch, Call, Conversation, Message, StopReason, Turn


class User(Protocol):
    """Who drives the conversation."""

    async def next(self, history: Sequence[Message]) -> UserMove:
        """Return the next message, or the decision to stop."""
        ...


@runtime_checkable
class TurnObserver(Protocol):
    """A user who is told of whole turns, with passages, not only of what was said."""

    def heard(self, turn: Turn) -> None:
        """Get the turn that has just ended."""
        ...


@dataclass(frozen=True)
class GivenMessage:
    """A user whose message is given, so that no model writes it."""

    text: str
    """The message."""

    async def next(self, history: Sequence[Message]) -> UserMove:
        """See `User.next`."""
        return UserMove(text=self.text)


@dataclass(frozen=True)
class ConversationKey:
    """Identifies a conversation before it is held."""

    id: str
    """Hash of everything that determines the conversation."""
    scenario: str
    """Name of the pack."""
    persona: str
    """Identifier of the persona."""
    chatbot: str
    """Name of the chatbot in the experiment."""
    model: str
    """Name of the chatbot's model."""
    seed: int
    """Seed."""
    version: str = ""
    """See `Conversation.version`."""
    branch: Branch | None = None
    """See `Conversation.branch`."""
    manner: str | None = None
    """See `Conversation.manner`."""
    user_model: str | None = None
    """See `Conversation.user_model`."""


def build_ended_conversation(
    key: ConversationKey,
    reason: StopReason,
    turns: Sequence[Turn] = (),
    error: str | None = None,
    calls: Sequence[Call] = (),
) -> Conversation:
    """Return a conversation that ended; `calls` are those of no turn."""
    about = {field.name: getattr(key, field.name) for field in fields(key)}
    return Conversation(**about, turns=tuple(turns), stop_reason=reason, error=error, calls=tuple(calls))


async def converse(
    key: ConversationKey,
    user: User,
    chatbot: Chatbot,
    max_turns: int,
    on_turn: Callable[[Turn], None] = lambda turn: None,
) -> Conversation:
    """Hold a conversation. If user or chatbot fails, it ends; failure and earlier turns are recorded."""
    turns: list[Turn] = []
    history: list[Message] = [*key.branch.history] if key.branch else []
    loose: list[Call] = []

    def done(reason: StopReason, error: str | None = None) -> Conversation:
        return build_ended_conversation(key, reason, turns, error and remove_keys(error), loose)

    while len(turns) < max_turns:
        try:
            move = await user.next(history)
        except UserFailed as error:
            loose.extend(error.calls)
            return done("error", f"simulated user: {error}")
        if move.stop is not None or move.text is None:
            loose.extend(move.calls)
            return done(move.stop or "gave_up")
        asked = Message(role="user", text=move.text)
        try:
            reply = await call_untrusted(partial(chatbot.reply, [*history, asked]))
            require_running()
            turn = Turn(
                index=len(turns),
                user=move.text,
                query=reply.query,
                passages=reply.passages,
                reply=reply.text,
                steps=reply.steps,
                calls=(*move.calls, *reply.calls),
            )
            turn.model_dump_json()  # a turn that cannot be journalled ends this conversation, not the run
        except ChatbotError as error:
            loose.extend([*move.calls, *error.calls])
            return done("error", f"chatbot {key.chatbot}: {error}")
        except BaseException as error:  # noqa: BLE001 - somebody else's chatbot may raise anything; a failure is data
            require_failure(error)
            loose.extend(move.calls)
            return done("error", f"chatbot {key.chatbot}: {describe_exception(error)}")
        turns.append(turn)
        history += [asked, Message(role="assistant", text=reply.text)]
        on_turn(turn)
        if isinstance(user, TurnObserver):
            user.heard(turn)
        if is_loop(turns):
            return done("loop")
    return done("max_turns")
