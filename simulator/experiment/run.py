"""Run an experiment into its folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from hallulab.agents.models.batch import BatchTransport
from hallulab.agents.models.model import ModelPool
from hallulab.agents.retrieval.knowledge import KnowledgeBase
from hallulab.agents.served_model import identify_models, read_claim_check
from hallulab.chatbots.protocol import Chatbot, describe_parts_version
from hallulab.chatbots.registry import collect_instructions
from hallulab.scenarios.attacks.attack import AttackRecord, apply_attack
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.simulator.experiment.batch import hold_all, make_waves, sending_waves
from hallulab.simulator.experiment.config import Experiment
from hallulab.simulator.experiment.execution import execute, freeze_long_lived_objects
from hallulab.simulator.experiment.fixed_prefix import REPLIES, Branching, branch_jobs
from hallulab.simulator.experiment.makers import ComponentVersions, identify_makers
from hallulab.simulator.experiment.manifest import (
    Manifest,
    add_answers,
    check_folder,
    warn_of_made_anew,
    write_manifest,
)
from hallulab.simulator.experiment.models import (
    RunSettings,
    build_knowledge,
    ensure_model,
    open_pool,
    open_recording,
    serve_models,
    start_embedding,
    warn_of,
)
from hallulab.simulator.experiment.participants import (
    Participants,
    build_participants,
    is_model_needed,
    make_knowledge,
)
from hallulab.simulator.experiment.plan import Job, Plan, check_plan, plan
from hallulab.simulator.experiment.processes import ProcessLine
from hallulab.simulator.experiment.progress import ProgressBars
from hallulab.simulator.experiment.workers import SLOW_TO_SEARCH, WorkerConfig, WorkerExecutor
from hallulab.simulator.runs.audit_log import read_chain
from hallulab.simulator.runs.folder import RunFolder
from hallulab.simulator.runs.importing import load_imported_scenario
from hallulab.simulator.runs.journals import Journals


@dataclass(frozen=True)
class RunRequest:
    """What is run: an experiment with its model and its pack, and what is done with it."""

    experiment: Experiment
    scenario: Scenario
    """Its pack, with what an attack planted."""
    planted: AttackRecord | None
    """What the attack planted; None without one."""
    branching: Branching | None
    """Where conversations branch off from a finished run; None: they begin at their beginning."""
    simulate: bool
    """False only judges the conversations in the folder."""
    judge: bool
    """False only simulates; the experiment's detectors are saved for later."""

    @property
    def max_turns(self) -> int:
        """Replies after which a conversation is stopped."""
        return self.experiment.max_turns if self.branching is None else REPLIES


async def run_experiment(
    experiment: Experiment,
    folder: RunFolder,
    settings: RunSettings,
    simulate: bool,
    judge: bool = True,
    branching: Branching | None = None,
) -> Scenario:
    """Run an experiment into its folder, and return the pack that it was run with.

    All errors of usage are found before anything of the folder or the recording is written.

    Args:
        experiment: what is asked for.
        folder: where it goes; what it holds already is not made again.
        settings: how it is run.
        simulate: see `RunRequest`, like `judge` and `branching`.

    Raises:
        UsageError: the experiment has a contradiction, or does not fit the folder.
        OperationalError: server, endpoint or disk failed.
    """
    request = load_request(experiment, folder, simulate, judge, branching)
    waves = make_waves(request.experiment, settings.batch)
    recording = open_recording(settings)
    async with (
        _start_workers(settings, request.experiment) as workers,
        open_pool(request.experiment, recording, waves or settings.transport) as pool,
    ):
        knowledge = make_knowledge(request.experiment, request.scenario, pool)
        participants = build_participants(
            request.experiment, request.scenario, pool, knowledge, judge, request.max_turns
        )
        participants = hold_all(participants, waves)
        chatbots = _make_chatbots(request, participants)
        if simulate and not settings.fresh:
            check_folder(request.experiment, request.scenario, folder, branching)
        with folder.claimed():
            journals = _read_journals(folder, settings.fresh, simulate)
            if waves is not None:
                waves.open(folder.waves, settings.fresh)
            async with _serve(request, participants, pool, knowledge, settings, waves) as revision:
                manifest = describe_run(request, participants, chatbots, pool, revision)
                jobs = plan_run(request, manifest.made_by)
                if not settings.fresh:
                    warn_of_made_anew(folder, journals, participants.detectors, manifest.made_by)
                write_manifest(folder, manifest, settings.fresh)
                if workers is not None:
                    config = _configure_workers(request, participants, settings, pool)
                    workers.configure(config, recording, pool.replicas)
                progress = ProgressBars(request.max_turns, len(participants.detectors), settings.quiet)
                try:
                    with progress, freeze_long_lived_objects():
                        current = journals.of(folder.read_makers())
                        async with sending_waves(waves, pool):
                            await execute(participants, jobs, folder, progress, current, workers)
                    if workers is not None:
                        await workers.leave()
                finally:
                    add_answers(folder, [replica.did for replica in pool.replicas])
    return request.scenario


