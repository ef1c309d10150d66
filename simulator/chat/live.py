"""A conversation that a person holds with a chatbot of an experiment, judged turn by turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from autogen_agentchat.messages import StructuredMessage

from hallulab.agents.models.redaction import remove_keys
from hallulab.agents.models.watching import watching
from hallulab.agents.users.user import UserMove
from hallulab.chatbots.protocol import has_memory
from hallulab.detectors.base.protocol import Detector, run_detector
from hallulab.scenarios.errors import HallulabError, ReplayMiss
from hallulab.scenarios.transcript import Call, StopReason, Turn, TurnView, Verdict
from hallulab.simulator.chat.drafts import DraftFollower, ReplyDraft
from hallulab.simulator.chat.journal import LiveJournal
from hallulab.simulator.engine.conversation import (
    ChatbotAgent,
    ConversationKey,
    Ending,
    build_ended_conversation,
)
from hallulab.simulator.engine.stage import Stage
from hallulab.simulator.records.experiment import Component


class ReplyFailed(HallulabError):
    """The chatbot gave no reply. The turns before it are kept."""


class LiveChat:
    """One conversation of a person with a chatbot. What was said is on disk when `say` returns.

    Args:
        stage: the models and participants.
        bot: the chatbot that answers.
        detectors: those that judge.
        key: what identifies the conversation.
        journal: where it is written.
    """

    def __init__(
        self,
        stage: Stage,
        bot: Component,
        detectors: Sequence[Detector],
        key: ConversationKey,
        journal: LiveJournal,
    ) -> None:
        self._stage = stage
        self._bot = bot
        self.detectors = detectors
        self.key = key
        self.folder = journal.folder
        self._journal = journal
        self._chatbot = stage.participants.make_chatbot_for(bot, key)
        self.turns: list[Turn] = []
        self._calls: list[Call] = []
        self.over: str | None = None
        """Why nothing more can be said; None: it can."""

    @property
    def is_saved(self) -> bool:
        """Whether something of it is on disk."""
        return self._journal.is_written

    async def say(self, message: str, tell: Callable[[ReplyDraft], None]) -> Turn:
        """Have the chatbot answer a message; return the turn.

        Cancelling it stops the reply: the message is forgotten, the turns before it stay.

        Args:
            message: what is said.
            tell: gets the reply as it is made.

        Raises:
            ReplyFailed: there is no reply, or the replayed recording has no answer to the message.
            OperationalError: the turn cannot be written.
        """
        if self.over is not None:
            raise ReplyFailed(self.over)
        agent = ChatbotAgent(self._chatbot, self.key.chatbot, (), self.turns, lambda turn: None)
        move = UserMove(text=remove_keys(message))
        try:
            with watching(DraftFollower(self._bot, tell).follow):
                spoken = await agent.speak(StructuredMessage[UserMove](content=move, source="user"))
        except asyncio.CancelledError:
            self._begin_anew("it was stopped within a reply")
            raise
        except ReplayMiss as miss:
            self._begin_anew("the recording has no reply of it")
            raise ReplyFailed(str(miss)) from miss
        if isinstance(spoken, Ending):
            self._calls += spoken.calls
            error = remove_keys(spoken.error or "there is no reply")
            self._write(error)
            self._begin_anew("a reply of it failed")
            raise ReplyFailed(error)
        self.turns = agent.turns
        evidence = self._stage.participants.evidence
        try:
            if evidence is not None:
                self.turns[-1] = await evidence.complete(self.turns[-1])
        finally:
            self._write(None)
        return self.turns[-1]

    async def judge(self, turn: Turn) -> AsyncIterator[Verdict]:
        """Yield the detectors' verdicts on a turn as they come; each is on disk by then.

        Raises:
            ReplayMiss: the replayed recording lacks an answer to one; the others have judged by then.
        """
        view = TurnView(
            history=tuple(said for earlier in self.turns[: turn.index] for said in earlier.messages),
            question=turn.user,
            passages=turn.passages,
            reply=turn.reply,
            knowledge=self._stage.participants.knowledge,
        )
        judging = [asyncio.create_task(self._judge(turn, view, one)) for one in self.detectors]
        missed: ReplayMiss | None = None
        try:
            for judged in asyncio.as_completed(judging):
                try:
                    verdict = await judged
                except ReplayMiss as miss:
                    missed = miss
                    continue
                yield verdict
            if missed is not None:
                raise missed
        finally:
            for task in judging:
                task.cancel()
            await asyncio.gather(*judging, return_exceptions=True)

    async def _judge(self, turn: Turn, view: TurnView, detector: Detector) -> Verdict:
        [judgement] = await run_detector(detector, [view])
        verdict = Verdict(
            **dict(judgement),
            conversation=self.key.id,
            turn=turn.index,
            detector=detector.name,
            version=detector.version,
        )
        self._journal.add(verdict)
        return verdict

    def _write(self, error: str | None) -> None:
        reason: StopReason = "unknown" if error is None else "error"
        self._journal.write(build_ended_conversation(self.key, reason, self.turns, error, self._calls))

    def _begin_anew(self, why: str) -> None:
        """Make the chatbot anew, which may be in the middle of something; not one that remembers."""
        if has_memory(self._chatbot):
            self.over = (
                f"chatbot {self.key.chatbot} remembers the conversation itself, and {why}: this conversation "
                "cannot go on. Begin another one."
            )
        else:
            self._chatbot = self._stage.participants.make_chatbot_for(self._bot, self.key)
