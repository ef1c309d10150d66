"""Open, record and serve the models of an experiment."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from hallulab.agents.models.adaptive import AUTO, AdaptiveLimits, AdaptiveTransport
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import DEFAULT_MODEL, ModelPool
from hallulab.agents.models.recording import Recording
from hallulab.agents.models.transport import make_network
from hallulab.agents.retrieval.knowledge import KnowledgeBase
from hallulab.agents.served_model import list_model_warnings
from hallulab.agents.serving.catalogue import DEFAULT_CPU_MODEL
from hallulab.detectors.base.protocol import Detector
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.experiment.config import Experiment
from hallulab.simulator.options.groups import RecordingOptions, to_path

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunSettings:
    """How an experiment is run, as opposed to what it is.

    Raises:
        UsageError: it is recorded and replayed at once, or there are no workers.
    """

    fresh: bool = False
    """Delete what the folder holds of an earlier run."""
    record: Path | None = None
    """Record into this file."""
    replay: Path | None = None
    """Replay from this file."""
    quiet: bool = False
    """No progress bars."""
    server_flags: tuple[str, ...] = ()
    """Passed on to the model server."""
    transport: httpx2.AsyncBaseTransport | None = None
    """Sends the requests and may watch them; None: the network."""
    workers: int = 1
    """Processes that hold and judge conversations. One: this process does."""
    prepare_worker: Callable[[], None] | None = None
    """Called first in each worker process; for tests and measurements."""

    @classmethod
    def from_options(cls, options: RecordingOptions, fresh: bool = False, workers: int = 1) -> RunSettings:
        """Return how an experiment is run with the options of a command."""
        return cls(
            fresh=fresh,
            record=to_path(options.record),
            replay=to_path(options.replay),
            quiet=options.quiet,
            server_flags=tuple(options.server_flags),
            workers=workers,
        )

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise UsageError(f"--workers {self.workers}: at least one process does the work.")
        if self.record is not None and self.replay is not None:
            raise UsageError("--record and --replay exclude each other: give one of them.")


def ensure_model(experiment: Experiment) -> Experiment:
    """Return the experiment with a model: its own, or the default one if hallulab serves it.

    Raises:
        UsageError: an endpoint is given but not the model's name.
    """
    if experiment.model is not None:
        return experiment
    if experiment.base_url is not None:
        raise UsageError(f"name the model that {experiment.base_url} serves with --model.")
    return experiment.model_copy(update={"model": DEFAULT_CPU_MODEL})


def make_limits(experiment: Experiment, recording: Recording, sharers: int = 1) -> AdaptiveLimits | None:
    """Make the limits of an experiment whose `concurrency` is found out; None for others, and for a replay.

    Args:
        recording: keeps the answers or provides them.
        sharers: how many processes share them.
    """
    if experiment.concurrency != AUTO or recording.replaying:
        return None
    urls = experiment.base_urls or ((experiment.base_url,) if experiment.base_url else ())
    return AdaptiveLimits(urls, sharers)


@asynccontextmanager
async def open_pool(
    experiment: Experiment,
    recording: Recording,
    transport: httpx2.AsyncBaseTransport | None = None,
    limits: AdaptiveLimits | None = None,
) -> AsyncIterator[ModelPool]:
    """Open the experiment's models, to make components with.

    Models that hallulab serves get their address in `serve_models`.

    Args:
        recording: keeps the answers or provides them; it is closed at the end.
        transport: see `RunSettings`.
        limits: of its endpoints; None: those of `make_limits`.

    Raises:
        UsageError: like `ensure_model`.
    """
    limits = limits or make_limits(experiment, recording)
    if limits is not None:
        transport = AdaptiveTransport(limits, transport or make_network())
    try:
        pool = _build_pool(ensure_model(experiment), recording, transport)
        try:
            yield pool
        finally:
            await pool.close()
    finally:
        recording.close()


@asynccontextmanager
async def serve_models(
    pool: ModelPool, settings: RunSettings, needed: bool = True
) -> AsyncIterator[str | None]:
    """Serve the models that have no address, check that all answer, and yield the revision served.

    Args:
        needed: False if nobody asks a model; then nothing is started or checked.

    Raises:
        UsageError: an API key is missing, or flags are given for a server that is not started.
        OperationalError: a server does not start, an endpoint does not answer, or the recording cannot be
            written.
    """
    if needed:
        pool.check_keys()
    endpoint = pool.get().endpoint
    here = needed and not endpoint.base_url and not pool.recording.replaying
    if settings.server_flags and not here:
        raise UsageError(f"`-- {settings.server_flags[0]}`: no server is started here, so it takes no flags.")
    async with AsyncExitStack() as until_the_end:
        revision = None
        if here:
            from hallulab.agents.progress import shown_progress
            from hallulab.agents.serving.server import serve

            with shown_progress(settings.quiet) as on_progress:
                server = await until_the_end.enter_async_context(
                    serve(endpoint.model, extra_flags=settings.server_flags, on_progress=on_progress)
                )
            pool.bind(server.base_url)
            revision = server.revision
        if needed:
            await pool.check()
            for sentence in list_model_warnings(pool):
                _log.warning(sentence)
        yield revision


def open_recording(settings: RunSettings) -> Recording:
    """Open the recording that the settings ask for, or one in memory.

    Raises:
        UsageError: the file to replay does not exist or is no recording.
    """
    if settings.replay is not None:
        return Recording.replay(settings.replay)
    if settings.record is not None:
        return Recording.record(settings.record)
    return Recording()


def warn_of(detectors: Iterable[Detector]) -> None:
    """Log what a user should know of detectors whose models are served."""
    for detector in detectors:
        for sentence in detector.warnings:
            _log.warning(sentence)


def _build_pool(
    experiment: Experiment, recording: Recording, transport: httpx2.AsyncBaseTransport | None
) -> ModelPool:
    assert experiment.model is not None
    url = experiment.base_url or ""
    endpoints = {DEFAULT_MODEL: Endpoint(experiment.model, url, experiment.api_key_env)}
    for name, model in experiment.models.items():
        key = model.api_key_env if model.base_url else model.api_key_env or experiment.api_key_env
        endpoints[name] = Endpoint(model.model, model.base_url or url, key)
    return ModelPool(
        endpoints,
        recording=recording,
        concurrency=experiment.at_once,
        timeout_s=experiment.timeout,
        transport=transport,
        decision_samples=experiment.decision_samples,
        base_urls=experiment.base_urls,
        limits=experiment.endpoint_limits,
        timed=experiment.timed,
    )


async def build_knowledge(knowledge: KnowledgeBase, quiet: bool) -> None:
    """Make the vectors now, not in the first search."""
    from hallulab.agents.progress import shown_progress

    with shown_progress(quiet) as on_progress:
        await asyncio.to_thread(knowledge.build, on_progress)


@asynccontextmanager
async def start_embedding(knowledge: KnowledgeBase, starts: bool) -> AsyncIterator[asyncio.Task[None] | None]:
    """Make the vectors while a model server starts here and shows its progress; yield what to wait for.

    Args:
        starts: whether a server is started; if not, nothing is made and None is yielded.
    """
    task = asyncio.create_task(build_knowledge(knowledge, quiet=True)) if starts else None
    try:
        yield task
    finally:
        # If the server did not start, its error is the one to tell.
        if task is not None and not task.done():
            task.cancel()
