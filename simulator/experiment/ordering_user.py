"""A simulated user whose message ends with an order to the chatbot (prompt injection)."""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.agents.users.user import UserMove
from hallulab.scenarios.attacks.orders import UserOrder
from hallulab.scenarios.transcript import Message, Turn
from hallulab.simulator.experiment.conversation import TurnObserver, User


class InjectingUser:
    """Puts an order behind one message of another user.

    That user does not see the order, so it cannot obey it. All else goes on as without: the flaws of the
    user, and what it says next, are those of its own words.

    Args:
        user: the user.
        order: the order, and the turn of the message.
    """

    def __init__(self, user: User, order: UserOrder) -> None:
        self._user = user
        self._order = order
        self._said: str | None = None

    def heard(self, turn: Turn) -> None:
        """See `TurnObserver.heard`."""
        if isinstance(self._user, TurnObserver):
            self._user.heard(turn)

    async def next(self, history: Sequence[Message]) -> UserMove:
        """See `User.next`."""
        place = 2 * self._order.turn
        own = list(history)
        if self._said is not None and len(own) > place:
            own[place] = Message(role="user", text=self._said)
        move = await self._user.next(own)
        if move.text is None or len(history) != place:
            return move
        self._said = move.text
        return move.model_copy(update={"text": self._order.after(move.text)})
