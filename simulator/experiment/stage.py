"""Hold conversations and judge their turns, many at once, and tell what comes of it.

What is done here writes nothing, so it can be done in any process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Protocol

from hallulab.agents.foreign import require_running
from hallulab.agents.models.replicas import staying
from hallulab.chatbots.protocol import Chatbot
from hallulab.detectors.base.checking import run_detector
from hallulab.detectors.base.protocol import Detector
from hallulab.scenarios.transcript import Conversation, Message, Retriever, Turn, TurnView, Verdict
from hallulab.simulator.experiment.config import Component
from hallulab.simulator.experiment.conversation import ConversationKey, User, converse
from hallulab.simulator.experiment.plan import Job
from hallulab.simulator.runs.journals import VerdictKey, derive_next_try


@dataclass(frozen=True)
class Participants:
    """Makes users and chatbots for jobs, and holds the judges."""

    user: Callable[[Job], User]
    """Makes the simulated user of a job."""
    chatbot: Callable[[Component, int], Chatbot]
    """Makes a chatbot for a conversation with a seed."""
    detectors: Sequence[Detector]
    """The judges."""
    knowledge: Retriever | None
    """The knowledge base that detectors may search."""
    max_turns: int
    """Replies after which a conversation is stopped."""
    concurrency: int
    """Conversations held, and turns judged, at the same time."""
    remembering: Callable[[], AbstractContextManager[None]] = nullcontext
    """Keeps answers of models until it ends (`Recording.stretch`)."""


@dataclass(frozen=True)
class ConversationTask:
    """What a conversation lacks."""

    job: Job | None
    """The conversation, to be held; None: it is held already."""
    known: Conversation | None
    """The conversation if it is held already; or an earlier try that failed; or None."""
    lacking: tuple[VerdictKey, ...]
    """The verdicts that `known` lacks. A conversation that is held now lacks all."""
    group: int
    """Number of a group of conversations. They share answers of models, which are kept for all of them."""
    of_group: int = 1
    """How many there are in the group."""

    @property
    def key(self) -> ConversationKey:
        """What identifies the conversation to be held: after a failed try, the next one."""
        assert self.job is not None
        key = self.job.key
        return key if self.known is None else replace(key, id=derive_next_try(self.known.id))


class WorkObserver(Protocol):
    """Is told what comes of work."""

    def turn_done(self, turn: Turn) -> None:
        """Hear of a simulated turn."""

    def held(self, conversation: Conversation, lacking: Sequence[VerdictKey]) -> None:
        """Hear of a conversation that ended, and which verdicts come now.

        If it failed as its earlier try did, it is that try.
        """

    def judged(self, verdict: Verdict) -> None:
        """Hear of a verdict."""


class Executor(Protocol):
    """Does work."""

    @property
    def concurrency(self) -> int:
        """Conversations held, and turns judged, at the same time."""
        ...

    async def perform(self, work: ConversationTask, listener: WorkObserver) -> None:
        """Hold and judge a conversation."""


class LocalExecutor:
    """Does work in this process.

    Args:
        cast: who takes part.
    """

    def __init__(self, cast: Participants) -> None:
        self._cast = cast
        self._detectors = {detector.name: detector for detector in cast.detectors}
        self._groups: dict[int, _Shared] = {}
        self._stage = asyncio.Semaphore(cast.concurrency)
        self._bench = asyncio.Semaphore(cast.concurrency)
        self.concurrency = cast.concurrency

    async def perform(self, work: ConversationTask, listener: WorkObserver) -> None:
        """See `Executor`."""
        if work.group not in self._groups:
            self._groups[work.group] = _Shared(self._cast.remembering(), work.of_group)
        try:
            with staying():
                conversation: Conversation | None = work.known
                lacking: Sequence[VerdictKey] = work.lacking
                if work.job is not None:
                    conversation, lacking = await self._hold(work, work.job, listener)
                assert conversation is not None
                await self._judge(conversation, lacking, listener)
        finally:
            if self._groups[work.group].one_ended():
                del self._groups[work.group]

    async def _hold(
        self, work: ConversationTask, job: Job, listener: WorkObserver
    ) -> tuple[Conversation, Sequence[VerdictKey]]:
        async with self._stage:
            conversation = await converse(
                work.key,
                self._cast.user(job),
                self._cast.chatbot(job.chatbot, job.key.seed),
                job.most_turns(self._cast.max_turns),
                listener.turn_done,
            )
        require_running()
        lacking = [
            VerdictKey(conversation.id, turn, detector.name, detector.version)
            for turn in range(len(conversation.turns))
            for detector in self._cast.detectors
        ]
        if work.known is not None and is_same_failure(work.known, conversation):
            conversation, lacking = work.known, list(work.lacking)
        listener.held(conversation, lacking)
        return conversation, lacking

    async def _judge(
        self, conversation: Conversation, lacking: Sequence[VerdictKey], listener: WorkObserver
    ) -> None:
        said = conversation.history(len(conversation.turns))
        async with asyncio.TaskGroup() as tasks:
            for key in lacking:
                tasks.create_task(self._judge_turn(conversation, said, key, listener))

    async def _judge_turn(
        self, conversation: Conversation, said: Sequence[Message], key: VerdictKey, listener: WorkObserver
    ) -> None:
        turn = conversation.turns[key.turn]
        async with self._bench:
            view = TurnView(
                history=tuple(said[: 2 * conversation.depth(turn.index)]),
                question=turn.user,
                passages=turn.passages,
                reply=turn.reply,
                knowledge=self._cast.knowledge,
            )
            [judgement] = await run_detector(self._detectors[key.detector], [view])
        require_running()
        listener.judged(Verdict(**dict(judgement), **key._asdict()))


class _Shared:
    """Keeps answers of models until the last of several conversations has ended."""

    def __init__(self, kept: AbstractContextManager[None], conversations: int) -> None:
        self._kept, self._left = kept, conversations
        kept.__enter__()

    def one_ended(self) -> bool:
        """Count a conversation that ended; return whether it was the last one."""
        self._left -= 1
        if not self._left:
            self._kept.__exit__(None, None, None)
        return not self._left


def is_same_failure(one: Conversation, other: Conversation) -> bool:
    """Return whether both failed for the same reason, after the same words."""
    said = [[(turn.user, turn.reply) for turn in held.turns] for held in (one, other)]
    return other.stop_reason == "error" and one.error == other.error and said[0] == said[1]
