"""The stage of a run: its models, its workers and who takes part, from when they are made until it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from hallulab.agents.machine.ray_cluster import LOCAL
from hallulab.agents.models.adaptive import AdaptiveLimits, join_reached
from hallulab.agents.models.batch import BatchTransport
from hallulab.agents.models.model import ModelPool
from hallulab.agents.retrieval.knowledge import KnowledgeBase
from hallulab.agents.served_model import identify_models, read_claim_check
from hallulab.chatbots.protocol import Chatbot, describe_parts_version
from hallulab.chatbots.registry import is_searching
from hallulab.simulator.engine.batch import hold_all, make_waves, sending_waves
from hallulab.simulator.engine.execution import ProgressBars, execute, freeze_long_lived_objects
from hallulab.simulator.engine.executors import ConversationWork, Executor, LocalExecutor, read_vectors
from hallulab.simulator.engine.manifest import Manifest, add_answers
from hallulab.simulator.engine.models import (
    RunSettings,
    build_knowledge,
    make_limits,
    open_pool,
    open_recording,
    serve_models,
    start_embedding,
    warn_of,
)
from hallulab.simulator.engine.participants import (
    Participants,
    build_participants,
    is_model_needed,
    make_knowledge,
)
from hallulab.simulator.engine.plan import Job, Plan
from hallulab.simulator.engine.request import RunRequest
from hallulab.simulator.engine.staffing import configure_workers, start_workers
from hallulab.simulator.engine.workers import WorkerExecutor
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journals import Journals
from hallulab.simulator.records.makers import identify_makers, list_asked_models


@dataclass(frozen=True)
class Performance:
    """Holds and judges conversations for a run folder, as often as it is asked to."""

    participants: Participants
    folder: RunFolder
    progress: ProgressBars
    """Follows the run."""
    executor: Executor

    async def perform(self, jobs: Sequence[Job] | Plan, journals: Journals) -> None:
        """Hold and judge what the folder lacks.

        Args:
            jobs: the conversations wanted.
            journals: what the folder has that counts.

        Raises:
            OperationalError: server, endpoint or disk failed.
            ReplayMiss: the recording lacks an answer.
        """
        await execute(self.participants, jobs, self.folder, self.progress, journals, self.executor)


@dataclass(frozen=True)
class Stage:
    """Who and what a run has. Its models have no address until they are served."""

    request: RunRequest
    settings: RunSettings
    """How it is run."""
    pool: ModelPool
    knowledge: KnowledgeBase
    participants: Participants
    chatbots: Mapping[str, Chatbot]
    """One of each chatbot, by name: made so that its errors come first, and to describe it."""
    workers: WorkerExecutor | None
    """Other processes that hold and judge; None: this one does."""
    waves: BatchTransport | None
    """Asks the models in waves; None: they are asked one by one."""
    limits: AdaptiveLimits | None
    """Found out by asking; None: concurrency is a number."""

    @property
    def asks_model(self) -> bool:
        """Whether a model is asked."""
        held = self.request.simulate and self.request.needs_model
        return held or is_model_needed(self.participants.detectors)

    @property
    def _is_searching(self) -> bool:
        """Whether the documents are searched: by judges, for evidence that they read, or by chatbots."""
        bots = self.request.experiment.chatbots if self.request.simulate else ()
        attacked = self.participants.make_attacked_chatbot is not None
        asked = self.request.judge or attacked or any(is_searching(bot.kind) for bot in bots)
        return asked and bool(self.request.scenario.documents)

    @asynccontextmanager
    async def serve(
        self, folder: RunFolder, serving: AbstractAsyncContextManager[str | None] | None = None
    ) -> AsyncIterator[str | None]:
        """Serve the models and make the documents' vectors, at the same time; yield the revision served.

        Args:
            folder: the run folder, which keeps waves.
            serving: serves the models while it is open, and gives the revision; None: `serve_models`.

        Raises:
            UsageError: see `serve_models`, as for OperationalError.
        """
        if self.waves is not None:
            self.waves.open(folder.waves, self.settings.fresh)
        asked, pool, request = self.asks_model, self.pool, self.request
        models = list_asked_models(request.experiment, request.simulate, request.judge)
        searched = asked and self._is_searching and not pool.recording.replaying
        starts_server = searched and not pool.get().endpoint.base_url
        async with (
            start_embedding(self.knowledge, starts_server) as embedded,
            serving or serve_models(pool, self.settings, asked, self.waves, models) as revision,
        ):
            if searched:
                await (embedded or build_knowledge(self.knowledge, self.settings.quiet))
            warn_of(self.participants.detectors)
            yield revision

    def describe(self, revision: str | None) -> Manifest:
        """Return what experiment.json says of the run, once its models are served."""
        request, made_by = self.request, None
        if request.simulate:
            parts = {name: describe_parts_version(bot) for name, bot in self.chatbots.items()}
            branched = request.branching is not None
            made_by = identify_makers(request.experiment, identify_models(self.pool), parts, branched)
        return Manifest(
            request.experiment,
            request.scenario,
            self.participants.detectors,
            made_by=made_by,
            verifying={name: read_claim_check(f"chatbot {name}", bot) for name, bot in self.chatbots.items()},
            planted=request.planted,
            branching=request.branching,
            revision=revision,
            read_how=self.pool.read_how if self.asks_model else (),
        )

    @asynccontextmanager
    async def performing(self, folder: RunFolder) -> AsyncIterator[Performance]:
        """Yield what holds and judges while the block runs; write how the endpoints answered at its end.

        Raises:
            OperationalError: server, endpoint or disk failed.
            ReplayMiss: the recording lacks an answer.
        """
        if self.workers is not None:
            self._configure_workers(self.workers)
        detectors = len(self.participants.detectors)
        progress = ProgressBars(self.request.max_turns, detectors, self.settings.quiet)
        executor = self.workers or LocalExecutor(self.participants)
        try:
            with progress, freeze_long_lived_objects():
                async with sending_waves(self.waves, self.pool, progress.tell):
                    yield Performance(self.participants, folder, progress, executor)
            if self.workers is not None:
                await self.workers.leave()
            if self.limits is not None:
                reached = self.workers.reached if self.workers else [self.limits.list_reached()]
                progress.tell_limits(join_reached(reached))
        finally:
            asked = self.pool.read_how if self.asks_model else self.pool.list_bots()
            by_workers = self.workers.read_how if self.workers else ()
            did = [replica.did for replica in self.pool.replicas]
            add_answers(folder, did, (*asked, *by_workers))

    def _configure_workers(self, workers: WorkerExecutor) -> None:
        request, settings = self.request, self.settings
        vectors = None if settings.ray in (None, LOCAL) else read_vectors(self.knowledge.folder)
        work = ConversationWork(request.scenario, request.judge, request.max_turns, vectors)
        recorded = settings.record is not None
        configure_workers(workers, settings, request.experiment, self.pool, work, self.asks_model, recorded)


@asynccontextmanager
async def open_stage(request: RunRequest, settings: RunSettings) -> AsyncIterator[Stage]:
    """Start workers, make all who take part, and close everything at the end. Nothing is served yet.

    Raises:
        UsageError: a detector, a chatbot, an option or the settings are at fault.
        OperationalError: a recording or a cluster cannot be opened.
    """
    experiment = request.experiment
    waves = make_waves(experiment, settings.batch)
    recording = open_recording(settings)
    limits = None if waves else make_limits(experiment, recording)
    async with (
        start_workers(settings, experiment) as workers,
        open_pool(experiment, recording, waves or settings.transport, limits) as pool,
    ):
        yield build_stage(request, settings, pool, workers, waves, limits)


def build_stage(
    request: RunRequest,
    settings: RunSettings,
    pool: ModelPool,
    workers: WorkerExecutor | None = None,
    waves: BatchTransport | None = None,
    limits: AdaptiveLimits | None = None,
) -> Stage:
    """Make all who take part, on models that are open; see `Stage` for the arguments.

    Raises:
        UsageError: a detector, a chatbot or an option is at fault.
    """
    experiment, scenario = request.experiment, request.scenario
    knowledge = make_knowledge(experiment, scenario, pool)
    participants = hold_all(
        build_participants(experiment, scenario, pool, knowledge, request.judge, request.max_turns, limits),
        waves,
    )
    bots = experiment.chatbots if request.simulate else ()
    chatbots = {bot.name: participants.make_chatbot(bot, experiment.seed, "") for bot in bots}
    return Stage(request, settings, pool, knowledge, participants, chatbots, workers, waves, limits)
