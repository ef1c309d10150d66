"""One conversation: an AutoGen team of a simulated user and a chatbot, who take turns until one stops it.

AutoGen passes exceptions between agents as texts. So our agents keep what ends a conversation, and end it
with a `StopMessage`.
"""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Protocol, runtime_checkable

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.conditions import FunctionalTermination
from autogen_agentchat.messages import BaseChatMessage, StopMessage, StructuredMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken

from hallulab.agents.concurrency import call_untrusted, require_failure, require_running
from hallulab.agents.models.redaction import remove_keys
from hallulab.agents.users.flaws import is_loop
from hallulab.agents.users.user import UserFailed, UserMove
from hallulab.chatbots.protocol import Chatbot, ChatbotError
from hallulab.scenarios.components import describe_failure
from hallulab.scenarios.transcript import Branch, Call, Conversation, Message, Pressure, StopReason, Turn
from hallulab.simulator.engine.team_runtime import TeamRuntime


def _is_worth_telling(record: logging.LogRecord) -> bool:
    """Return whether AutoGen logs more than that an agent was cancelled, which is how a run is stopped."""
    return record.exc_info is None or not isinstance(record.exc_info[1], asyncio.CancelledError)


logging.getLogger("autogen_core").addFilter(_is_worth_telling)


class User(Protocol):
    """Who drives the conversation."""

    async def next(self, history: Sequence[Message]) -> UserMove:
        """Return the next message, or the decision to stop."""
        ...


@runtime_checkable
class TurnObserver(Protocol):
    """A user who gets whole turns, with passages, not only messages."""

    def heard(self, turn: Turn) -> None:
        """Get the turn that has just ended."""
        ...


@dataclass(frozen=True)
class GivenMessage:
    """A user whose message is given, so that no model writes it."""

    text: str
    goal: str | None = None
    """The goal that it is about; None: not known."""

    async def next(self, history: Sequence[Message]) -> UserMove:
        """See `User.next`."""
        return UserMove(text=self.text, goal=self.goal)


@dataclass(frozen=True)
class ConversationKey:
    """Identifies a conversation before it is simulated."""

    id: str
    """Hash of everything that determines the conversation."""
    scenario: str
    persona: str
    chatbot: str
    model: str
    """Name of the chatbot's model."""
    seed: int
    version: str = ""
    branch: Branch | None = None
    manner: str | None = None
    user_model: str | None = None
    pressure: Pressure | None = None


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


@dataclass(frozen=True)
class Ending:
    """Why a conversation ended before its limit of turns."""

    reason: StopReason
    calls: tuple[Call, ...]
    """Calls of no turn."""
    error: str | None = None
    """Reason of a failure; None: there was none."""


class Participant(BaseChatAgent):
    """An agent whose message, or what ends the conversation, comes from a task that a token cancels."""

    ending: Ending | None = None
    """Why this agent ended the conversation; None: it did not."""
    raised: BaseException | None = None
    """Exception that ends the whole run, such as a `ReplayMiss` or a cancellation."""

    @abstractmethod
    async def speak(self, message: BaseChatMessage | None) -> BaseChatMessage | Ending:
        """Answer the other's last message; None: there is none yet."""

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        """Speak, or end the conversation with a `StopMessage`."""
        speaking = asyncio.create_task(self.speak(messages[-1] if messages else None))
        cancellation_token.link_future(speaking)
        try:
            spoken = await speaking
        except BaseException as error:  # noqa: BLE001 - kept for `converse`, which raises it
            self.raised = error
            return Response(chat_message=StopMessage(content="failed", source=self.name))
        if isinstance(spoken, Ending):
            self.ending = spoken
            return Response(chat_message=StopMessage(content=spoken.reason, source=self.name))
        return Response(chat_message=spoken)

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Forget how the conversation ended."""
        self.ending = self.raised = None


class SimulatedUserAgent(Participant):
    """The user's agent: says moves until the user stops.

    Args:
        history: what was said before the first turn.
        earlier: the turns that there are already.
    """

    def __init__(self, user: User, history: Sequence[Message], earlier: Sequence[Turn]) -> None:
        super().__init__("user", "Asks until it has what it came for, or gives up.")
        self.user = user
        self._history = [*history]
        for turn in earlier:
            self._hear(turn)

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """A move, or the end."""
        return (StructuredMessage[UserMove], StopMessage)

    async def speak(self, message: BaseChatMessage | None) -> BaseChatMessage | Ending:
        """Take in the chatbot's turn, and say the next message or stop."""
        if isinstance(message, StructuredMessage) and isinstance(turn := message.content, Turn):
            self._hear(turn)
        try:
            move = await self.user.next(self._history)
        except UserFailed as error:
            return Ending("error", error.calls, f"simulated user: {error}")
        if move.stop is not None or move.text is None:
            return Ending(move.stop or "gave_up", move.calls)
        return StructuredMessage[UserMove](content=move, source=self.name)

    def _hear(self, turn: Turn) -> None:
        self._history += turn.messages
        if isinstance(self.user, TurnObserver):
            self.user.heard(turn)


