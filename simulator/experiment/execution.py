"""Run an experiment: many conversations at once, each judged as soon as it ends, everything journalled."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Protocol

from agents.foreign import require_running
from agents.models.replicas import staying
from chatbots.protocol import Chatbot
from detectors.base.checking import run_detector
from detectors.base.protocol import Detector
from scenarios.errors import HallulabError, ReplayMiss, first_of
from scenarios.files.jsonl import LineWriter
from scenarios.transcript import Conversation, Message, Retriever, Turn, TurnView, Verdict
from simulator.experiment.config import Component
from simulator.experiment.conversation import User, converse
from simulator.experiment.plan import Job, Plan
from simulator.runs.audit_log import AuditLog, read_chain
from simulator.runs.folder import RunFolder
from simulator.runs.journals import Head, Journals, VerdictKey, first_try, head_of, next_try, verdict_key


class Observer(Protocol):
    """Is told what happens, for progress bars."""

    def expect(self, conversations: int, verdicts: int) -> None:
        """Expect this many more."""

    def turn_done(self, turn: Turn) -> None:
        """Count a simulated turn."""

    def conversation_done(self, conversation: Conversation, verdicts: int) -> None:
        """Count a conversation that ended; expect `verdicts` from it."""

    def verdict_done(self, verdict: Verdict) -> None:
        """Count a verdict."""


@dataclass(frozen=True)
class Cast:
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


ROOM = 4
"""Conversations under way at most, those that wait for verdicts included, in `Cast.concurrency`."""


async def execute(
    cast: Cast,
    jobs: Sequence[Job] | Plan,
    folder: RunFolder,
    observer: Observer,
    journals: Journals | None = None,
) -> None:
    """Hold the conversations that the folder lacks, and judge all turns that lack a verdict.

    Failed conversations and failed verdicts count as lacking: they are tried again. Only conversations under
    way are in memory, at most `ROOM` times as many as are held at once.

    Args:
        cast: who takes part.
        jobs: the conversations wanted.
        folder: where the journals are.
        observer: is told what happens.
        journals: their content, if it was read already.

    Raises:
        OperationalError: a journal cannot be written. What was written is intact. Or the audit log was
            edited; nothing is added to it then.
        ReplayMiss: the recording that is replayed does not hold an answer.
    """
    journals = journals or folder.read_journals()
    with (
        folder.open_conversations() as conversations,
        folder.open_verdicts() as verdicts,
        closing(AuditLog(folder.audit, read_chain(folder.audit))) as audit,
    ):
        run = _Run(cast, journals, observer, conversations, verdicts, audit)
        for held in journals.conversations:
            audit.add(held)
        missing = run.expect(jobs)
        try:
            async with asyncio.TaskGroup() as tasks:
                await run.judge_held(tasks)
                if missing:
                    await run.hold_missing(jobs, tasks)
        except* (HallulabError, ReplayMiss, OSError) as group:
            raise first_of(group) from group


@contextmanager
def long_lived_objects_left_alone() -> Iterator[None]:
    """Collect garbage without the libraries' objects, which live as long as the process anyway.

    The embedding model's libraries have over 600 000 objects. Each full collection looks at all of them and
    stops every conversation for 0.4 s, an eighth of the runner's time (`python -m benchmarks.orchestration`).
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class _Run:
    def __init__(
        self,
        cast: Cast,
        journals: Journals,
        observer: Observer,
        conversations: LineWriter,
        verdicts: LineWriter,
        audit: AuditLog,
    ) -> None:
        self._cast = cast
        self._observer = observer
        self._conversations = conversations
        self._verdicts = verdicts
        self._audit = audit
        self._journals = journals
        self._failed = {first_try(head.id): at for at, head in enumerate(journals.heads) if head.failed}
        self._done = {first_try(head.id) for head in journals.heads} - self._failed.keys()
        self._again: set[str] = set()
        """First tries of failed conversations that are tried again."""
        self._judged = {key: at for at, key in enumerate(journals.keys)}
        self._room = asyncio.Semaphore(ROOM * cast.concurrency)
        self._stage = asyncio.Semaphore(cast.concurrency)
        self._bench = asyncio.Semaphore(cast.concurrency)

    def expect(self, jobs: Sequence[Job] | Plan) -> int:
        """Tell the observer what is lacking, and return the number of conversations."""
        missing = len(jobs)
        if self._done or self._failed:
            lacking = [job.key.id for job in jobs if job.key.id not in self._done]
            missing, self._again = len(lacking), self._failed.keys() & lacking
        self._observer.expect(missing, 0)
        self._observer.expect(0, sum(len(self._lacking(head)) for _, head in self._to_judge()))
        return missing

    async def judge_held(self, tasks: asyncio.TaskGroup) -> None:
        """Start to judge the conversations of the journal, as soon as there is room for each."""
        for at, head in self._to_judge():
            if self._lacking(head):
                await self._room.acquire()
                conversation = self._journals.conversations[at]
                tasks.create_task(self._leaving(self._judge(conversation), self._shared(1)))

    async def hold_missing(self, jobs: Iterable[Job], tasks: asyncio.TaskGroup) -> None:
        """Start to hold the conversations that are missing, as soon as there is room for each."""
        missing = (job for job in jobs if job.key.id not in self._done)
        for _, group in groupby(missing, key=_user):
            # Chatbots share answers about the same user, so these are kept until the last one has ended.
            same = list(group)
            shared = self._shared(len(same))
            for job in same:
                await self._room.acquire()
                tasks.create_task(self._leaving(self._hold(job), shared))

    def _shared(self, conversations: int) -> _Shared:
        return _Shared(self._cast.remembering(), conversations)

    async def _leaving(self, work: Coroutine[None, None, None], shared: _Shared) -> None:
        """Do the work on a conversation, and then make room for the next one."""
        try:
            with staying():
                await work
        finally:
            shared.one_ended()
            self._room.release()

    async def _hold(self, job: Job) -> None:
        """Hold and judge a conversation. If an earlier try failed alike, do not write the failure again."""
        at = self._failed.get(job.key.id)
        failed = None if at is None else self._journals.conversations[at]
        key = job.key if failed is None else replace(job.key, id=next_try(failed.id))
        async with self._stage:
            conversation = await converse(
                key,
                self._cast.user(job),
                self._cast.chatbot(job.chatbot, job.key.seed),
                job.most_turns(self._cast.max_turns),
                self._observer.turn_done,
            )
        require_running()
        if failed is not None and _failed_alike(failed, conversation):
            conversation = failed
        else:
            self._conversations.append(conversation.model_dump_json())
            self._audit.add(conversation)
        self._observer.conversation_done(conversation, len(self._lacking(head_of(conversation))))
        await self._judge(conversation)

    def _to_judge(self) -> Iterator[tuple[int, Head]]:
        """Yield the conversations of the journal that are not tried again, with their positions."""
        for at, head in enumerate(self._journals.heads):
            if first_try(head.id) not in self._again:
                yield at, head

    def _lacking(self, head: Head) -> list[tuple[int, Detector]]:
        """Return the judgements that a conversation lacks: turns and detectors."""
        return [
            (turn, detector)
            for turn in range(head.turns)
            for detector in self._cast.detectors
            if self._lacks(VerdictKey(head.id, turn, detector.name, detector.version))
        ]

    def _lacks(self, key: VerdictKey) -> bool:
        return key not in self._judged or key in self._journals.failed

    async def _judge(self, conversation: Conversation) -> None:
        """Make the judgements that a conversation lacks."""
        said = conversation.history(len(conversation.turns))
        async with asyncio.TaskGroup() as tasks:
            for turn, detector in self._lacking(head_of(conversation)):
                tasks.create_task(self._judge_turn(conversation, said, conversation.turns[turn], detector))

    async def _judge_turn(
        self, conversation: Conversation, said: Sequence[Message], turn: Turn, detector: Detector
    ) -> None:
        async with self._bench:
            history = tuple(said[: 2 * conversation.depth(turn.index)])
            view = TurnView(
                history=history,
                question=turn.user,
                passages=turn.passages,
                reply=turn.reply,
                knowledge=self._cast.knowledge,
            )
            [judgement] = await run_detector(detector, [view])
        require_running()
        verdict = Verdict(
            **dict(judgement),
            conversation=conversation.id,
            turn=turn.index,
            detector=detector.name,
            version=detector.version,
        )
        at = self._judged.get(verdict_key(verdict))
        if at is None or self._journals.verdicts[at].error != verdict.error:
            self._verdicts.append(verdict.model_dump_json())
        self._observer.verdict_done(verdict)


class _Shared:
    """Keeps answers of models until the last of several conversations has ended."""

    def __init__(self, kept: AbstractContextManager[None], conversations: int) -> None:
        self._kept, self._left = kept, conversations
        kept.__enter__()

    def one_ended(self) -> None:
        """Count a conversation that ended."""
        self._left -= 1
        if not self._left:
            self._kept.__exit__(None, None, None)


def _user(job: Job) -> tuple[object, ...]:
    """Return what is the same for all chatbots that have the same user."""
    key = job.key
    return (key.persona, key.seed, key.branch and (key.branch.conversation, key.branch.turn))


def _failed_alike(one: Conversation, other: Conversation) -> bool:
    """Return whether both failed for the same reason, after the same words."""
    said = [[(turn.user, turn.reply) for turn in held.turns] for held in (one, other)]
    return other.stop_reason == "error" and one.error == other.error and said[0] == said[1]
