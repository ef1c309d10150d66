"""Run an experiment: many conversations at once, each judged as soon as it ends, everything journalled."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from agents.foreign import require_running
from chatbots.protocol import Chatbot
from detectors.base.checking import run_detector
from detectors.base.protocol import Detector
from scenarios.errors import HallulabError, ReplayMiss
from scenarios.files.jsonl import LineWriter
from scenarios.transcript import Conversation, Message, Retriever, Turn, TurnView, Verdict
from simulator.experiment.config import Component
from simulator.experiment.conversation import User, converse
from simulator.experiment.plan import Job
from simulator.runs.audit_log import AuditLog, read_chain
from simulator.runs.folder import RunFolder
from simulator.runs.journals import Journals, first_try, next_try, verdict_key


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


async def execute(
    cast: Cast,
    jobs: Sequence[Job],
    folder: RunFolder,
    observer: Observer,
    journals: Journals | None = None,
) -> Journals:
    """Hold the conversations that the folder lacks, and judge all turns that lack a verdict.

    Failed conversations and failed verdicts count as lacking: they are tried again.

    Args:
        cast: who takes part.
        jobs: the conversations wanted.
        folder: where the journals are.
        observer: is told what happens.
        journals: their content, if it was read already.

    Returns:
        Their content now: what `folder.read_journals()` would read.

    Raises:
        OperationalError: a journal cannot be written. What was written is intact. Or the audit log was
            edited; nothing is added to it then.
        ReplayMiss: the recording that is replayed does not hold an answer.
    """
    journals = journals or folder.read_journals()
    journal = journals.conversations
    failed = {first_try(held.id): held for held in journal if held.stop_reason == "error"}
    done = {first_try(held.id) for held in journal} - failed.keys()
    missing = [job for job in jobs if job.key.id not in done]
    again = {job.key.id for job in missing}
    with (
        folder.open_conversations() as conversations,
        folder.open_verdicts() as verdicts,
        closing(AuditLog(folder.audit, read_chain(folder.audit))) as audit,
    ):
        run = _Run(cast, journals, observer, conversations, verdicts, audit)
        for held in journal:
            audit.add(held)
        observer.expect(len(missing), 0)
        try:
            async with asyncio.TaskGroup() as tasks:
                for held in journal:
                    if first_try(held.id) not in again:
                        observer.expect(0, run.judge(held, tasks))
                for job in missing:
                    tasks.create_task(run.hold(job, failed.get(job.key.id), tasks))
        except* (HallulabError, ReplayMiss) as group:
            raise _first(group) from group
    return run.journals()


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


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


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
        self._held = {held.id: held for held in journals.conversations}
        self._judged = {verdict_key(verdict): verdict for verdict in journals.verdicts}
        self._stage = asyncio.Semaphore(cast.concurrency)
        self._bench = asyncio.Semaphore(cast.concurrency)

    def journals(self) -> Journals:
        """Return the content of the journals; a next try replaces what failed."""
        return Journals([*self._held.values()], [*self._judged.values()])

    async def hold(self, job: Job, failed: Conversation | None, tasks: asyncio.TaskGroup) -> None:
        """Hold a conversation. If an earlier try `failed` alike, do not write the failure again."""
        key = job.key if failed is None else replace(job.key, id=next_try(failed.id))
        async with self._stage:
            conversation = await converse(
                key,
                self._cast.user(job),
                self._cast.chatbot(job.chatbot, job.key.seed),
                self._cast.max_turns,
                self._observer.turn_done,
            )
        require_running()
        if failed is not None and _failed_alike(failed, conversation):
            conversation = failed
        else:
            self._conversations.append(conversation.model_dump_json())
            self._audit.add(conversation)
            self._held[key.id if failed is None else failed.id] = conversation
        self._observer.conversation_done(conversation, self.judge(conversation, tasks))

    def judge(self, conversation: Conversation, tasks: asyncio.TaskGroup) -> int:
        """Start the judgements that this conversation lacks, and return their number."""
        said = conversation.history(len(conversation.turns))
        wanted = [
            (turn, detector)
            for turn in conversation.turns
            for detector in self._cast.detectors
            if self._lacks((conversation.id, turn.index, detector.name, detector.version))
        ]
        for turn, detector in wanted:
            tasks.create_task(self._judge_turn(conversation, said, turn, detector))
        return len(wanted)

    def _lacks(self, key: tuple[str, int, str, str]) -> bool:
        return key not in self._judged or self._judged[key].outcome == "failed"

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
        key = verdict_key(verdict)
        if key not in self._judged or self._judged[key].error != verdict.error:
            self._verdicts.append(verdict.model_dump_json())
            self._judged[key] = verdict
        self._observer.verdict_done(verdict)


def _failed_alike(one: Conversation, other: Conversation) -> bool:
    """Return whether both failed for the same reason, after the same words."""
    said = [[(turn.user, turn.reply) for turn in held.turns] for held in (one, other)]
    return other.stop_reason == "error" and one.error == other.error and said[0] == said[1]
