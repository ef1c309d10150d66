"""Start the workers that the settings ask for, and tell them what to do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from functools import partial

from hallulab.agents.machine.ray_cluster import join_cluster, read_resources
from hallulab.agents.models.adaptive import AUTO
from hallulab.agents.models.model import ModelPool
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.worker_lines import ActorStarter, ProcessLine, share
from hallulab.simulator.engine.workers import (
    SLOW_TO_SEARCH,
    Work,
    WorkerConfig,
    WorkerExecutor,
    WorkerLine,
)
from hallulab.simulator.records.experiment import Experiment


@asynccontextmanager
async def start_workers(
    settings: RunSettings, experiment: Experiment, searches: bool = True
) -> AsyncIterator[WorkerExecutor | None]:
    """Yield worker processes, or actors of a Ray cluster; None: this process does the work.

    Args:
        settings: say how many, and where.
        experiment: says how much each does at once.
        searches: whether documents are searched.

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
        async with WorkerExecutor(settings.workers, _share(experiment, settings), start) as workers:
            yield workers


def configure_workers(
    workers: WorkerExecutor,
    settings: RunSettings,
    experiment: Experiment,
    pool: ModelPool,
    work: Work,
    asks_model: bool,
    recorded: bool,
) -> None:
    """Tell workers what to do, and have this process keep what they record.

    Args:
        workers: who does it.
        settings: how it is done.
        experiment: what is asked for, with its model.
        pool: its models, which have their addresses.
        work: what is done.
        asks_model: whether a model is asked.
        recorded: whether this process keeps the answers, for all.
    """
    limits = experiment.endpoint_limits
    own = None if limits is None else limits.shared_by(settings.workers)
    config = WorkerConfig(
        experiment=experiment.model_copy(update={"endpoint_limits": own}),
        work=work,
        base_url=pool.get().endpoint.base_url,
        asks_model=asks_model,
        known=pool.recording.known(),
        recorded=recorded,
        workers=settings.workers,
        prepare=settings.prepare_worker,
    )
    workers.configure(config if settings.ray is None else share(config), pool.recording, pool.replicas)


def _share(experiment: Experiment, settings: RunSettings) -> int:
    """Return how much each worker does at once at most."""
    shared = experiment.concurrency == AUTO
    return max(1, experiment.at_once // settings.workers) if shared else experiment.at_once
