"""A worker: it performs tasks, and sends the events to the process that started it.

That process is `hallulab.simulator.engine.workers`.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import queue
import threading
import traceback
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Protocol

from hallulab.agents.models.adaptive import AdaptiveLimits
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.recording import CacheSnapshot, Recording
from hallulab.scenarios.errors import HallulabError, OperationalError, ReplayMiss, UsageError, get_first_error
from hallulab.simulator.engine.execution import freeze_long_lived_objects
from hallulab.simulator.engine.executors import TaskExecutor, WorkTask
from hallulab.simulator.engine.models import make_limits, open_pool
from hallulab.simulator.engine.workers import Driver, MessageLine, WorkerConfig
from hallulab.simulator.records.experiment import Experiment


class Pipe:
    """Sends objects in both directions between a worker and the process that started it.

    Both are ours, and no other process can write to it, so what is sent may be pickled. Several threads may
    send.

    Args:
        descriptor: of a stream socket.
    """

    def __init__(self, descriptor: int) -> None:
        self._connection = Connection(descriptor)
        self._sending = threading.Lock()

    def send(self, message: Any) -> None:
        """Send an object. If the other end is closed, the one who receives finds out."""
        with self._sending, suppress(OSError):
            self._connection.send(message)

    def __iter__(self) -> Iterator[Any]:
        """Yield what comes until the other end is closed."""
        with suppress(EOFError, OSError):
            while True:
                yield self._connection.recv()

    def close(self) -> None:
        """Close this end."""
        with self._sending:
            self._connection.close()


def main(descriptor: int, libraries: Sequence[str]) -> None:
    """Perform tasks until the pipe ends, or until a message ends it.

    Args:
        descriptor: of the socket to the process that started this one.
        libraries: what to import first.
    """
    serve(Pipe(descriptor), libraries)


def serve(line: MessageLine, libraries: Sequence[str]) -> None:
    """Perform tasks until the line ends, or until a message ends it, in an event loop of its own."""
    for library in libraries:
        importlib.import_module(library)
    asyncio.run(_WorkerMain(line).serve())


class ExecutorMaker(Protocol):
    """Makes what performs tasks with models."""

    def make_executor(
        self, experiment: Experiment, pool: ModelPool, limits: AdaptiveLimits | None
    ) -> TaskExecutor:
        """Make it, in a worker."""
        ...


@dataclass(frozen=True)
class ModelWork:
    """Tasks that may ask the models of an experiment (a `Work`)."""

    experiment: Experiment
    maker: ExecutorMaker
    base_url: str
    """Where models without an address of their own are served."""
    asks_model: bool
    known: CacheSnapshot
    """Answers that are recorded already."""
    recorded: bool
    """True if the driver keeps the answers, for all workers."""
    workers: int
    """How many processes share what endpoints are asked at most."""

    @asynccontextmanager
    async def start(self, driver: Driver) -> AsyncIterator[TaskExecutor]:
        """Open the models, and report at the end how they answered."""
        recording = Recording.knowing(self.known, driver.keep if self.recorded else None)
        limits = make_limits(self.experiment, recording, self.workers)
        async with open_pool(self.experiment, recording, limits=limits) as pool:
            pool.bind(self.base_url)
            if self.asks_model:
                await pool.check()
            yield self.maker.make_executor(self.experiment, pool, limits)
            driver.send(("reached", limits.list_reached() if limits else []))
            driver.send(("read", pool.read_how if self.asks_model else pool.list_bots()))
            driver.send(("asked", [(replica.answered, replica.failed) for replica in pool.replicas]))


class _WorkerMain:
    """Performs the tasks that the other process sends, and sends the events."""

    def __init__(self, line: MessageLine) -> None:
        self._line = line
        self._kept: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._recording = threading.Lock()
        self._tasks: asyncio.Queue[tuple[int, WorkTask[Any]] | None] = asyncio.Queue()

    async def serve(self) -> None:
        """Perform what is sent."""
        loop = asyncio.get_running_loop()
        messages = iter(self._line)
        config: WorkerConfig = next(messages)

        def listen() -> None:
            for message in messages:
                if message is None:
                    break
                name, *parts = message
                if name == "kept":
                    self._kept.put(*parts)
                else:
                    loop.call_soon_threadsafe(self._tasks.put_nowait, tuple(parts))
            # Whoever waits until an answer is kept learns so that the run has ended.
            self._kept.put(None)
            with suppress(RuntimeError):  # the loop has ended by itself
                loop.call_soon_threadsafe(self._tasks.put_nowait, None)

        threading.Thread(target=listen, daemon=True).start()
        try:
            await self._follow(config)
        except (Exception, BaseExceptionGroup, ReplayMiss) as error:  # noqa: BLE001 - raised by the driver
            self._line.send(("failed", _convert_to_sendable(get_first_error(error))))

    async def _follow(self, config: WorkerConfig) -> None:
        logging.getLogger().addHandler(_Warnings(self._line))
        gc.set_threshold(*config.collected_after)
        if config.prepare is not None:
            config.prepare()
        async with config.work.start(self) as executor:
            self.send(("ready",))
            with freeze_long_lived_objects():
                await self._perform_all(executor)

    def send(self, message: Any) -> None:
        """See `Driver`."""
        self._line.send(message)

    async def _perform_all(self, executor: TaskExecutor) -> None:
        async with asyncio.TaskGroup() as tasks:
            under_way = set()
            while (wanted := await self._tasks.get()) is not None:
                task = tasks.create_task(self._perform(executor, *wanted))
                under_way.add(task)
                task.add_done_callback(under_way.discard)
            for task in under_way:
                task.cancel()

    async def _perform(self, executor: TaskExecutor, number: int, task: WorkTask[Any]) -> None:
        await executor.perform(task, lambda event: self._line.send(("event", number, event)))
        self._line.send(("done", number))

    def keep(self, kind: str, key: str, answer: Any) -> Any:
        """See `Driver`.

        Raises:
            OperationalError: the run has ended.
        """
        with self._recording:
            self._line.send(("record", kind, key, answer))
            kept = self._kept.get()
        if kept is None:
            raise OperationalError("the run has ended.")
        return kept


class _Warnings(logging.Handler):
    """Sends warnings, without their tracebacks, to be shown there."""

    def __init__(self, line: MessageLine) -> None:
        super().__init__(logging.WARNING)
        self._line = line

    def emit(self, record: logging.LogRecord) -> None:
        self._line.send(("warned", record.name, record.getMessage()))


def _convert_to_sendable(error: BaseException) -> BaseException:
    """Return an error that can be sent, and means the same there."""
    for kind in (UsageError, OperationalError, ReplayMiss):
        if isinstance(error, kind):
            return kind(str(error))
    if isinstance(error, HallulabError | OSError):
        return OperationalError(str(error))
    return RuntimeError("".join(traceback.format_exception(error)))
