"""Open, record and serve the models of an experiment."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, get_args

import httpx2
from tenacity import wait_none

from hallulab.agents.models.adaptive import AUTO, AdaptiveLimits, AdaptiveTransport
from hallulab.agents.models.batch import MOST_WAVES, BatchTransport
from hallulab.agents.models.model import DEFAULT_MODEL, ModelPool
from hallulab.agents.models.recording import Recording
from hallulab.agents.models.transport import PatientTransport, make_network
from hallulab.agents.progress import showing, shown_progress
from hallulab.agents.retrieval.knowledge import KnowledgeBase
from hallulab.agents.served_model import list_model_warnings
from hallulab.detectors.base.protocol import Detector
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.engine.batch import EVERYTHING, check_batch_apis, make_waves, serve_waves
from hallulab.simulator.options.groups import BatchService, RecordingOptions, WorkerOptions, to_path
from hallulab.simulator.records.choices import ensure_model
from hallulab.simulator.records.experiment import Component, Experiment
from hallulab.simulator.records.recipients import collect_endpoints, iterate_inner

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
    replay: Path | None = None
    quiet: bool = False
    server_flags: tuple[str, ...] = ()
    transport: httpx2.AsyncBaseTransport | None = None
    """Sends the requests and may watch them; None: the network."""
    workers: int = 1
    """Processes that do the work. One: this process does."""
    batch: BatchService | None = None
    """Who answers models' requests in waves; None: they are asked one by one."""
    ray: str | None = None
    """Address of the Ray cluster whose actors do the work, or `local`; None: no cluster."""
    ray_resources: tuple[str, ...] = ()
    """Resources of each actor, as NAME=AMOUNT."""
    prepare_worker: Callable[[], None] | None = None
    """Called first in each worker process; for tests and measurements."""

    @classmethod
    def from_options(
        cls, options: RecordingOptions, fresh: bool = False, batch: BatchService | None = None
    ) -> RunSettings:
        """Return how an experiment is run with the options of a command."""
        performing = options if isinstance(options, WorkerOptions) else WorkerOptions()
        return cls(
            fresh=fresh,
            record=to_path(options.record),
            replay=to_path(options.replay),
            quiet=options.quiet,
            server_flags=tuple(options.server_flags),
            workers=performing.workers,
            ray=performing.ray,
            ray_resources=tuple(performing.ray_resources),
            batch=batch,
        )

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise UsageError(f"--workers {self.workers}: at least one process does the work.")
        if self.record is not None and self.replay is not None:
            raise UsageError("--record and --replay exclude each other: give one of them.")
        if self.batch not in (None, *get_args(BatchService)):
            raise UsageError(f"--batch {self.batch}: give {' or '.join(get_args(BatchService))}.")
        if self.batch is not None and self.replay is not None:
            raise UsageError("--batch and --replay exclude each other: a replay asks no model.")
        if self.batch is not None and (self.workers > 1 or self.ray is not None):
            other = "--workers" if self.ray is None else "--ray"
            raise UsageError(
                f"--batch and {other} exclude each other: one process asks for all, or each would send "
                f"waves of its own. Leave out {other}."
            )
        if self.ray_resources and self.ray is None:
            raise UsageError("--ray-resources: these are of actors of a Ray cluster. Give --ray, too.")


def make_limits(experiment: Experiment, recording: Recording, sharers: int = 1) -> AdaptiveLimits | None:
    """Make the limits that `sharers` share, if `concurrency` is found out; None else, and for a replay."""
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


@dataclass(eq=False)
class OpenModels:
    """The models of an experiment. They are served once, when they are first needed, and closed together."""

    experiment: Experiment
    settings: RunSettings
    pool: ModelPool
    """The models; they have no address until they are served."""
    waves: BatchTransport | None
    """Asks the models in waves; None: they are asked one by one."""
    limits: AdaptiveLimits | None
    """Found out by asking; None: concurrency is a number."""
    _until_the_end: AsyncExitStack
    """Closes what serves them."""
    revision: str | None = None
    """Revision of the model that is served here; None: not known."""
    _serving: asyncio.Lock = field(default_factory=asyncio.Lock)
    _served: bool = False

    async def serve(self, needed: bool, asked: Collection[str]) -> None:
        """Serve the models, unless they are; see `serve_models`.

        Raises:
            UsageError, OperationalError: see `serve_models`.
        """
        async with self._serving:  # live conversations of several scenarios begin at the same time
            if not self._served:
                serving = serve_models(self.pool, self.settings, needed, self.waves, asked)
                self.revision = await self._until_the_end.enter_async_context(serving)
                self._served = True


