"""Workers: each performs tasks in a process of its own, and this process alone writes.

A worker is at the other end of a `WorkerLine`: a pipe or Ray (`hallulab.simulator.engine.worker_lines`). It
makes an executor once (`hallulab.simulator.engine.worker`), the one that this process would have, and sends
back the events. It ends when the line ends, so none outlives this process, however that ends.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self

from hallulab.agents.models.abilities import ReadHow
from hallulab.agents.models.adaptive import ReachedLimit
from hallulab.agents.models.recording import Recording
from hallulab.agents.models.replicas import Replica
from hallulab.scenarios.errors import HallulabError, OperationalError
from hallulab.simulator.engine.executors import Emitted, TaskExecutor, WorkTask

TRIES = 2
"""How often the work on a task is begun: a worker that dies costs one more try."""

PAUSES_S = (1.0, 5.0, 20.0)
"""Seconds before a worker that ended before it could begin is replaced, once each. A cluster takes ten to
know that a machine is gone."""

_LEAVE_S = 10.0
"""Seconds in which a worker must have ended after it was asked to."""

SLOW_TO_SEARCH = ("lancedb",)
"""Libraries that are imported at the first search, which stops all conversations of a process for seconds."""


class MessageLine(Protocol):
    """One end of what connects a worker with the process that started it."""

    def send(self, message: Any) -> None:
        """Send an object. If the other end is closed, the one who receives finds out."""

    def __iter__(self) -> Iterator[Any]:
        """Yield what comes until the other end is closed. Blocks."""


class WorkerLine(MessageLine, Protocol):
    """The end of the process that has started the worker."""

    def explain_end(self) -> str:
        """Return how the worker ended, after its last message."""

    def kill(self) -> None:
        """End the worker at once."""


class Driver(Protocol):
    """The process that started a worker, as the worker sees it."""

    def send(self, message: Any) -> None:
        """Send a message, which `_Worker` reads."""

    def keep(self, kind: str, key: str, answer: Any) -> Any:
        """Have an answer of a model recorded; return the one that counts."""


class Work(Protocol):
    """A kind of work, which is sent to a worker and started there."""

    def start(self, driver: Driver) -> AbstractAsyncContextManager[TaskExecutor]:
        """Yield what performs the tasks, as long as the worker lives."""
        ...


@dataclass(frozen=True)
class WorkerConfig:
    """A worker's configuration, sent to it before its first task."""

    work: Work
    prepare: Callable[[], None] | None = None
    collected_after: tuple[int, int, int] = field(default_factory=gc.get_threshold)
    """When garbage is collected: as it is here."""


