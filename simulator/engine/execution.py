"""Hold and judge what a run folder lacks, and journal everything as soon as it is there.

A turn is a line of `turns.jsonl` from when it ends until its conversation is in the journal of conversations.
So the file is empty or missing unless a run is under way or was cut off.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from pydantic import ValidationError

from hallulab.detectors.base.protocol import Detector
from hallulab.scenarios.errors import HallulabError, ReplayMiss, UsageError, get_first_error
from hallulab.scenarios.files.atomic import write_atomically
from hallulab.scenarios.files.json_text import LineWriter, read_lines
from hallulab.scenarios.transcript import Frozen, Turn
from hallulab.simulator.engine.executors import (
    ConversationDone,
    ConversationTask,
    Event,
    EvidenceFound,
    Executor,
    TurnDone,
    VerdictDone,
)
from hallulab.simulator.engine.plan import Job, Plan
from hallulab.simulator.records.experiment_file import describe_flaw
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journal_lines import (
    LineHeader,
    VerdictKey,
    build_verdict_key,
    derive_first_try,
    derive_next_try,
)
from hallulab.simulator.records.journals import Journals

ROOM = 4
"""Conversations under way at most, those that wait for verdicts included, in `Executor.concurrency`."""


class Observer(Protocol):
    """Follows a run, for progress bars."""

    def expect(self, conversations: int, verdicts: int) -> None:
        """Expect this many more."""

    def update(self, event: Event) -> None:
        """Count what happened."""


async def execute(
    detectors: Sequence[Detector],
    jobs: Sequence[Job] | Plan,
    folder: RunFolder,
    observer: Observer,
    journals: Journals,
    executor: Executor,
) -> None:
    """Hold the conversations that the folder lacks, and judge all turns that lack a verdict.

    Failed conversations and failed verdicts count as lacking: they are tried again. Only conversations under
    way are in memory, at most `ROOM` times as many as are held at once.

    Raises:
        OperationalError: a journal cannot be written. Written lines are intact.
        ReplayMiss: the recording that is replayed does not hold an answer.
    """
    index = JournalIndex(journals, folder.turns)
    backlog = Backlog(jobs, index, detectors)
    room = asyncio.Semaphore(ROOM * executor.concurrency)
    with JournalWriter(folder, index, len(jobs)) as writer:
        observer.expect(*backlog.count())

        def emit(event: Event) -> None:
            writer.append(event)
            observer.update(event)

        async def perform(task: ConversationTask) -> None:
            for turn in task.earlier:
                observer.update(TurnDone(task.key.id, turn))
            try:
                await executor.perform(task, emit)
            finally:
                room.release()

        try:
            async with asyncio.TaskGroup() as tasks:
                for task in backlog:
                    await room.acquire()
                    tasks.create_task(perform(task))
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


class JournalIndex:
    """Where a conversation or a verdict stands in the journals.

    Args:
        turns: the file of the turns of conversations that were cut off; it need not exist.
    """

    def __init__(self, journals: Journals, turns: Path) -> None:
        self.journals = journals
        self.turns = read_turns(turns, {head.id for head in journals.heads}) if turns.exists() else {}
        """Turns of conversations that were cut off, by their identifiers."""
        self.failed = {derive_first_try(head.id): at for at, head in enumerate(journals.heads) if head.failed}
        """Positions of failed conversations by the ids of their first tries."""
        self.judged = {key: at for at, key in enumerate(journals.keys)}
        """Positions of verdicts, failed ones included."""


class Backlog:
    """Work that a run folder lacks: conversations to hold, and turns to judge."""

    def __init__(
        self, jobs: Sequence[Job] | Plan, index: JournalIndex, detectors: Sequence[Detector]
    ) -> None:
        self._jobs = jobs
        self._index = index
        self._journals = index.journals
        self._detectors = detectors
        self._done = {derive_first_try(head.id) for head in self._journals.heads} - index.failed.keys()
        self._missing = len(jobs)
        self._again: set[str] = set()
        """First tries of failed conversations that are tried again."""
        if self._done or index.failed:
            lacking = [job.key.id for job in jobs if job.key.id not in self._done]
            self._missing, self._again = len(lacking), index.failed.keys() & lacking

    def count(self) -> tuple[int, int]:
        """Return how many conversations are lacking, and how many verdicts on those that are held."""
        return self._missing, sum(len(self._list_lacking(head)) for _, head in self._iterate_held())

    def __iter__(self) -> Iterator[ConversationTask]:
        """Yield a task for each conversation, first for those that are only judged."""
        groups = 0
        for at, head in self._iterate_held():
            lacking = self._list_lacking(head)
            if lacking:
                groups += 1
                yield ConversationTask(None, self._journals.conversations[at], lacking, groups)
        missing = (job for job in self._jobs if job.key.id not in self._done)
        for _, group in groupby(missing, key=_build_user_key):
            # Chatbots share answers about the same user, so these are kept until the last one has ended.
            same = list(group)
            groups += 1
            for job in same:
                tried = self._index.failed.get(job.key.id)
                failed = None if tried is None else self._journals.conversations[tried]
                lacking = () if tried is None else self._list_lacking(self._journals.heads[tried])
                task = ConversationTask(job, failed, lacking, groups, len(same))
                yield replace(task, earlier=tuple(self._index.turns.get(task.key.id, ())))

    def _iterate_held(self) -> Iterator[tuple[int, LineHeader]]:
        """Yield the conversations of the journal that are not tried again, with their positions."""
        for at, head in enumerate(self._journals.heads):
            if derive_first_try(head.id) not in self._again:
                yield at, head

    def _list_lacking(self, head: LineHeader) -> tuple[VerdictKey, ...]:
        """Return the verdicts that a conversation lacks."""
        keys = (
            VerdictKey(head.id, turn, detector.name, detector.version)
            for turn in range(head.turns)
            for detector in self._detectors
        )
        return tuple(key for key in keys if key not in self._index.judged or key in self._journals.failed)


class JournalWriter:
    """Appends to the journals of a run folder; no other code writes them.

    Raises:
        OperationalError: a file cannot be opened.
    """

    def __init__(self, folder: RunFolder, index: JournalIndex, planned: int) -> None:
        self._index = index
        self._journals = index.journals
        with ExitStack() as files:
            self._written = files.enter_context(folder.open_journals(index.journals, planned))
            self._turns = TurnJournal(folder.turns, index.turns)
            files.callback(self._turns.close)
            self._files = files.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()

    def append(self, event: Event) -> None:
        """Write what happened, except a failure like that of an earlier try: that stands there already."""
        match event:
            case TurnDone(conversation, turn, True):
                self._turns.append(conversation, turn)
            case ConversationDone(conversation):
                at = self._index.failed.get(derive_first_try(conversation.id))
                if at is None or self._journals.heads[at].id != conversation.id:
                    self._written.add_conversation(conversation)
                self._turns.remove(conversation.id)
                self._turns.remove(derive_next_try(conversation.id))  # it failed as its earlier try did
            case EvidenceFound(conversation):  # a second line of the conversation, which counts
                self._written.add_conversation(conversation)
            case VerdictDone(verdict):
                at = self._index.judged.get(build_verdict_key(verdict))
                if at is None or self._journals.verdicts[at].error != verdict.error:
                    self._written.add_verdict(verdict)


def _build_user_key(job: Job) -> tuple[object, ...]:
    """Return what is the same for all chatbots that have the same user."""
    key = job.key
    return (key.persona, key.seed, key.branch and (key.branch.conversation, key.branch.turn))


MOST_DEAD_LINES = 1000
"""Lines of ended conversations in the file, above which it is rewritten; more if more lines are alive."""


class TurnLine(Frozen):
    """A line of `turns.jsonl`."""

    conversation: str
    turn: Turn


def read_turns(path: Path, ended: Container[str] = ()) -> dict[str, list[Turn]]:
    """Read the turns of conversations that were cut off.

    Args:
        path: the file; it need not exist.
        ended: identifiers of conversations that stand in their journal, and are left out here.

    Raises:
        UsageError: a line is wrong, or a turn before it is missing; names the line.
    """
    found: dict[str, list[Turn]] = {}
    for number, value in read_lines(path):
        try:
            line = TurnLine.model_validate(value)
        except ValidationError as error:
            raise UsageError(describe_flaw(path, number, error)) from error
        if line.conversation in ended:
            continue
        turns = found.setdefault(line.conversation, [])
        if line.turn.index == 0:
            turns.clear()  # a worker that died may have restarted the conversation
        if line.turn.index != len(turns):
            raise UsageError(
                f"{path}, line {number}: field `turn.index`: turn {line.turn.index} follows {len(turns)} "
                f"turns of conversation {line.conversation!r}. Delete the conversation's lines: it then "
                "starts over."
            )
        turns.append(line.turn)
    return found


class TurnJournal:
    """Appends turns, and removes those of conversations that have ended.

    Args:
        earlier: what stands in it and counts (`read_turns`).

    Raises:
        OperationalError: the file cannot be opened or written.
    """

    def __init__(self, path: Path, earlier: Mapping[str, Sequence[Turn]]) -> None:
        self.path = path
        self._alive = Counter({conversation: len(turns) for conversation, turns in earlier.items()})
        """Lines of each conversation that has not ended."""
        self._dead = 0
        if path.exists():
            self._write(earlier)
        self._file = LineWriter(path)

    def append(self, conversation: str, turn: Turn) -> None:
        """Write a turn. The operating system has it before this returns."""
        self._file.append(TurnLine(conversation=conversation, turn=turn).model_dump_json())
        self._alive[conversation] += 1

    def remove(self, conversation: str) -> None:
        """Remove the turns of a conversation, which stands in its own journal by now.

        Its lines may stay for a while. Whoever reads them knows that they do not count any more.
        """
        self._dead += self._alive.pop(conversation, 0)
        if not self._alive:
            self._file.clear()
            self._dead = 0
        elif self._dead > max(MOST_DEAD_LINES, self._alive.total()):
            self._file.close()
            self._drop_dead_lines()
            self._file = LineWriter(self.path)

    def close(self) -> None:
        """Close the file, and remove what does not count in it, or the file."""
        self._file.close()
        if not self._alive:
            self.path.unlink(missing_ok=True)
        elif self._dead:
            self._drop_dead_lines()

    def _drop_dead_lines(self) -> None:
        self._write({one: turns for one, turns in read_turns(self.path).items() if one in self._alive})
        self._dead = 0

    def _write(self, turns: Mapping[str, Sequence[Turn]]) -> None:
        lines = (
            TurnLine(conversation=conversation, turn=turn).model_dump_json()
            for conversation, held in turns.items()
            for turn in held
        )
        write_atomically(self.path, "".join(f"{line}\n" for line in lines))