def load_request(
    experiment: Experiment, folder: RunFolder, simulate: bool, judge: bool, branching: Branching | None
) -> RunRequest:
    """Load what an experiment is run with: its pack with the attack, or that of imported chats.

    Raises:
        UsageError: the experiment has a contradiction, or does not fit the folder.
    """
    experiment = ensure_model(experiment)
    chats = None if simulate else load_imported_scenario(folder)
    scenario, planted = load_attacked(experiment) if chats is None else (chats, None)
    if branching is not None:
        branching.require_other(folder)
    elif simulate:
        check_plan(experiment, scenario)
    return RunRequest(experiment, scenario, planted, branching, simulate, judge)


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


def plan_run(request: RunRequest, made_by: ComponentVersions | None) -> Sequence[Job] | Plan:
    """Return the conversations wanted; none if nobody makes any."""
    if made_by is None:
        return []
    if request.branching is None:
        return plan(request.experiment, request.scenario, made_by)
    return branch_jobs(request.branching.prefixes, request.experiment, request.scenario, made_by)


def describe_run(
    request: RunRequest,
    participants: Participants,
    chatbots: Mapping[str, Chatbot],
    pool: ModelPool,
    revision: str | None,
) -> Manifest:
    """Return what experiment.json says of a run, once its models are served."""
    made_by = None
    if request.simulate:
        parts = {name: describe_parts_version(bot) for name, bot in chatbots.items()}
        branched = request.branching is not None
        made_by = identify_makers(request.experiment, identify_models(pool), parts, branched)
    return Manifest(
        request.experiment,
        request.scenario,
        participants.detectors,
        made_by=made_by,
        verifying={name: read_claim_check(f"chatbot {name}", bot) for name, bot in chatbots.items()},
        planted=request.planted,
        branching=request.branching,
        revision=revision,
        read_how=pool.read_how if _is_model_asked(request, participants) else (),
    )


def _is_model_asked(request: RunRequest, participants: Participants) -> bool:
    return request.simulate or is_model_needed(participants.detectors)


def _make_chatbots(request: RunRequest, participants: Participants) -> dict[str, Chatbot]:
    """Make each chatbot once, so that its errors come first, and to describe it."""
    bots = request.experiment.chatbots if request.simulate else ()
    return {bot.name: participants.make_chatbot(bot, request.experiment.seed) for bot in bots}


def _read_journals(folder: RunFolder, fresh: bool, simulate: bool) -> Journals:
    """Read the folder's journals; they are empty if they are to be deleted.

    Raises:
        UsageError: a journal is damaged, or it is to be judged and is empty.
        OperationalError: the audit log was edited.
    """
    if not fresh:
        read_chain(folder.audit)
    journals = Journals([], []) if fresh else folder.read_all_journals()
    if not simulate and not journals.of(folder.read_makers()).heads:
        raise UsageError(f"{folder.conversations} is empty: there is nothing to judge yet.")
    return journals


@asynccontextmanager
async def _serve(
    request: RunRequest,
    participants: Participants,
    pool: ModelPool,
    knowledge: KnowledgeBase,
    settings: RunSettings,
    waves: BatchTransport | None,
) -> AsyncIterator[str | None]:
    """Serve the models and make the documents' vectors, at the same time; yield the revision served."""
    asked = _is_model_asked(request, participants)
    searched = asked and bool(request.scenario.documents) and not pool.recording.replaying
    starts_server = searched and not pool.get().endpoint.base_url
    async with (
        start_embedding(knowledge, starts_server) as embedded,
        serve_models(pool, settings, asked, waves) as revision,
    ):
        if searched:
            await (embedded or build_knowledge(knowledge, settings.quiet))
        warn_of(participants.detectors)
        yield revision


@asynccontextmanager
async def _start_workers(
    settings: RunSettings, experiment: Experiment
) -> AsyncIterator[WorkerExecutor | None]:
    """Yield the workers; None: this process holds and judges."""
    if settings.workers == 1:
        yield None
        return
    start = partial(ProcessLine, SLOW_TO_SEARCH if settings.replay is None else ())
    async with WorkerExecutor(settings.workers, experiment.concurrency, start) as workers:
        yield workers


def _configure_workers(
    request: RunRequest, participants: Participants, settings: RunSettings, pool: ModelPool
) -> WorkerConfig:
    limits = request.experiment.endpoint_limits
    share = None if limits is None else limits.shared_by(settings.workers)
    return WorkerConfig(
        experiment=request.experiment.model_copy(update={"endpoint_limits": share}),
        scenario=request.scenario,
        base_url=pool.get().endpoint.base_url,
        asks_model=_is_model_asked(request, participants),
        judge=request.judge,
        max_turns=request.max_turns,
        known=pool.recording.known(),
        recorded=settings.record is not None,
        prepare=settings.prepare_worker,
    )