@asynccontextmanager
async def open_models(experiment: Experiment, settings: RunSettings) -> AsyncIterator[OpenModels]:
    """Open the models of an experiment, for a run or for live conversations. Nothing is served yet.

    Raises:
        UsageError: no model is named, or the recording or the settings are at fault.
        OperationalError: the recording cannot be opened.
    """
    waves = make_waves(experiment, settings.batch)
    recording = open_recording(settings)
    limits = None if waves else make_limits(experiment, recording)
    async with (
        open_pool(experiment, recording, waves or settings.transport, limits) as pool,
        AsyncExitStack() as until_the_end,
    ):
        yield OpenModels(experiment, settings, pool, waves, limits, until_the_end)


@asynccontextmanager
async def serve_models(
    pool: ModelPool,
    settings: RunSettings,
    needed: bool = True,
    waves: BatchTransport | None = None,
    asked: Collection[str] | None = None,
) -> AsyncIterator[str | None]:
    """Serve the models that have no address, check that all answer, and yield the revision served.

    Args:
        needed: False if no model is asked; then nothing is started or checked.
        waves: asks the models in waves later; None: they are asked one by one.
        asked: names of the models that are asked; None: all.

    Raises:
        UsageError: an API key is missing, or flags are given for a server that is not started.
        OperationalError: a server does not start, an endpoint does not answer, or the recording cannot be
            written.
    """
    here = check_serving(pool, settings, needed)
    endpoint = pool.get().endpoint
    async with AsyncExitStack() as until_the_end:
        revision = None
        with ExitStack() as progress:
            if needed and not here:
                progress.enter_context(showing("asking the models whether they answer", settings.quiet))
            if here:
                from hallulab.agents.serving.server import serve

                serving = serve if waves is None else partial(serve_waves, waves)
                on_progress = progress.enter_context(shown_progress(settings.quiet))
                server = await until_the_end.enter_async_context(
                    serving(endpoint.model, extra_flags=settings.server_flags, on_progress=on_progress)
                )
                pool.bind(server.base_url)
                revision = server.revision
            if needed and waves is not None:
                await check_batch_apis(waves, pool)
            if needed:
                await pool.check(asked)
        if needed:
            for sentence in list_model_warnings(pool):
                _log.warning(sentence)
        yield revision


def check_serving(pool: ModelPool, settings: RunSettings, needed: bool) -> bool:
    """Check that models can be served, before any is; return whether a server is started here.

    Raises:
        UsageError: an API key is missing, or flags are given for a server that is not started.
    """
    if needed:
        pool.check_keys()
    here = needed and not pool.get().endpoint.base_url and not pool.recording.replaying
    if settings.server_flags and not here:
        raise UsageError(f"`-- {settings.server_flags[0]}`: no server is started here, so it takes no flags.")
    return here


def list_asked_models(experiment: Experiment, simulates: bool, judges: bool) -> frozenset[str]:
    """Return the names of the models that users, chatbots and detectors may ask; the default one always is.

    Args:
        simulates: whether users and chatbots take part.
        judges: whether detectors do.
    """
    found = {DEFAULT_MODEL}
    components: list[Component] = []
    if simulates:
        found |= {*experiment.user_models, experiment.roles.get("chatbot", DEFAULT_MODEL)}
        components += experiment.chatbots
    if judges:
        found.add(experiment.roles.get("detector", DEFAULT_MODEL))
        components += experiment.detectors
    for component in components:
        found |= experiment.models.keys() & iterate_inner(component.options, str)
    return frozenset(found)


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
    patient = isinstance(transport, PatientTransport)
    in_waves: dict[str, Any] = {"attempts": MOST_WAVES, "backoff": wait_none()} if patient else {}
    return ModelPool(
        collect_endpoints(experiment),
        recording=recording,
        # A wave is sent when all wait for one: a request that waits for a place would never be in it.
        concurrency=EVERYTHING if patient else experiment.at_once,
        timeout_s=experiment.timeout,
        transport=transport,
        decision_samples=experiment.decision_samples,
        base_urls=experiment.base_urls,
        limits=experiment.endpoint_limits,
        timed=experiment.timed,
        **in_waves,
    )


async def build_knowledge(knowledge: KnowledgeBase, quiet: bool) -> None:
    """Make the vectors now, not in the first search."""
    with shown_progress(quiet) as on_progress:
        await asyncio.to_thread(knowledge.build, on_progress)
