"""The simulated user as an AutoGen agent, for AutoGen teams."""

from __future__ import annotations

from collections.abc import Sequence

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, StopMessage, TextMessage
from autogen_core import CancellationToken

from hallulab.agents.users.user import SimulatedUser
from hallulab.scenarios.transcript import Message


class UserAgent(BaseChatAgent):
    """An AutoGen agent that speaks as a simulated user and ends a conversation with a `StopMessage`.

    Messages of all others count as the assistant's. The content of the `StopMessage` is the reason:
    `goal_reached` or `gave_up`. `StopMessageTermination` ends a team there.

    Args:
        user: the simulated user.
        name: the agent's name in its team.
    """

    def __init__(self, user: SimulatedUser, name: str = "user") -> None:
        super().__init__(name, "Asks until it has what it came for, or gives up.")
        self._user = user
        self._history: list[Message] = []

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """A text message or a stop message."""
        return (TextMessage, StopMessage)

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        """Say the next message after these, or stop.

        Raises:
            UserFailed: the user's model gave no answer.
        """
        said = "\n\n".join(message.to_text() for message in messages)
        if said:
            self._history.append(Message(role="assistant", text=said))
        move = await self._user.next(self._history)
        if move.text is None:
            return Response(chat_message=StopMessage(content=str(move.stop), source=self.name))
        self._history.append(Message(role="user", text=move.text))
        return Response(chat_message=TextMessage(content=move.text, source=self.name))

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Forget the conversation."""
        self._history.clear()
