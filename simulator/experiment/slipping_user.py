"""A simulated user whose messages have slips: misspelt words, articles left out."""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.agents.users.manners import StyleProfile, slipped
from hallulab.agents.users.user import UserMove, turn_seed
from hallulab.scenarios.transcript import Message
from hallulab.simulator.experiment.conversation import User


class TypoUser:
    """Makes the slips of a manner in what another user says.

    Args:
        user: the user.
        manner: the manner.
        persona: the persona's identifier.
        seed: seed of the conversation.
    """

    def __init__(self, user: User, manner: StyleProfile, persona: str, seed: int) -> None:
        self._user = user
        self._manner = manner
        self._persona = persona
        self._seed = seed

    async def next(self, history: Sequence[Message]) -> UserMove:
        """See `User.next`."""
        move = await self._user.next(history)
        if move.text is None:
            return move
        seed = turn_seed(self._seed, self._persona, len(history) // 2)
        return move.model_copy(update={"text": slipped(move.text, self._manner, seed)})
