"""Worker processes: each holds and judges conversations, and this process alone writes.

A worker is a process of its own with a pipe to this one. It makes everything of the experiment once
(`hallulab.simulator.experiment.worker`), does work as this process would (`LocalExecutor`), and sends back
what comes of it. It ends when the pipe ends, so none outlives this process, however that ends.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Any, Self

from hallulab.agents.machine.supervised import worker_variables
from hallulab.agents.models.recording import CacheSnapshot, Recording
from hallulab.agents.models.replicas import Replica
from hallulab.scenarios.errors import HallulabError, OperationalError
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.transcript import Conversation, Turn, Verdict
from hallulab.simulator.experiment.config import Experiment
from hallulab.simulator.experiment.conversation import build_ended_conversation
from hallulab.simulator.experiment.stage import ConversationTask, WorkObserver, is_same_failure
from hallulab.simulator.experiment.worker_pipe import Pipe
from hallulab.simulator.runs.journals import VerdictKey, build_verdict_key

TRIES = 2
"""How often the work on a conversation is begun: a worker that dies costs one more try."""

_LEAVE_S = 10.0
"""Seconds in which a worker must have ended after it was told to."""

# The path of this process, so that the same modules are found whatever the working directory holds.
_BEGIN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from hallulab.simulator.experiment.worker import main; main(int(sys.argv[2]), sys.argv[3:])"
)

_SLOW_TO_SEARCH = ("lancedb",)
"""Libraries that are imported at the first search, which stops all conversations of a process for seconds."""


@dataclass(frozen=True)
class WorkerConfig:
    """All that a worker must know to do the work of a run."""

    experiment: Experiment
    """The experiment, with its model."""
    scenario: Scenario
    """Its pack, with what an attack changed."""
    base_url: str
    """Where models without an address of their own are served."""
    needed: bool
    """Whether a model is asked."""
    judge: bool
    """Whether replies are judged."""
    max_turns: int
    """See `Participants.max_turns`."""
    known: CacheSnapshot
    """What the recording holds already."""
    recorded: bool
    """Whether answers are kept in a file, by the driver."""
    prepare: Callable[[], None] | None = None
    """Called first; for tests."""
    collected_after: tuple[int, int, int] = field(default_factory=gc.get_threshold)
    """When garbage is collected: as it is here."""


class ProcessExecutor:
    """Does work in several processes (an `Executor`). Leaving it ends them.

    Conversations of one group go to one worker, because they share answers of models.

    They start at once, and import while the run is prepared; then they are briefed.

    Args:
        number: how many.
        concurrency: replies that each makes at once.
        searching: whether searches are computed, and not replayed.
    """

    def __init__(self, number: int, concurrency: int, searching: bool) -> None:
        self._start = partial(_WorkerSlot, _SLOW_TO_SEARCH if searching else ())
        self._number = number
        self.concurrency = number * concurrency
        self._seats: list[_Seat] = []
        self._groups: dict[int, _Seat] = {}
        self._left: Counter[int] = Counter()
        """Conversations of each group that have not ended."""

    async def __aenter__(self) -> Self:
        self._seats = [_Seat(self._start()) for _ in range(self._number)]
        return self

    def brief(self, briefing: WorkerConfig, recording: Recording, replicas: Sequence[Replica] = ()) -> None:
        """Tell them what they must know.

        Args:
            briefing: what they must know.
            recording: keeps what they record.
            replicas: the endpoints of the default model if there are several; they count what workers ask.
        """
        self._brief = partial(_WorkerSlot.brief, briefing=briefing, recording=recording, replicas=replicas)
        for seat in self._seats:
            self._brief(seat.worker)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.leave()

    async def leave(self) -> None:
        """Wait until all have ended, and have told what they asked of each endpoint."""
        for seat in self._seats:
            seat.worker.leave()
        await asyncio.gather(*(asyncio.to_thread(seat.worker.end) for seat in self._seats))

    async def perform(self, work: ConversationTask, listener: WorkObserver) -> None:
        """See `Executor`.

        Raises:
            OperationalError: a worker ended before it could begin.
        """
        seat = self._seat_of(work)
        task = _TaskUnderWay(work, listener)
        try:
            for number in range(TRIES):
                # A conversation that kills its worker must not take the others' second tries with it.
                async with seat.second_tries if number else nullcontext():
                    if seat.worker.gone is not None:
                        seat.worker = self._start()
                        self._brief(seat.worker)
                    try:
                        return await seat.worker.do(task)
                    except _WorkerExited as died:
                        reason = f"{died}, and so did the next one"
            task.fail(reason)
        finally:
            seat.conversations -= 1
            self._left[work.group] -= 1
            if not self._left[work.group]:
                del self._left[work.group], self._groups[work.group]

    def _seat_of(self, work: ConversationTask) -> _Seat:
        if work.group not in self._groups:
            seat = min(self._seats, key=lambda seat: seat.conversations)
            seat.conversations += work.of_group
            self._groups[work.group], self._left[work.group] = seat, work.of_group
        return self._groups[work.group]


class _TaskUnderWay:
    """Work under way, and what is left of it."""

    def __init__(self, work: ConversationTask, listener: WorkObserver) -> None:
        self.work = work
        self._listener = listener

    def turn_done(self, turn: Turn) -> None:
        self._listener.turn_done(turn)

    def held(self, conversation: Conversation, lacking: Sequence[VerdictKey]) -> None:
        self.work = replace(self.work, job=None, known=conversation, lacking=tuple(lacking))
        self._listener.held(conversation, lacking)

    def judged(self, verdict: Verdict) -> None:
        done = build_verdict_key(verdict)
        self.work = replace(self.work, lacking=tuple(key for key in self.work.lacking if key != done))
        self._listener.judged(verdict)

    def fail(self, reason: str) -> None:
        """Record that nobody does what is left."""
        if self.work.job is not None:
            failed = build_ended_conversation(self.work.key, "error", error=reason)
            known = self.work.known
            self.held(known if known is not None and is_same_failure(known, failed) else failed, ())
        for key in self.work.lacking:
            self.judged(Verdict(outcome="failed", error=reason, **key._asdict()))


class _WorkerExited(Exception):
    """A worker ended before its work was done; the text says how."""


class _WorkerSlot:
    """A worker, seen from this process.

    Args:
        libraries: what it imports first.
    """

    def __init__(self, libraries: Sequence[str]) -> None:
        self.gone: BaseException | None = None
        """Why it does nothing any more; None while it does."""
        self._loop = asyncio.get_running_loop()
        self._recording: Recording | None = None
        self._replicas: Sequence[Replica] = ()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._tasks: dict[int, tuple[_TaskUnderWay, asyncio.Future[None]]] = {}
        self._begun = 0
        ours, theirs = socket.socketpair()
        with theirs:
            given = (json.dumps(sys.path), str(theirs.fileno()), *libraries)
            command = [sys.executable, "-P", "-c", _BEGIN, *given]
            # In a session of its own: Ctrl-C is for this process, which then ends the workers.
            self._process = subprocess.Popen(  # noqa: S603 (ours)
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=worker_variables(os.environ),
                start_new_session=True,
            )
        self._pipe = Pipe(ours.detach())
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def brief(self, briefing: WorkerConfig, recording: Recording, replicas: Sequence[Replica]) -> None:
        """See `ProcessExecutor.brief`."""
        self._recording, self._replicas = recording, replicas
        self._pipe.send(briefing)

    async def do(self, task: _TaskUnderWay) -> None:
        """Have work done.

        Raises:
            _Died: it ended before the work was done.
            OperationalError: it ended before it could begin.
            HallulabError, ReplayMiss, OSError: the run must end, as if this process had done the work.
        """
        try:
            await asyncio.shield(self._ready)
        except _WorkerExited as died:
            raise OperationalError(
                f"{died} before it could begin. Lower --workers, or leave it out."
            ) from died
        if self.gone is not None:
            raise self.gone
        self._begun += 1
        number, done = self._begun, self._loop.create_future()
        self._tasks[number] = task, done
        try:
            self._pipe.send(("work", number, task.work))
            await done
        finally:
            del self._tasks[number]

    def _listen(self) -> None:
        """Hear the worker until its pipe ends."""
        for name, *told in self._pipe:
            self._loop.call_soon_threadsafe(self._heard, name, *told)
        code = self._process.wait()
        self._pipe.close()
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        self._loop.call_soon_threadsafe(self._end_with, _WorkerExited(f"the worker process ended ({how})"))

    def _heard(self, name: str, *told: Any) -> None:
        """Do what a message asks for; what cannot be written ends the run."""
        try:
            match name:
                case "ready":
                    self._ready.set_result(None)
                case "failed":
                    self._end_with(*told)
                case "asked":
                    self._count(*told)
                case "record":
                    self._record(*told)
                case "warned":
                    logger, text = told
                    logging.getLogger(logger).warning("%s", text)
                case _:
                    self._came(name, *told)
        except (HallulabError, OSError) as error:
            self._end_with(error)

    def _came(self, name: str, number: int, *what: Any) -> None:
        """Pass on what came of a piece of work, unless nobody waits for it any more."""
        if number not in self._tasks:
            return
        task, done = self._tasks[number]
        match name:
            case "turn_done":
                task.turn_done(*what)
            case "held":
                task.held(*what)
            case "judged":
                task.judged(*what)
            case "done":
                done.set_result(None)

    def _count(self, asked: Sequence[tuple[int, int]]) -> None:
        for replica, (answered, failed) in zip(self._replicas, asked, strict=True):
            replica.answered += answered
            replica.failed += failed

    def _end_with(self, error: BaseException) -> None:
        self.gone = self.gone or error
        waiting = [self._ready, *(done for _, done in self._tasks.values())]
        for future in waiting:
            if not future.done():
                future.set_exception(self.gone)
        self._ready.exception()  # heard, even if nobody waits for it

    def _record(self, kind: str, key: str, answer: Any) -> None:
        """Keep an answer; the worker waits for the one that counts, the first one to a key."""
        assert self._recording is not None
        self._pipe.send(("kept", self._recording.put(kind, key, answer)))

    def leave(self) -> None:
        """Tell it to end; at once, if it has nothing to do yet."""
        if self._recording is None:
            self._process.kill()
        self._pipe.send(None)

    def end(self) -> None:
        """Wait until it has ended, or end it. Blocks."""
        try:
            self._process.wait(_LEAVE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._listener.join()


@dataclass
class _Seat:
    """The place of a worker, and of the next one if it dies."""

    worker: _WorkerSlot
    conversations: int = 0
    """Conversations that it has, or will get with their groups."""
    second_tries: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the only one at a time."""