class WorkerExecutor:
    """Performs tasks in several workers (an `Executor`). Leaving it ends them.

    Tasks of one group go to one worker, because they share answers of models.

    They start at once, and import while the run is prepared; then they are configured.

    Args:
        number: how many.
        concurrency: replies that each makes at once.
    """

    def __init__(self, number: int, concurrency: int, start: Callable[[], WorkerLine]) -> None:
        self._open_line = start
        self.number = number
        self.concurrency = number * concurrency
        self._slots: list[_WorkerSlot] = []
        self._groups: dict[int, _WorkerSlot] = {}
        self.read_how: list[ReadHow] = []
        """How the models were read by workers that have ended."""
        self.reached: list[Sequence[ReachedLimit]] = []
        """Limits that workers which have ended had reached, where they are adaptive."""
        self._left: Counter[int] = Counter()
        """Tasks of each group that have not ended."""

    async def __aenter__(self) -> Self:
        self._slots = [_WorkerSlot(_Worker(self._open_line())) for _ in range(self.number)]
        return self

    def configure(
        self, config: Any, recording: Recording | None = None, replicas: Sequence[Replica] = ()
    ) -> None:
        """Send the configuration to all workers, and to those that take the place of dead ones.

        Args:
            config: a `WorkerConfig`, or what the line makes one of at its other end.
            recording: keeps what they record; None: they ask no model.
            replicas: the endpoints of the default model if there are several; they count what workers ask.
        """
        self._configure = partial(
            _Worker.configure,
            config=config,
            recording=recording,
            replicas=replicas,
            reached=self.reached,
            read_how=self.read_how,
        )
        for slot in self._slots:
            self._configure(slot.worker)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.leave()

    async def leave(self) -> None:
        """Wait until all have ended, and have reported how each endpoint answered."""
        for slot in self._slots:
            slot.worker.leave()
        await asyncio.gather(*(asyncio.to_thread(slot.worker.end) for slot in self._slots))

    async def perform(self, task: WorkTask[Emitted], emit: Callable[[Emitted], None]) -> None:
        """See `Executor`.

        Raises:
            OperationalError: a worker ended before it could begin.
        """
        if task.group not in self._groups:
            slot = min(self._slots, key=lambda slot: slot.tasks)
            slot.tasks += task.of_group
            self._groups[task.group], self._left[task.group] = slot, task.of_group
        slot = self._groups[task.group]
        under_way = _TaskUnderWay(task, emit)
        try:
            for number in range(TRIES):
                # A task that kills its worker must not take the others' second tries with it.
                async with slot.second_tries if number else nullcontext():
                    try:
                        await self._let_begin(slot)
                        return await slot.worker.perform(under_way)
                    except _WorkerExited as died:
                        if under_way.task is None:
                            return
                        reason = f"{died}, and so did the next one"
            under_way.fail(reason)
        finally:
            slot.tasks -= 1
            self._left[task.group] -= 1
            if not self._left[task.group]:
                del self._left[task.group], self._groups[task.group]

    async def _let_begin(self, slot: _WorkerSlot) -> None:
        """Wait until the worker of a slot can begin. One that ends before is replaced.

        Raises:
            OperationalError: the workers of all slots ended before they could begin, so the next ones cannot
                either.
            _WorkerExited: so many after each other could not.
        """
        for pause_s in (*PAUSES_S, None):
            if slot.worker.gone is not None:
                slot.began = slot.began or slot.worker.could_begin
                slot.worker = _Worker(self._open_line())
                self._configure(slot.worker)
            try:
                return await slot.worker.wait_until_it_begins()
            except _WorkerExited as died:
                if not await self._wait_for_one_that_begins():
                    raise OperationalError(
                        f"{died} before it could begin. If the memory was full, close other programs or "
                        "lower --workers."
                    ) from died
                if pause_s is None:
                    raise
                await asyncio.sleep(pause_s)

    async def _wait_for_one_that_begins(self) -> bool:
        """Wait until the worker of any slot can begin; return False if those of all ended before."""
        for slot in self._slots:
            with suppress(_WorkerExited):
                if not slot.began:
                    await slot.worker.wait_until_it_begins()
                return True
        return False


class _TaskUnderWay:
    """A task that a worker performs, and what is left of it."""

    def __init__(self, task: WorkTask[Any], emit: Callable[[Any], None]) -> None:
        self.task: WorkTask[Any] | None = task
        """None: nothing is left."""
        self._emit = emit

    def emit(self, event: Any) -> None:
        """Pass an event on, and remember what is left."""
        if self.task is not None:
            self.task = self.task.subtract(event)
        self._emit(event)

    def fail(self, reason: str) -> None:
        """Emit failures for what is left, because no worker can do it."""
        for event in () if self.task is None else self.task.fail(reason):
            self._emit(event)


class _WorkerExited(Exception):
    """A worker ended before its work was done; the text says how."""


