"""Put an experiment together (models, knowledge base, users, chatbots and detectors) and run it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from agents.claim_check import claim_check_of
from agents.machine.progress import ProgressBars
from agents.models.client import Endpoint
from agents.models.model import DEFAULT_MODEL, ModelPool
from agents.models.recording import Recording
from agents.retrieval.knowledge import KnowledgeBase
from agents.served_model import identities, model_warnings
from agents.serving.catalogue import DEFAULT_CPU_MODEL
from agents.users.manners import Manner, manner_of, speaking
from agents.users.user import MAX_TOKENS, SimulatedUser
from chatbots.instructions import instructions_of
from chatbots.protocol import Chatbot, ChatbotContext, parts_version
from chatbots.registry import Workshop, make_chatbot
from detectors.base.protocol import Detector, DetectorContext
from detectors.registry import make_detector
from scenarios.attacks.attacked import Planted, attacked
from scenarios.errors import UsageError
from scenarios.packs.pack import Scenario
from scenarios.packs.pack_files import load_scenario
from simulator.experiment.branching import REPLIES, branch_jobs
from simulator.experiment.config import Component, Experiment
from simulator.experiment.conversation import GivenMessage, User
from simulator.experiment.execution import execute, long_lived_objects_left_alone
from simulator.experiment.makers import Makers, makers
from simulator.experiment.ordering_user import OrderingUser
from simulator.experiment.plan import Job, Plan, check_plan, chosen_personas, plan, user_model
from simulator.experiment.scripted_user import ScriptedUser, check_script
from simulator.experiment.slipping_user import SlippingUser
from simulator.experiment.stage import Cast
from simulator.experiment.workers import Briefing, Workers
from simulator.runs.audit_log import read_chain
from simulator.runs.branching_off import Branching
from simulator.runs.folder import RunFolder
from simulator.runs.importing import imported_scenario
from simulator.runs.journals import Journals, read_journals
from simulator.runs.saved_experiment import Making, check_folder, enter_folder, say_what_is_made_anew

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
    experiment = with_model(experiment)
    chats = None if simulate else imported_scenario(folder)
    scenario, planted = load_attacked(experiment) if chats is None else (chats, None)
    if branching is not None:
        branching.require_other(folder)
    elif simulate:
        check_plan(experiment, scenario)
    recording = open_recording(settings)
    async with _workers(settings) as workers, open_pool(experiment, recording, settings.transport) as pool:
        detectors = make_detectors(experiment, pool, scenario.identity_thresholds) if judge else []
        knowledge = KnowledgeBase(
            scenario, embedding_model=experiment.embedding_model, recording=pool.recording
        )
        replies = experiment.max_turns if branching is None else REPLIES
        cast = make_cast(experiment, scenario, pool, knowledge, detectors, replies)
        made = {
            bot.name: cast.chatbot(bot, experiment.seed) for bot in (experiment.chatbots if simulate else ())
        }
        verifying = {name: claim_check_of(f"chatbot {name}", bot) for name, bot in made.items()}
        if simulate and not settings.fresh:
            check_folder(experiment, scenario, folder, branching)
        needed = simulate or needs_model(detectors)
        with folder.claimed():
            held = _held(folder, settings.fresh, simulate)
            async with served(pool, settings, needed) as revision:
                if needed and scenario.documents and not pool.recording.replaying:
                    await build_knowledge(knowledge, settings.quiet)
                parts = {name: parts_version(bot) for name, bot in made.items()}
                branched = branching is not None
                made_by = makers(experiment, identities(pool), parts, branched) if simulate else None
                jobs = _jobs(experiment, scenario, made_by, branching)
                if not settings.fresh:
                    say_what_is_made_anew(folder, held, detectors, made_by)
                read_how = pool.read_how if needed else ()
                making = Making(made_by, verifying, planted, branching) if simulate else None
                enter_folder(
                    folder, experiment, scenario, detectors, making, revision, read_how, settings.fresh
                )
                bars = ProgressBars(cast.max_turns, len(detectors), settings.quiet)
                if workers is not None:
                    _brief(workers, settings, experiment, scenario, pool, needed, judge, replies)
                with bars, long_lived_objects_left_alone():
                    await execute(cast, jobs, folder, bars, held.of(folder.read_makers()), workers)
                if workers is not None:
                    await workers.leave()
                for replica in pool.replicas:
                    _log.warning(replica.told())
    return scenario


@asynccontextmanager
async def _workers(settings: Settings) -> AsyncIterator[Workers | None]:
    """Yield worker processes; None: this process does the work."""
    if settings.workers == 1:
        yield None
        return
    async with Workers(settings.workers, searching=settings.replay is None) as workers:
        yield workers


def _brief(
    workers: Workers,
    settings: Settings,
    experiment: Experiment,
    scenario: Scenario,
    pool: ModelPool,
    needed: bool,
    judge: bool,
    max_turns: int,
) -> None:
    limits = experiment.endpoint_limits
    own = experiment if limits is None else experiment.with_limits(limits.shared_by(settings.workers))
    briefing = Briefing(
        experiment=own,
        scenario=scenario,
        base_url=pool.get().endpoint.base_url,
        needed=needed,
        judge=judge,
        max_turns=max_turns,
        known=pool.recording.known(),
        recorded=settings.record is not None,
        prepare=settings.prepare_worker,
    )
    workers.brief(briefing, pool.recording, pool.replicas)


def load_attacked(experiment: Experiment) -> tuple[Scenario, Planted | None]:
    """Load the experiment's scenario, with its attack; and what was planted, None without an attack.

    Raises:
        UsageError: like `load_scenario` and `attacked`.
    """
    scenario = load_scenario(experiment.scenario)
    if experiment.attack is None:
        return scenario, None
    scenario, planted = attacked(scenario, experiment.attack)
    known = {bot.name: instructions_of(bot.kind, bot.options) for bot in experiment.chatbots}
    return scenario, planted.model_copy(update={"instructions": known})


def _jobs(
    experiment: Experiment, scenario: Scenario, made_by: Makers | None, branching: Branching | None
) -> Sequence[Job] | Plan:
    """Return the conversations wanted; none if nobody makes any."""
    if made_by is None:
        return []
    if branching is None:
        return plan(experiment, scenario, made_by)
    return branch_jobs(branching.prefixes, experiment, scenario, made_by)


def _held(folder: RunFolder, fresh: bool, simulate: bool) -> Journals:
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


async def build_knowledge(knowledge: KnowledgeBase, quiet: bool) -> None:
    """Make the vectors now, not in the first search."""
    from agents.serving.terminal import shown_progress

    with shown_progress(quiet) as on_progress:
        await asyncio.to_thread(knowledge.build, on_progress)


def with_model(experiment: Experiment) -> Experiment:
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

    Models that hallulab serves get their address in `served`.

    Args:
        recording: keeps the answers or provides them; it is closed at the end.
        transport: see `Settings`.

    Raises:
        UsageError: like `with_model`.
    """
    try:
        pool = _pool(with_model(experiment), recording, transport)
        try:
            yield pool
        finally:
            await pool.close()
    finally:
        recording.close()


