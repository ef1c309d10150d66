"""Start workers: processes of this machine, each with a pipe, or actors of a Ray cluster (`--ray`).

An actor has a worker inside (`hallulab.simulator.engine.worker`): it hears messages one after the other, and
speaks by a generator whose objects Ray hands over as they come. No key is given to Ray: workers read keys
from the environment of their machine.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from typing import Any

from hallulab.agents.machine.ray_cluster import CPU, join_cluster, read_resources, split_resources
from hallulab.agents.machine.supervised import worker_variables
from hallulab.agents.models.adaptive import AUTO
from hallulab.agents.models.model import ModelPool
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.worker import ExecutorMaker, ModelWork, Pipe, serve
from hallulab.simulator.engine.workers import SLOW_TO_SEARCH, WorkerConfig, WorkerExecutor, WorkerLine
from hallulab.simulator.records.experiment import Experiment

# The path of this process, so that the same modules are found whatever the working directory holds.
_BEGIN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from hallulab.simulator.engine.worker import main; main(int(sys.argv[2]), sys.argv[3:])"
)


class ProcessLine:
    """Starts a worker that imports libraries first, as a process, and connects with it (a `WorkerLine`)."""

    def __init__(self, libraries: Sequence[str]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            given = (json.dumps(sys.path), str(theirs.fileno()), *libraries)
            # -P: else a file in the working directory could stand for a module.
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

    def send(self, message: Any) -> None:
        """See `WorkerLine`."""
        self._pipe.send(message)

    def __iter__(self) -> Iterator[Any]:
        """See `WorkerLine`."""
        yield from self._pipe

    def explain_end(self) -> str:
        """See `WorkerLine`."""
        code = self._process.wait()
        self._pipe.close()
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"the worker process ended ({how})"

    def kill(self) -> None:
        """See `WorkerLine`."""
        self._process.kill()


_ENDED = object()
"""Last message of an actor's worker, within the actor."""


def share(message: Any) -> Any:
    """Put a message into the object store, from which a machine gets it once; return what is sent instead."""
    return importlib.import_module("ray").put(message)


class _Actor:
    """A worker in an actor."""

    def __init__(self, libraries: Sequence[str]) -> None:
        self._libraries = libraries
        self._ends = _LineEnds()

    def hear(self, message: Any) -> None:
        """Get a message for the worker."""
        self._ends.heard.put(message)

    def speak(self) -> Iterator[Any]:
        """Run the worker, and yield its messages until it has ended."""

        def run() -> None:
            try:
                serve(self._ends, self._libraries)
            finally:
                self._ends.said.put(_ENDED)

        # A thread of its own, because the worker's event loop must not wait until a message has been fetched.
        threading.Thread(target=run, daemon=True).start()
        while (message := self._ends.said.get()) is not _ENDED:
            yield message


class _LineEnds:
    """The worker's end of a line, within an actor (a `MessageLine`)."""

    def __init__(self) -> None:
        self.heard: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.said: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def send(self, message: Any) -> None:
        """See `MessageLine`."""
        self.said.put(message)

    def __iter__(self) -> Iterator[Any]:
        """See `MessageLine`."""
        while True:
            yield self.heard.get()


class ActorStarter:
    """Starts actors, each with a line to it."""

    def __init__(self, resources: Mapping[str, float], libraries: Sequence[str], workers: int) -> None:
        self._resources = resources
        self._libraries = libraries
        self._left = workers

    def start(self) -> RayLine:
        """Start an actor.

        One that takes the place of a dead one takes no core: its node may be gone, and the others are full.
        """
        self._left -= 1
        resources = self._resources if self._left >= 0 else {**self._resources, CPU: 0.0}
        return RayLine(resources, self._libraries)


class RayLine:
    """Starts a worker as an actor, and connects with it (`hallulab.simulator.engine.workers.WorkerLine`)."""

    def __init__(self, resources: Mapping[str, float], libraries: Sequence[str]) -> None:
        self._ray = ray = importlib.import_module("ray")
        # One thread each: messages are heard in their order while the other thread speaks.
        actor = ray.remote(
            **split_resources(resources), concurrency_groups={"hearing": 1, "speaking": 1}, max_restarts=0
        )
        self._actor = actor(_Actor).remote(tuple(libraries))
        speak = self._actor.speak.options(num_returns="streaming", concurrency_group="speaking")
        self._messages = speak.remote()
        self._hear = self._actor.hear.options(concurrency_group="hearing")

    def send(self, message: Any) -> None:
        """See `WorkerLine`."""
        self._hear.remote(message)

    def __iter__(self) -> Iterator[Any]:
        """See `WorkerLine`."""
        try:
            for message in self._messages:
                yield self._ray.get(message)
        except self._ray.exceptions.RayError:
            pass  # `explain_end` says it

    def explain_end(self) -> str:
        """See `WorkerLine`."""
        self.kill()
        return "the worker's Ray actor ended"

    def kill(self) -> None:
        """See `WorkerLine`."""
        self._ray.kill(self._actor)


@asynccontextmanager
async def start_workers(
    settings: RunSettings, experiment: Experiment, searches: bool = True
) -> AsyncIterator[WorkerExecutor | None]:
    """Yield worker processes, or actors of a Ray cluster; None: this process does the work.

    Raises:
        UsageError: what Ray is given is wrong, or it is not installed.
        OperationalError: the cluster cannot be started or joined.
    """
    libraries = SLOW_TO_SEARCH if searches and settings.replay is None else ()
    start: Callable[[], WorkerLine] = partial(ProcessLine, libraries)
    with ExitStack() as until_the_end:
        if settings.ray is not None:
            resources = read_resources(settings.ray_resources)
            until_the_end.enter_context(join_cluster(settings.ray, settings.workers, resources))
            start = ActorStarter(resources, libraries, settings.workers).start
        elif settings.workers == 1:
            yield None
            return
        most = experiment.at_once  # of each worker; what is found out is found out for all of them together
        if experiment.concurrency == AUTO:
            most = max(1, most // settings.workers)
        async with WorkerExecutor(settings.workers, most, start) as workers:
            yield workers


def configure_workers(
    workers: WorkerExecutor,
    settings: RunSettings,
    experiment: Experiment,
    pool: ModelPool,
    maker: ExecutorMaker,
    asks_model: bool,
    recorded: bool,
) -> None:
    """Send workers what they do, and have this process keep what they record.

    Args:
        experiment: what is asked for, with its model.
        pool: its models, which have their addresses.
        asks_model: whether a model is asked.
        recorded: whether this process keeps the answers, for all.
    """
    limits = experiment.endpoint_limits
    own = None if limits is None else limits.shared_by(settings.workers)
    work = ModelWork(
        experiment.model_copy(update={"endpoint_limits": own}),
        maker,
        pool.get().endpoint.base_url,
        asks_model,
        pool.recording.known(),
        recorded,
        settings.workers,
    )
    config = WorkerConfig(work, settings.prepare_worker)
    workers.configure(config if settings.ray is None else share(config), pool.recording, pool.replicas)
