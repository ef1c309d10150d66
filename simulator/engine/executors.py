"""Executors hold conversations and judge their turns, many at once, and emit what comes of it as events.

An executor writes nothing, so it can work in any process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from hallulab.agents.concurrency import require_running
from hallulab.agents.machine.cache import building, replacing, silent
from hallulab.agents.models.adaptive import AdaptiveLimits
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.replicas import sticky_session
from hallulab.chatbots.protocol import has_memory
from hallulab.detectors.base.protocol import run_detector
from hallulab.scenarios.files.opening import read_file
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.transcript import Conversation, Message, Turn, Verdict
from hallulab.simulator.engine.conversation import ConversationKey, build_ended_conversation, converse
from hallulab.simulator.engine.participants import Participants
from hallulab.simulator.engine.plan import Job
from hallulab.simulator.engine.turn_views import build_view, reorder_passages
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.journal_lines import VerdictKey, build_verdict_key, derive_next_try


@dataclass(frozen=True)
class TurnDone:
    """A turn was simulated."""

    conversation: str
    turn: Turn
    resumable: bool = True
    """True if the conversation can continue after it when interrupted."""


@dataclass(frozen=True)
class ConversationDone:
    """A conversation ended. If it failed as its earlier try did, it is that try."""

    conversation: Conversation
    lacking: tuple[VerdictKey, ...]
    """The verdicts that come now."""


@dataclass(frozen=True)
class EvidenceFound:
    """The evidence of a conversation that is there already was searched."""

    conversation: Conversation


@dataclass(frozen=True)
class VerdictDone:
    """A turn was judged."""

    verdict: Verdict


Event = TurnDone | ConversationDone | EvidenceFound | VerdictDone
Emit = Callable[[Event], None]
"""Gets each event when it happens, before anything else does, so that what is journalled is never lost."""


Emitted = TypeVar("Emitted")


class WorkTask(Protocol[Emitted]):
    """A piece of work, for whatever executor can do it."""

    @property
    def group(self) -> int:
        """Number of a group of tasks that share answers of models, so one worker does them all."""
        ...

    @property
    def of_group(self) -> int:
        """How many there are in the group."""
        ...

    def subtract(self, event: Emitted) -> Self | None:
        """Return what is left after an event; None: nothing."""
        ...

    def fail(self, reason: str) -> Iterable[Emitted]:
        """Yield failures for what is left, because no worker can do it."""
        ...


class TaskExecutor(Protocol):
    """Performs tasks of a kind."""

    async def perform(self, task: Any, emit: Callable[[Any], None]) -> None:
        """Perform a task, and emit what comes of it."""


@dataclass(frozen=True, kw_only=True)
class SingleEventTask:
    """A task that is done with the one event that it emits (a `WorkTask`, but for `fail`)."""

    group: int = 0
    of_group: int = 1

    def subtract(self, event: object) -> None:
        """See `WorkTask`. Nothing is left behind the event."""


async def perform_single(executor: TaskExecutor, task: WorkTask[Emitted]) -> Emitted:
    """Perform a `SingleEventTask`, and return its event."""
    emitted: list[Emitted] = []
    await executor.perform(task, emitted.append)
    [event] = emitted
    return event


@dataclass(frozen=True)
class ConversationTask:
    """A conversation to hold or to judge, and the part of it that is missing."""

    job: Job | None
    """The conversation to simulate; None: it is there already."""
    known: Conversation | None
    """The conversation if it is there already; or an earlier try that failed; or None."""
    lacking: tuple[VerdictKey, ...]
    """The verdicts that `known` lacks. A conversation that is held now lacks all."""
    group: int
    """Number of a group of conversations. They share answers of models, which are kept for all of them."""
    of_group: int = 1
    again: bool = False
    """True if detectors are asked again: with another seed, and other passages first."""
    earlier: tuple[Turn, ...] = ()
    """The turns of the conversation to be simulated that are there already, because it was cut off."""

    @property
    def key(self) -> ConversationKey:
        """Key of the conversation to be simulated: after a failed try, that of the next one."""
        assert self.job is not None
        key = self.job.key
        return key if self.known is None else replace(key, id=derive_next_try(self.known.id))

    def subtract(self, event: Event) -> ConversationTask:
        """See `WorkTask`."""
        match event:
            case TurnDone(_, turn, True):
                return replace(self, earlier=(*self.earlier, turn))
            case ConversationDone(conversation, lacking):
                return replace(self, job=None, known=conversation, lacking=lacking, earlier=())
            case EvidenceFound(conversation):
                return replace(self, known=conversation)
            case VerdictDone(verdict):
                done = build_verdict_key(verdict)
                return replace(self, lacking=tuple(key for key in self.lacking if key != done))
        return self

    def fail(self, reason: str) -> Iterable[Event]:
        """See `WorkTask`."""
        if self.job is not None:
            failed = build_ended_conversation(self.key, "error", error=reason)
            known = self.known
            again = known if known is not None and is_same_failure(known, failed) else failed
            yield ConversationDone(again, ())
        for key in self.lacking:
            yield VerdictDone(Verdict(outcome="failed", error=reason, **key._asdict()))


class Executor(Protocol):
    """Holds and judges conversations."""

    @property
    def concurrency(self) -> int:
        """Conversations simulated, and turns judged, at the same time."""
        ...

    async def perform(self, task: ConversationTask, emit: Emit) -> None:
        """Hold a conversation, judge its turns, and emit what comes of it."""


class LocalExecutor:
    """Holds and judges conversations in this process."""

    def __init__(self, participants: Participants) -> None:
        self._participants = participants
        self._detectors = {detector.name: detector for detector in participants.detectors}
        self._groups: dict[int, _Shared] = {}
        # Two semaphores: conversations that are simulated must not wait for a slow detector.
        limits, most = participants.limits, participants.concurrency
        self._conversation_slots = limits.make_places() if limits else asyncio.Semaphore(most)
        self._judgement_slots = limits.make_places() if limits else asyncio.Semaphore(most)
        self.concurrency = participants.concurrency

    async def perform(self, task: ConversationTask, emit: Emit) -> None:
        """See `Executor`."""
        if task.group not in self._groups:
            self._groups[task.group] = _Shared(self._participants.keep_answers(), task.of_group)
        try:
            with sticky_session():
                conversation: Conversation | None = task.known
                lacking: Sequence[VerdictKey] = task.lacking
                if task.job is not None:
                    conversation, lacking = await self._hold(task, task.job, emit)
                assert conversation is not None
                if lacking:
                    conversation = await self._find_evidence(conversation, emit)
                await self._judge(conversation, lacking, emit, task.again)
        finally:
            if self._groups[task.group].one_ended():
                del self._groups[task.group]

    async def _hold(
        self, task: ConversationTask, job: Job, emit: Emit
    ) -> tuple[Conversation, Sequence[VerdictKey]]:
        async with self._conversation_slots:
            chatbot = self._participants.make_chatbot(job.chatbot, job.key)
            resumable = not has_memory(chatbot)
            with self._participants.count_as_work():
                conversation = await converse(
                    task.key,
                    self._participants.make_user(job),
                    chatbot,
                    job.most_turns(self._participants.max_turns),
                    lambda turn: emit(TurnDone(task.key.id, turn, resumable)),
                    task.earlier if resumable else (),
                )
        require_running()
        lacking = tuple(
            VerdictKey(conversation.id, turn, detector.name, detector.version)
            for turn in range(len(conversation.turns))
            for detector in self._participants.detectors
        )
        if task.known is not None and is_same_failure(task.known, conversation):
            conversation, lacking = task.known, task.lacking
        elif lacking and (evidence := self._participants.evidence) is not None:
            try:
                conversation = await evidence.complete_all(conversation)
            except BaseException:
                emit(ConversationDone(conversation, lacking))  # what was said is not lost
                raise
        emit(ConversationDone(conversation, lacking))
        return conversation, lacking

    async def _find_evidence(self, conversation: Conversation, emit: Emit) -> Conversation:
        """Return a conversation with its evidence; emit it if that was still to be searched."""
        if (evidence := self._participants.evidence) is None:
            return conversation
        found = await evidence.complete_all(conversation)
        if found is not conversation:
            emit(EvidenceFound(found))
        return found

    async def _judge(
        self, conversation: Conversation, lacking: Sequence[VerdictKey], emit: Emit, again: bool
    ) -> None:
        said = conversation.history(len(conversation.turns))
        async with asyncio.TaskGroup() as tasks:
            for key in lacking:
                tasks.create_task(self._judge_turn(conversation, said, key, emit, again))

    async def _judge_turn(
        self, conversation: Conversation, said: Sequence[Message], key: VerdictKey, emit: Emit, again: bool
    ) -> None:
        turn = conversation.turns[key.turn]
        async with self._judgement_slots:
            # A turn is two messages, and the depth counts those before a branch, too.
            before = said[: 2 * conversation.depth(turn.index)]
            known = conversation.list_passages(turn.index)
            view = build_view(turn, before, known, self._participants.evidence)
            detector = self._detectors[key.detector]
            if again:
                detector, view = self._participants.second_detectors[key.detector], reorder_passages(view)
            with self._participants.count_as_work():
                [judgement] = await run_detector(detector, [view])
        require_running()
        emit(VerdictDone(Verdict(**dict(judgement), **key._asdict())))


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


@dataclass(frozen=True)
class ConversationWork:
    """Conversations are simulated and judged (an `ExecutorMaker`)."""

    scenario: Scenario
    """The experiment's pack, with what an attack changed."""
    judge: bool
    max_turns: int
    vectors: Mapping[str, bytes] | None = None
    """The files of the documents' vectors, for machines that lack them; None: no machine does."""
    by_words: bool = False

    def make_executor(
        self, experiment: Experiment, pool: ModelPool, limits: AdaptiveLimits | None
    ) -> LocalExecutor:
        """See `ExecutorMaker`."""
        participants = Participants(
            experiment, self.scenario, pool, self.judge, self.max_turns, limits, by_words=self.by_words
        )
        if self.vectors is not None:
            place_vectors(participants.knowledge_base.folder, self.vectors)
        return LocalExecutor(participants)


def place_vectors(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the documents' vectors where they belong, unless they are there.

    Raises:
        OperationalError: the cache cannot be written.
    """
    with building(folder, silent):
        if not folder.exists():
            with replacing(folder) as partial:
                for name, content in files.items():
                    path = partial / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)


def read_vectors(folder: Path) -> dict[str, bytes] | None:
    """Return the files of the documents' vectors by their names; None: there are none yet."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): read_file(path) for path in files} or None