@asynccontextmanager
async def served(pool: ModelPool, settings: Settings, needed: bool = True) -> AsyncIterator[str | None]:
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
            from agents.serving.server import serve
            from agents.serving.terminal import shown_progress

            with shown_progress(settings.quiet) as on_progress:
                server = await until_the_end.enter_async_context(
                    serve(endpoint.model, extra_flags=settings.server_flags, on_progress=on_progress)
                )
            pool.bind(server.base_url)
            revision = server.revision
        if needed:
            await pool.check()
            for sentence in model_warnings(pool):
                _log.warning(sentence)
        yield revision


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


def _pool(
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


def make_detectors(
    experiment: Experiment, pool: ModelPool, identity_thresholds: Mapping[str, float]
) -> list[Detector]:
    """Make the experiment's detectors.

    Raises:
        UsageError: one is unknown, has an option it does not know, cannot be made, or reports under the name
            of another.
    """
    detectors: list[Detector] = []
    for chosen in experiment.detectors:
        context = DetectorContext(
            models=pool,
            model=experiment.roles.get("detector"),
            seed=experiment.seed,
            identity_thresholds=identity_thresholds,
            options=chosen.options,
        )
        with experiment.placing_errors(chosen):
            made = make_detector(chosen.kind, chosen.name, context)
            if any(made.name == other.name for other in detectors):
                raise UsageError(
                    f"detector {chosen.kind!r}: it reports as {made.name!r}, and so does another. "
                    "Leave one out, or have it report under the name that it is given."
                )
            detectors.append(made)
    return detectors


def needs_model(detectors: Sequence[Detector]) -> bool:
    """Return whether any of them asks the served model, so that one must be served."""
    return any(detector.traits.needs_model for detector in detectors)


def make_cast(
    experiment: Experiment,
    scenario: Scenario,
    pool: ModelPool,
    knowledge: KnowledgeBase,
    detectors: Sequence[Detector],
    max_turns: int,
) -> Cast:
    """Return who takes part in the experiment.

    Raises:
        UsageError: a persona's script asks a detector that there is not.
    """
    workshop = Workshop()
    searched = knowledge if scenario.documents else None
    by_name = {detector.name: detector for detector in detectors}
    for persona in chosen_personas(experiment, scenario):
        check_script(persona, by_name)

    def user(job: Job) -> User:
        if isinstance(job.user, GivenMessage):
            return job.user
        if job.user.messages:
            scripted = ScriptedUser(job.user.messages, by_name, searched)
            return scripted if job.order is None else OrderingUser(scripted, job.order)
        manner = Manner() if job.key.manner is None else manner_of(job.key.manner)
        simulated = SimulatedUser(
            speaking(job.user, manner),
            scenario.domain,
            pool,
            job.key.seed,
            model=user_model(experiment, job.user.id, job.key.seed),
            min_turns=experiment.min_turns,
            max_tokens=min(experiment.reply_tokens or MAX_TOKENS, manner.tokens or MAX_TOKENS, MAX_TOKENS),
            short=manner.short,
        )
        slipping = SlippingUser(simulated, manner, job.user.id, job.key.seed)
        return slipping if job.order is None else OrderingUser(slipping, job.order)

    def chatbot(chosen: Component, seed: int) -> Chatbot:
        context = ChatbotContext(
            models=pool,
            model=experiment.roles.get("chatbot"),
            knowledge=knowledge,
            scenario=scenario,
            seed=seed,
            top_k=experiment.top_k,
            options=experiment.options_of(chosen),
            parts=workshop,
        )
        with experiment.placing_errors(chosen):
            return make_chatbot(chosen.kind, context)

    return Cast(user, chatbot, detectors, searched, max_turns, experiment.concurrency, pool.recording.stretch)