class ChatbotAgent(Participant):
    """The agent of the chatbot under test: answers a move with a turn.

    Args:
        label: its name in the experiment, for errors.
        history: what was said before the first turn.
        earlier: the turns that there are already.
    """

    def __init__(
        self,
        chatbot: Chatbot,
        label: str,
        history: Sequence[Message],
        earlier: Sequence[Turn],
        on_turn: Callable[[Turn], None],
    ) -> None:
        super().__init__("chatbot", "The chatbot under test.")
        self.chatbot = chatbot
        self._label = label
        self._history = [*history, *(said for turn in earlier for said in turn.messages)]
        self._on_turn = on_turn
        self.turns = [*earlier]

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """A turn, or the end."""
        return (StructuredMessage[Turn], StopMessage)

    async def speak(self, message: BaseChatMessage | None) -> BaseChatMessage | Ending:
        """Answer a move; whatever somebody else's chatbot raises is data, and ends the conversation."""
        assert isinstance(message, StructuredMessage)
        assert isinstance(message.content, UserMove)
        move = message.content
        asked = Message(role="user", text=move.text or "")
        try:
            reply = await call_untrusted(partial(self.chatbot.reply, [*self._history, asked]))
            require_running()
            turn = Turn(
                index=len(self.turns),
                user=asked.text,
                query=reply.query,
                passages=reply.passages,
                reply=reply.text,
                steps=reply.steps,
                calls=(*move.calls, *reply.calls),
                act=move.act,
                goal=move.goal,
            )
            turn.model_dump_json()  # a turn that cannot be journalled ends this conversation, not the run
        except ChatbotError as error:
            return Ending("error", (*move.calls, *error.calls), f"chatbot {self._label}: {error}")
        except BaseException as error:  # noqa: BLE001 - somebody else's chatbot may raise anything
            require_failure(error)
            return Ending("error", move.calls, f"chatbot {self._label}: {describe_failure(error)}")
        self._on_turn(turn)
        self.turns.append(turn)
        self._history += turn.messages
        return StructuredMessage[Turn](content=turn, source=self.name)


async def converse(
    key: ConversationKey,
    user: User,
    chatbot: Chatbot,
    max_turns: int,
    on_turn: Callable[[Turn], None] = lambda turn: None,
    earlier: Sequence[Turn] = (),
) -> Conversation:
    """Hold a conversation. If user or chatbot fails, it ends; failure and turns are recorded.

    Args:
        max_turns: replies after which it is stopped.
        earlier: the turns that there are already, if the conversation was cut off.
    """
    history = key.branch.history if key.branch else ()
    # A user who presses repeats itself on purpose, and a chatbot that holds out does, too.
    is_over: Callable[[Sequence[Turn]], bool] = (lambda turns: False) if key.pressure else is_loop
    asking = SimulatedUserAgent(user, history, earlier)
    answering = ChatbotAgent(chatbot, key.chatbot, history, earlier, on_turn)
    try:
        if len(earlier) < max_turns and not is_over(earlier):
            await _run_team(asking, answering, 2 * (max_turns - len(earlier)), is_over)
    finally:
        # A team is a cycle of references. A bot in a process of its own must not wait for its collection.
        del asking.user, answering.chatbot
    ending = asking.ending or answering.ending
    if ending is None:
        ending = Ending("loop" if is_over(answering.turns) else "max_turns", ())
    error = ending.error and remove_keys(ending.error)
    return build_ended_conversation(key, ending.reason, answering.turns, error, ending.calls)


async def _run_team(
    asking: SimulatedUserAgent,
    answering: ChatbotAgent,
    messages: int,
    is_over: Callable[[Sequence[Turn]], bool],
) -> None:
    """Let the two speak in turns, until one ends it, the conversation repeats itself, or all is said.

    Args:
        messages: how many they say at most.
        is_over: whether the conversation repeats itself, from its turns.
    """
    runtime = TeamRuntime()
    team = RoundRobinGroupChat(
        [asking, answering],
        termination_condition=FunctionalTermination(
            lambda said: isinstance(said[-1], StopMessage) or is_over(answering.turns)
        ),
        max_turns=messages,
        custom_message_types=[StructuredMessage[UserMove], StructuredMessage[Turn]],
        runtime=runtime,
    )
    token = CancellationToken()
    try:
        await team.run(cancellation_token=token)
    finally:
        token.cancel()  # cancelling the task alone would wait for the agents
        await runtime.finish()
    for agent in (asking, answering):
        if agent.raised is not None:
            raise agent.raised