class _Worker:
    """A worker, seen from this process."""

    def __init__(self, line: WorkerLine) -> None:
        self.gone: BaseException | None = None
        """Why it does nothing any more; None while it does."""
        self.could_begin = False
        """True if it has made its executor."""
        self._loop = asyncio.get_running_loop()
        self._recording: Recording | None = None
        self._replicas: Sequence[Replica] = ()
        self._reached: list[Sequence[ReachedLimit]] = []
        self._read_how: list[ReadHow] = []
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._tasks: dict[int, tuple[_TaskUnderWay, asyncio.Future[None]]] = {}
        self._begun = 0
        self._line = line
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def configure(
        self,
        config: Any,
        recording: Recording | None,
        replicas: Sequence[Replica],
        reached: list[Sequence[ReachedLimit]],
        read_how: list[ReadHow],
    ) -> None:
        """Send the configuration; see `WorkerExecutor.configure`."""
        self._recording, self._replicas, self._reached = recording, replicas, reached
        self._read_how = read_how
        self._line.send(config)

    async def wait_until_it_begins(self) -> None:
        """Wait until it has made its executor.

        Raises:
            _WorkerExited: it ended before.
            HallulabError: it cannot.
        """
        # Several tasks wait for it, and one that is cancelled must not cancel it for the others.
        await asyncio.shield(self._ready)

    async def perform(self, task: _TaskUnderWay) -> None:
        """Have a task performed. It has begun.

        Raises:
            _WorkerExited: it ended before the task was done.
            HallulabError, ReplayMiss, OSError: the run must end, as if this process had performed the task.
        """
        if self.gone is not None:
            raise self.gone
        self._begun += 1
        number, done = self._begun, self._loop.create_future()
        self._tasks[number] = task, done
        try:
            self._line.send(("task", number, task.task))
            await done
        finally:
            del self._tasks[number]

    def _listen(self) -> None:
        """Read the worker's messages until it has ended."""
        with suppress(RuntimeError):  # a worker that was replaced may end after the loop has
            for name, *parts in self._line:
                self._loop.call_soon_threadsafe(self._receive, name, *parts)
            self._loop.call_soon_threadsafe(self._end_with, _WorkerExited(self._line.explain_end()))

    def _receive(self, name: str, *parts: Any) -> None:
        """Do what a message asks for; what cannot be written ends the run."""
        try:
            match name:
                case "ready":
                    self.could_begin = True
                    self._ready.set_result(None)
                case "failed":
                    self._end_with(*parts)
                case "reached":
                    self._reached.append(*parts)
                case "read":
                    self._read_how.extend(*parts)
                case "asked":
                    self._count(*parts)
                case "record":
                    self._record(*parts)
                case "warned":
                    logger, text = parts
                    logging.getLogger(logger).warning("%s", text)
                case "event":
                    self._pass_on(*parts)
                case "done":
                    self._finish(*parts)
        except (HallulabError, OSError) as error:
            self._end_with(error)

    def _pass_on(self, number: int, event: Any) -> None:
        """Pass on an event of a task, unless it is not awaited any more."""
        if number in self._tasks:
            task, _ = self._tasks[number]
            task.emit(event)

    def _finish(self, number: int) -> None:
        if number in self._tasks:
            _, done = self._tasks[number]
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
        self._ready.exception()  # retrieved, also where no task awaits it

    def _record(self, kind: str, key: str, answer: Any) -> None:
        """Keep an answer; the worker waits for the one that counts, the first one to a key."""
        assert self._recording is not None
        self._line.send(("kept", self._recording.put(kind, key, answer)))

    def leave(self) -> None:
        """Tell it to end; at once, if there is nothing that it records or reports at its end."""
        if self._recording is None:
            self._line.kill()
        self._line.send(None)

    def end(self) -> None:
        """Wait until it has ended, or end it. Blocks."""
        self._listener.join(_LEAVE_S)
        if self._listener.is_alive():
            self._line.kill()
            self._listener.join()


@dataclass
class _WorkerSlot:
    """The place of a worker, and of the next one if it dies."""

    worker: _Worker
    tasks: int = 0
    """Tasks that it has, or will get with their groups."""
    began: bool = False
    """True if a worker before this one could begin."""
    second_tries: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the only one at a time."""
