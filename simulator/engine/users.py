"""Other users than the simulated one: who follow a script, mistype, or inject an order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hallulab.agents.users.personas import StyleProfile, slipped
from hallulab.agents.users.user import UserFailed, UserMove, turn_seed
from hallulab.chatbots.evidence import EvidenceSource
from hallulab.detectors.base.protocol import Detector, run_detector
from hallulab.scenarios.attacks.attack import UserOrder
from hallulab.scenarios.errors import HallulabError, UsageError
from hallulab.scenarios.packs.pack import Persona, ScriptedMessage
from hallulab.scenarios.transcript import Message, Turn, TurnView
from hallulab.simulator.engine.conversation import TurnObserver, User


class ScriptedUser:
    """Says one message after the other, and stops after the last one.

    A message may depend on a detector's verdict on the reply before. The detector judges that reply here, and
    again with all others when the conversation has ended. Then its requests are answered from memory, and are
    counted once.

    Args:
        messages: the script.
        detectors: the experiment's detectors by name.
        evidence: what they may search, and what gives a reply its evidence; None: nothing.
    """

    def __init__(
        self,
        messages: Sequence[ScriptedMessage],
        detectors: Mapping[str, Detector],
        evidence: EvidenceSource | None,
    ) -> None:
        self._messages = messages
        self._detectors = detectors
        self._evidence = evidence
        self._last: Turn | None = None

    def heard(self, turn: Turn) -> None:
        """See `TurnObserver.heard`."""
        self._last = turn

    async def next(self, history: Sequence[Message]) -> UserMove:
        """See `User.next`.

        Raises:
            UserFailed: the message depends on a verdict, and the detector gave none.
        """
        said = sum(message.role == "user" for message in history)
        if said == len(self._messages):
            return UserMove(text=None, stop="script_ended")
        message = self._messages[said]
        if message.by is None or self._last is None:
            return UserMove(text=message.text)
        flagged = await self._flagged(message.by, history, self._last)
        return UserMove(text=message.flagged if flagged else message.unflagged)

    async def _flagged(self, by: str, history: Sequence[Message], turn: Turn) -> bool:
        try:
            turn = turn if self._evidence is None else await self._evidence.complete(turn)
        except HallulabError as error:
            raise UserFailed(
                f"the script asks what {by} says, and it has no evidence: {error}", ()
            ) from error
        view = TurnView(
            history=tuple(history[:-2]),
            question=turn.user,
            passages=turn.passages,
            reply=turn.reply,
            knowledge=None if self._evidence is None else self._evidence.retriever,
        )
        [judgement] = await run_detector(self._detectors[by], [view])
        if judgement.outcome != "scored" or judgement.flagged is None:
            why = judgement.error or judgement.outcome
            raise UserFailed(f"the script asks what {by} says, and it gave no verdict: {why}", ())
        return judgement.flagged


def check_script(persona: Persona, detectors: Mapping[str, Detector]) -> None:
    """Check that there are the detectors on which a persona's messages depend.

    Raises:
        UsageError: one is missing; names persona and message.
    """
    for number, message in enumerate(persona.messages, start=1):
        if message.by is not None and message.by not in detectors:
            raise UsageError(
                f"persona {persona.id}, message {number}: it depends on {message.by!r}, which does not judge "
                "here. Put it among the detectors of `run`, or correct `by`."
            )


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
        if turn.index == self._order.turn:
            self._said = self._order.remove(turn.user)
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
        return move.model_copy(update={"text": self._order.after(move.text)})
