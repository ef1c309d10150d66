"""A worker process: it holds and judges conversations, and sends what comes of it.

The process that gives out the work is `hallulab.simulator.experiment.workers`.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import queue
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hallulab.agents.models.recording import Recording
from hallulab.scenarios.errors import HallulabError, OperationalError, ReplayMiss, UsageError, get_first_error
from hallulab.scenarios.transcript import Conversation, Turn, Verdict
from hallulab.simulator.experiment.build import open_pool
from hallulab.simulator.experiment.casting import make_cast, make_detectors, make_knowledge
from hallulab.simulator.experiment.execution import freeze_long_lived_objects
from hallulab.simulator.experiment.stage import ConversationTask, LocalExecutor
from hallulab.simulator.experiment.worker_pipe import Pipe
from hallulab.simulator.experiment.workers import WorkerConfig
from hallulab.simulator.runs.journals import VerdictKey


def main(descriptor: int, libraries: Sequence[str]) -> None:
    """Do work until the pipe ends, or is told to end.

    Args:
        descriptor: of the socket to the process that gives out the work.
        libraries: what to import first.
    """
    for library in libraries:
        importlib.import_module(library)
    asyncio.run(_WorkerMain(Pipe(descriptor)).serve())


class _WorkerMain:
    """The process that gives out the work, seen from here."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._kept: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._recording = threading.Lock()
        self._work: asyncio.Queue[tuple[int, ConversationTask] | None] = asyncio.Queue()

    async def serve(self) -> None:
        """Do what comes."""
        loop = asyncio.get_running_loop()
        messages = iter(self._pipe)
        briefing: WorkerConfig = next(messages)

        def listen() -> None:
            for message in messages:
                if message is None:
                    break
                name, *told = message
                if name == "kept":
                    self._kept.put(*told)
                else:
                    loop.call_soon_threadsafe(self._work.put_nowait, tuple(told))
            self._kept.put(None)
            with suppress(RuntimeError):  # the loop has ended by itself
                loop.call_soon_threadsafe(self._work.put_nowait, None)

        threading.Thread(target=listen, daemon=True).start()
        try:
            await self._follow(briefing)
        except (Exception, BaseExceptionGroup, ReplayMiss) as error:  # noqa: BLE001 - raised by the driver
            self._pipe.send(("failed", _convert_to_sendable(get_first_error(error))))

    async def _follow(self, briefing: WorkerConfig) -> None:
        logging.getLogger().addHandler(_Warnings(self._pipe))
        gc.set_threshold(*briefing.collected_after)
        if briefing.prepare is not None:
            briefing.prepare()
        experiment, scenario = briefing.experiment, briefing.scenario
        recording = Recording.knowing(briefing.known, self._keep if briefing.recorded else None)
        async with open_pool(experiment, recording) as pool:
            pool.bind(briefing.base_url)
            if briefing.needed:
                await pool.check()
            detectors = (
                make_detectors(experiment, pool, scenario.identity_thresholds) if briefing.judge else []
            )
            knowledge = make_knowledge(experiment, scenario, pool)
            stage = LocalExecutor(
                make_cast(experiment, scenario, pool, knowledge, detectors, briefing.max_turns)
            )
            self._pipe.send(("ready",))
            with freeze_long_lived_objects():
                await self._do_all(stage)
            self._pipe.send(("asked", [(replica.answered, replica.failed) for replica in pool.replicas]))

    async def _do_all(self, stage: LocalExecutor) -> None:
        async with asyncio.TaskGroup() as tasks:
            under_way = set()
            while (wanted := await self._work.get()) is not None:
                task = tasks.create_task(self._do(stage, *wanted))
                under_way.add(task)
                task.add_done_callback(under_way.discard)
            for task in under_way:
                task.cancel()

    async def _do(self, stage: LocalExecutor, number: int, work: ConversationTask) -> None:
        await stage.perform(work, _EventPipe(self._pipe, number))
        self._pipe.send(("done", number))

    def _keep(self, kind: str, key: str, answer: Any) -> Any:
        """Have an answer recorded; return the one that counts."""
        with self._recording:
            self._pipe.send(("record", kind, key, answer))
            kept = self._kept.get()
        if kept is None:
            raise OperationalError("the run has ended.")
        return kept


@dataclass(frozen=True)
class _EventPipe:
    """Sends what comes of one piece of work (a `WorkObserver`)."""

    pipe: Pipe
    number: int

    def turn_done(self, turn: Turn) -> None:
        self.pipe.send(("turn_done", self.number, turn))

    def held(self, conversation: Conversation, lacking: Sequence[VerdictKey]) -> None:
        self.pipe.send(("held", self.number, conversation, lacking))

    def judged(self, verdict: Verdict) -> None:
        self.pipe.send(("judged", self.number, verdict))


class _Warnings(logging.Handler):
    """Sends warnings, without their tracebacks, to be shown there."""

    def __init__(self, pipe: Pipe) -> None:
        super().__init__(logging.WARNING)
        self._pipe = pipe

    def emit(self, record: logging.LogRecord) -> None:
        self._pipe.send(("warned", record.name, record.getMessage()))


def _convert_to_sendable(error: BaseException) -> BaseException:
    """Return an error that can be sent, and means the same there."""
    for kind in (UsageError, OperationalError, ReplayMiss):
        if isinstance(error, kind):
            return kind(str(error))
    if isinstance(error, HallulabError | OSError):
        return OperationalError(str(error))
    return RuntimeError("".join(traceback.format_exception(error)))
