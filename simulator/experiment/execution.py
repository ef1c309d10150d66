"""Run an experiment: have what is lacking done, and journal everything as soon as it is there."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import groupby
from typing import Protocol

from hallulab.scenarios.errors import HallulabError, ReplayMiss, get_first_error
from hallulab.scenarios.files.jsonl import LineWriter
from hallulab.scenarios.transcript import Conversation, Turn, Verdict
from hallulab.simulator.experiment.plan import Job, Plan
from hallulab.simulator.experiment.stage import ConversationTask, Executor, LocalExecutor, Participants
from hallulab.simulator.runs.audit_log import AuditLog, read_chain
from hallulab.simulator.runs.folder import RunFolder
from hallulab.simulator.runs.journals import (
    Journals,
    LineHeader,
    VerdictKey,
    build_verdict_key,
    derive_first_try,
)


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


ROOM = 4
"""Conversations under way at most, those that wait for verdicts included, in `Executor.concurrency`."""


async def execute(
    cast: Participants,
    jobs: Sequence[Job] | Plan,
    folder: RunFolder,
    observer: Observer,
    journals: Journals | None = None,
    crew: Executor | None = None,
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
        crew: who does the work; None: this process.

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
        run = _JournalWriter(
            cast, crew or LocalExecutor(cast), journals, observer, conversations, verdicts, audit
        )
        for held in journals.conversations:
            audit.add(held)
        missing = run.expect(jobs)
        try:
            async with asyncio.TaskGroup() as tasks:
                await run.judge_held(tasks)
                if missing:
                    await run.hold_missing(jobs, tasks)
        except* (HallulabError, ReplayMiss, OSError) as group:
            raise get_first_error(group) from group


@contextmanager
def freeze_long_lived_objects() -> Iterator[None]:
    """Collect garbage without the libraries' objects, which live as long as the process anyway.

    The embedding model's libraries have over 600 000 objects. Each full collection looks at all of them and
    stops every conversation for 0.4 s, an eighth of the runner's time (`python -m benchmarks.orchestration`).
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class _JournalWriter:
    """Gives out work, and writes what comes of it: nobody else writes."""

    def __init__(
        self,
        cast: Participants,
        crew: Executor,
        journals: Journals,
        observer: Observer,
        conversations: LineWriter,
        verdicts: LineWriter,
        audit: AuditLog,
    ) -> None:
        self._detectors = cast.detectors
        self._crew = crew
        self._observer = observer
        self._conversations = conversations
        self._verdicts = verdicts
        self._audit = audit
        self._journals = journals
        self._failed = {
            derive_first_try(head.id): at for at, head in enumerate(journals.heads) if head.failed
        }
        self._done = {derive_first_try(head.id) for head in journals.heads} - self._failed.keys()
        self._again: set[str] = set()
        """First tries of failed conversations that are tried again."""
        self._judged = {key: at for at, key in enumerate(journals.keys)}
        self._room = asyncio.Semaphore(ROOM * crew.concurrency)
        self._groups = 0

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
            lacking = self._lacking(head)
            if lacking:
                await self._room.acquire()
                work = ConversationTask(None, self._journals.conversations[at], lacking, self._new_group())
                tasks.create_task(self._perform(work))

    async def hold_missing(self, jobs: Iterable[Job], tasks: asyncio.TaskGroup) -> None:
        """Start to hold the conversations that are missing, as soon as there is room for each."""
        missing = (job for job in jobs if job.key.id not in self._done)
        for _, group in groupby(missing, key=_build_user_key):
            # Chatbots share answers about the same user, so these are kept until the last one has ended.
            same, number = list(group), self._new_group()
            for job in same:
                await self._room.acquire()
                at = self._failed.get(job.key.id)
                failed = None if at is None else self._journals.conversations[at]
                lacking = () if at is None else self._lacking(self._journals.heads[at])
                tasks.create_task(self._perform(ConversationTask(job, failed, lacking, number, len(same))))

    def turn_done(self, turn: Turn) -> None:
        """See `WorkObserver`."""
        self._observer.turn_done(turn)

    def held(self, conversation: Conversation, lacking: Sequence[VerdictKey]) -> None:
        """Write a conversation, unless it failed as its earlier try did: that stands there already."""
        at = self._failed.get(derive_first_try(conversation.id))
        if at is None or self._journals.heads[at].id != conversation.id:
            self._conversations.append(conversation.model_dump_json())
            self._audit.add(conversation)
        self._observer.conversation_done(conversation, len(lacking))

    def judged(self, verdict: Verdict) -> None:
        """Write a verdict, unless it failed as it did before."""
        at = self._judged.get(build_verdict_key(verdict))
        if at is None or self._journals.verdicts[at].error != verdict.error:
            self._verdicts.append(verdict.model_dump_json())
        self._observer.verdict_done(verdict)

    async def _perform(self, work: ConversationTask) -> None:
        """Have the work done, and then make room for the next conversation."""
        try:
            await self._crew.perform(work, self)
        finally:
            self._room.release()

    def _new_group(self) -> int:
        self._groups += 1
        return self._groups

    def _to_judge(self) -> Iterator[tuple[int, LineHeader]]:
        """Yield the conversations of the journal that are not tried again, with their positions."""
        for at, head in enumerate(self._journals.heads):
            if derive_first_try(head.id) not in self._again:
                yield at, head

    def _lacking(self, head: LineHeader) -> tuple[VerdictKey, ...]:
        """Return the verdicts that a conversation lacks."""
        keys = (
            VerdictKey(head.id, turn, detector.name, detector.version)
            for turn in range(head.turns)
            for detector in self._detectors
        )
        return tuple(key for key in keys if key not in self._judged or key in self._journals.failed)


def _build_user_key(job: Job) -> tuple[object, ...]:
    """Return what is the same for all chatbots that have the same user."""
    key = job.key
    return (key.persona, key.seed, key.branch and (key.branch.conversation, key.branch.turn))
