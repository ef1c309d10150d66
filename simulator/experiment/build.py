"""Put an experiment together (models, knowledge base, users, chatbots and detectors) and run it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from hallulab.agents.claim_check import read_claim_check
from hallulab.agents.machine.progress import ProgressBars
from hallulab.agents.models.client import Endpoint
from hallulab.agents.models.model import DEFAULT_MODEL, ModelPool
from hallulab.agents.models.recording import Recording
from hallulab.agents.served_model import identify_models, list_model_warnings
from hallulab.agents.serving.catalogue import DEFAULT_CPU_MODEL
from hallulab.chatbots.instructions import collect_instructions
from hallulab.chatbots.protocol import describe_parts_version
from hallulab.detectors.base.protocol import Detector
from hallulab.scenarios.attacks.attacked import AttackRecord, apply_attack
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.simulator.experiment.branching import REPLIES, branch_jobs
from hallulab.simulator.experiment.casting import is_model_needed, make_cast, make_detectors, make_knowledge
from hallulab.simulator.experiment.config import Experiment
from hallulab.simulator.experiment.embedding import build_knowledge, start_embedding
from hallulab.simulator.experiment.execution import execute, freeze_long_lived_objects
from hallulab.simulator.experiment.makers import ComponentVersions, identify_makers
from hallulab.simulator.experiment.plan import Job, Plan, check_plan, plan
from hallulab.simulator.experiment.stage import Participants
from hallulab.simulator.experiment.workers import ProcessExecutor, WorkerConfig
from hallulab.simulator.runs.audit_log import read_chain
from hallulab.simulator.runs.branching_off import Branching
from hallulab.simulator.runs.folder import RunFolder
from hallulab.simulator.runs.importing import load_imported_scenario
from hallulab.simulator.runs.journals import Journals, read_journals
from hallulab.simulator.runs.saved_experiment import (
    RunProvenance,
    add_answers,
    check_folder,
    enter_folder,
    warn_of_made_anew,
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
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

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise UsageError(f"--workers {self.workers}: at least one process does the work.")
        if self.record is not None and self.replay is not None:
            raise UsageError("--record and --replay exclude each other: give one of them.")


async def execute_experiment(
    experiment: Experiment,
    folder: RunFolder,
    settings: Settings,
    simulate: bool,
    judge: bool = True,
    branching: Branching | None = None,
) -> Scenario:
    """Run an experiment into its folder, and return the pack that it was run with.

    All errors of usage are found before anything of the folder or the recording is written.

    Args:
        simulate: False only judges the conversations in the folder.
        judge: False only simulates; the experiment's detectors are saved for later.
        branching: where conversations branch off from a finished run; None: they begin at their beginning.

    Raises:
        UsageError: the experiment has a contradiction, or does not fit the folder.
        OperationalError: server, endpoint or disk failed.
    """
    experiment = ensure_model(experiment)
    scenario, planted = _load(experiment, folder, simulate, branching)
    recording = open_recording(settings)
    async with (
        _start_workers(settings, experiment) as workers,
        open_pool(experiment, recording, settings.transport) as pool,
    ):
        detectors = make_detectors(experiment, pool, scenario.identity_thresholds) if judge else []
        knowledge = make_knowledge(experiment, scenario, pool)
        replies = experiment.max_turns if branching is None else REPLIES
        cast = make_cast(experiment, scenario, pool, knowledge, detectors, replies)
        bots = experiment.chatbots if simulate else ()
        made = {bot.name: cast.chatbot(bot, experiment.seed) for bot in bots}
        if simulate and not settings.fresh:
            check_folder(experiment, scenario, folder, branching)
        needed = simulate or is_model_needed(detectors)
        with folder.claimed():
            held = _load_held_journals(folder, settings.fresh, simulate)
            searched = needed and bool(scenario.documents) and not pool.recording.replaying
            starts = searched and not pool.get().endpoint.base_url
            async with (
                start_embedding(knowledge, starts) as embedded,
                serve_models(pool, settings, needed) as revision,
            ):
                if searched:
                    await (embedded or build_knowledge(knowledge, settings.quiet))
                warn_of(detectors)
                verifying = {name: read_claim_check(f"chatbot {name}", bot) for name, bot in made.items()}
                parts = {name: describe_parts_version(bot) for name, bot in made.items()}
                branched = branching is not None
                made_by = (
                    identify_makers(experiment, identify_models(pool), parts, branched) if simulate else None
                )
                jobs = _plan_jobs(experiment, scenario, made_by, branching)
                if not settings.fresh:
                    warn_of_made_anew(folder, held, detectors, made_by)
                read_how = pool.read_how if needed else ()
                making = RunProvenance(made_by, verifying, planted, branching) if simulate else None
                enter_folder(
                    folder, experiment, scenario, detectors, making, revision, read_how, settings.fresh
                )
                if workers is not None:
                    briefing = _build_worker_config(
                        settings, experiment, scenario, pool, needed, judge, replies
                    )
                    workers.brief(briefing, pool.recording, pool.replicas)
                bars = ProgressBars(cast.max_turns, len(detectors), settings.quiet)
                try:
                    await _perform(cast, jobs, folder, bars, held, workers)
                finally:
                    add_answers(folder, [replica.did for replica in pool.replicas])
    return scenario


@asynccontextmanager
async def _start_workers(settings: Settings, experiment: Experiment) -> AsyncIterator[ProcessExecutor | None]:
    """Yield worker processes; None: this process does the work."""
    if settings.workers == 1:
        yield None
        return
    searching = settings.replay is None
    async with ProcessExecutor(settings.workers, experiment.concurrency, searching) as workers:
        yield workers


def _build_worker_config(
    settings: Settings,
    experiment: Experiment,
    scenario: Scenario,
    pool: ModelPool,
    needed: bool,
    judge: bool,
    max_turns: int,
) -> WorkerConfig:
    limits = experiment.endpoint_limits
    share = None if limits is None else limits.shared_by(settings.workers)
    return WorkerConfig(
        experiment=experiment.model_copy(update={"endpoint_limits": share}),
        scenario=scenario,
        base_url=pool.get().endpoint.base_url,
        needed=needed,
        judge=judge,
        max_turns=max_turns,
        known=pool.recording.known(),
        recorded=settings.record is not None,
        prepare=settings.prepare_worker,
    )


async def _perform(
    cast: Participants,
    jobs: Sequence[Job] | Plan,
    folder: RunFolder,
    bars: ProgressBars,
    held: Journals,
    workers: ProcessExecutor | None,
) -> None:
    """Hold and judge the conversations, here or in worker processes, which have then ended."""
    with bars, freeze_long_lived_objects():
        await execute(cast, jobs, folder, bars, held.of(folder.read_makers()), workers)
    if workers is not None:
        await workers.leave()


def _load(
    experiment: Experiment, folder: RunFolder, simulate: bool, branching: Branching | None
) -> tuple[Scenario, AttackRecord | None]:
    """Load the pack of a run, or of imported chats; and what was planted, like `load_attacked`.

    Raises:
        UsageError: the experiment has a contradiction, or does not fit the folder.
    """
    chats = None if simulate else load_imported_scenario(folder)
    scenario, planted = load_attacked(experiment) if chats is None else (chats, None)
    if branching is not None:
        branching.require_other(folder)
    elif simulate:
        check_plan(experiment, scenario)
    return scenario, planted


def load_attacked(experiment: Experiment) -> tuple[Scenario, AttackRecord | None]:
    """Load the experiment's scenario, with its attack; and what was planted, None without an attack.

    Raises:
        UsageError: like `load_scenario` and `apply_attack`.
    """
    scenario = load_scenario(experiment.scenario)
    if experiment.attack is None:
        return scenario, None
    scenario, planted = apply_attack(scenario, experiment.attack)
    known = {bot.name: collect_instructions(bot.kind, bot.options) for bot in experiment.chatbots}
    return scenario, planted.model_copy(update={"instructions": known})


def _plan_jobs(
    experiment: Experiment, scenario: Scenario, made_by: ComponentVersions | None, branching: Branching | None
) -> Sequence[Job] | Plan:
    """Return the conversations wanted; none if nobody makes any."""
    if made_by is None:
        return []
    if branching is None:
        return plan(experiment, scenario, made_by)
    return branch_jobs(branching.prefixes, experiment, scenario, made_by)


def _load_held_journals(folder: RunFolder, fresh: bool, simulate: bool) -> Journals:
    """Return the content of the folder's journals; nothing if they are to be deleted.

    Raises:
        UsageError: a journal is damaged, or it is to be judged and is empty.
        OperationalError: the audit log was edited.
    """
    if not fresh:
        read_chain(folder.audit)
    held = Journals([], []) if fresh else read_journals(folder.conversations, folder.verdicts)
    if not simulate and not held.of(folder.read_makers()).heads:
        raise UsageError(f"{folder.conversations} is empty: there is nothing to judge yet.")
    return held


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


@asynccontextmanager
async def open_pool(
    experiment: Experiment, recording: Recording, transport: httpx2.AsyncBaseTransport | None = None
) -> AsyncIterator[ModelPool]:
    """Open the experiment's models, to make components with.

    Models that hallulab serves get their address in `serve_models`.

    Args:
        recording: keeps the answers or provides them; it is closed at the end.
        transport: see `Settings`.

    Raises:
        UsageError: like `ensure_model`.
    """
    try:
        pool = _build_pool(ensure_model(experiment), recording, transport)
        try:
            yield pool
        finally:
            await pool.close()
    finally:
        recording.close()


@asynccontextmanager
async def serve_models(pool: ModelPool, settings: Settings, needed: bool = True) -> AsyncIterator[str | None]:
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
            from hallulab.agents.serving.server import serve
            from hallulab.agents.serving.terminal import shown_progress

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


def warn_of(detectors: Iterable[Detector]) -> None:
    """Log what a user should know of detectors whose models are served."""
    for detector in detectors:
        for sentence in detector.warnings:
            _log.warning(sentence)


def open_recording(settings: Settings) -> Recording:
    """Open the recording that the settings ask for, or one in memory.

    Raises:
        UsageError: the file to replay does not exist or is no recording.
    """
    if settings.replay is not None:
        return Recording.replay(settings.replay)
    if settings.record is not None:
        return Recording.record(settings.record)
    return Recording()


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
        concurrency=experiment.concurrency,
        timeout_s=experiment.timeout,
        transport=transport,
        decision_samples=experiment.decision_samples,
        base_urls=experiment.base_urls,
        limits=experiment.endpoint_limits,
        timed=experiment.timed,
    )
