"""Run an experiment into its folder: from what is asked for to conversations and verdicts in its journals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hallulab.agents.machine.ray_cluster import LOCAL
from hallulab.agents.models.adaptive import join_reached
from hallulab.agents.progress import showing
from hallulab.agents.retrieval.word_search import can_search_by_vectors
from hallulab.agents.served_model import identify_models, read_claim_check
from hallulab.chatbots.guarded.policy import KIND as GUARDED
from hallulab.chatbots.protocol import Chatbot, describe_parts_version
from hallulab.chatbots.registry import is_asking_model, is_searching
from hallulab.scenarios.attacks.attack import AttackRecord
from hallulab.scenarios.chats.record import SCENARIO as IMPORTED
from hallulab.scenarios.errors import UsageError, get_first_error
from hallulab.scenarios.extras import require_extra
from hallulab.scenarios.packs.pack import Scenario
from hallulab.simulator.engine.asking_again import ask_again
from hallulab.simulator.engine.execution import execute, freeze_long_lived_objects
from hallulab.simulator.engine.executors import ConversationWork, Executor, LocalExecutor, read_vectors
from hallulab.simulator.engine.models import (
    OpenModels,
    RunSettings,
    build_knowledge,
    check_serving,
    list_asked_models,
    open_models,
    warn_of,
)
from hallulab.simulator.engine.participants import Participants, is_model_needed
from hallulab.simulator.engine.plan import REPLIES, Branching, check_plan, load_attacked, plan
from hallulab.simulator.engine.progress import ProgressBars
from hallulab.simulator.engine.worker_lines import configure_workers, start_workers
from hallulab.simulator.engine.workers import WorkerExecutor
from hallulab.simulator.records.choices import ensure_model, select_personas
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_json import ComponentVersions
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.guard_log import write_guard_log
from hallulab.simulator.records.identity import require_same_experiment
from hallulab.simulator.records.importing import load_imported_scenario
from hallulab.simulator.records.journals import Journals
from hallulab.simulator.records.leads import require_components_named, require_models_named
from hallulab.simulator.records.provenance import Provenance, identify_makers
from hallulab.simulator.records.recipients import UserWords


@dataclass(frozen=True)
class Run:
    """An experiment with its pack, and all who take part, on models that are open.

    The models have no address until they are served.
    """

    experiment: Experiment
    scenario: Scenario
    """Its pack, with what an attack planted."""
    folder: RunFolder
    models: OpenModels
    participants: Participants
    chatbots: Mapping[str, Chatbot]
    """One of each chatbot, by name: made so that its errors come first, and to describe it."""
    simulate: bool = True
    """False only judges the conversations in the folder."""
    judge: bool = True
    """False only simulates; the experiment's detectors are saved for later."""
    planted: AttackRecord | None = None
    branching: Branching | None = None
    """Where conversations branch off from a finished run; None: they begin at their beginning."""
    workers: WorkerExecutor | None = None
    """Other processes that hold and judge; None: this one does."""
    needs_model: bool = True
    """True if users or chatbots ask a model; if not, one is served only for detectors that do."""

    @cached_property
    def progress(self) -> ProgressBars:
        """The bars that follow the run."""
        participants, quiet = self.participants, self.models.settings.quiet
        return ProgressBars(participants.max_turns, len(participants.detectors), quiet)

    @property
    def asks_model(self) -> bool:
        """True if a model is asked."""
        return (self.simulate and self.needs_model) or is_model_needed(self.participants.detectors)

    @property
    def is_searching(self) -> bool:
        """True if documents are searched by vectors: by judges, for evidence they read, or by chatbots."""
        if self.participants.by_words:
            return False
        asked = self.judge or find_searching(self.experiment, self.simulate) is not None
        return asked and bool(self.scenario.documents)

    def require_packages(self) -> None:
        """Check that what searches by vectors is installed, if anything does.

        Raises:
            UsageError: it is not.
        """
        if self.asks_model and self.is_searching and not self.models.pool.recording.replaying:
            searching = find_searching(self.experiment, self.simulate)
            use = "Search by vectors" if searching is None else f"{searching}: search by vectors"
            require_extra("local", "lancedb", "sentence_transformers", use=use)

    async def serve(self) -> None:
        """Serve the models and make the documents' vectors, at the same time.

        Raises:
            UsageError, OperationalError: see `OpenModels.serve`.
        """
        models, knowledge, asked = self.models, self.participants.knowledge_base, self.asks_model
        if models.waves is not None:
            models.waves.open(self.folder.waves, models.settings.fresh)
        searched = asked and self.is_searching and not models.pool.recording.replaying
        names = list_asked_models(self.experiment, self.simulate, self.judge)
        if searched and not models.pool.get().endpoint.base_url:
            try:
                async with asyncio.TaskGroup() as together:
                    # A server starts here, which takes minutes, and shows its progress meanwhile.
                    embedding = together.create_task(build_knowledge(knowledge, quiet=True))
                    await models.serve(asked, names)
                    with showing("embedding the knowledge documents", models.settings.quiet):
                        await embedding
            except BaseExceptionGroup as group:
                raise get_first_error(group) from group
        else:
            await models.serve(asked, names)
            if searched:
                await build_knowledge(knowledge, models.settings.quiet)
        warn_of(self.participants.detectors)

    def describe_provenance(self) -> Provenance:
        """Return what experiment.json says of the run, once its models are served."""
        branching, made_by = self.branching, None
        if self.simulate:
            parts = {name: describe_parts_version(bot) for name, bot in self.chatbots.items()}
            models = identify_models(self.models.pool)
            made_by = identify_makers(self.experiment, models, parts, branching is not None)
        return Provenance(
            self.experiment,
            self.scenario,
            self.participants.detectors,
            made_by=made_by,
            verifying={name: read_claim_check(f"chatbot {name}", bot) for name, bot in self.chatbots.items()},
            planted=self.planted,
            branched_from=branching.saved() if branching else None,
            prefixes=branching.identity if branching else {},
            revision=self.models.revision,
            read_how=self.models.pool.read_how if self.asks_model else (),
        )

    @asynccontextmanager
    async def working(self) -> AsyncIterator[Executor]:
        """Yield who holds and judges, and show progress; write at the end how endpoints answered.

        Raises:
            OperationalError: server, endpoint or disk failed.
            ReplayMiss: the recording lacks an answer.
        """
        models, workers = self.models, self.workers
        executor = workers or LocalExecutor(self.participants)
        if workers is not None:
            settings, knowledge = models.settings, self.participants.knowledge_base
            vectors = None if settings.ray in (None, LOCAL) else read_vectors(knowledge.folder)
            work = ConversationWork(
                self.scenario, self.judge, self.participants.max_turns, vectors, self.participants.by_words
            )
            recorded = settings.record is not None
            configure_workers(
                workers, settings, self.experiment, models.pool, work, self.asks_model, recorded
            )
        try:
            with self.progress, freeze_long_lived_objects():
                async with AsyncExitStack() as until_the_end:
                    if models.waves is not None:
                        addresses = [models.pool.get(name).endpoint.base_url for name in models.pool.names]
                        waves = models.waves.sending_waves(addresses, self.progress.show)
                        await until_the_end.enter_async_context(waves)
                    yield executor
            if workers is not None:
                await workers.leave()
            if models.limits is not None:
                reached = workers.reached if workers else [models.limits.list_reached()]
                self.progress.show_limits(join_reached(reached))
        finally:
            read_how = models.pool.read_how if self.asks_model else models.pool.list_bots()
            by_workers = workers.read_how if workers else ()
            answered = [replica.did for replica in models.pool.replicas]
            self.folder.add_answers(answered, (*read_how, *by_workers))


Strategy = Callable[[Run, Executor, ComponentVersions, Journals], Coroutine[Any, Any, None]]
"""Has the conversations of a run simulated and judged; `hallulab.simulator.decide.run` does so in batches."""


async def run_experiment(
    experiment: Experiment,
    folder: RunFolder,
    settings: RunSettings,
    simulate: bool,
    judge: bool = True,
    branching: Branching | None = None,
    strategy: Strategy | None = None,
    words: UserWords | None = None,
    again: int = 0,
    on_start: Callable[[], object] | None = None,
) -> Scenario:
    """Run an experiment into its folder, and return the pack that it was run with.

    All errors of usage are found before anything of the folder or the recording is written.

    Args:
        folder: where it goes; what it contains already is not run again.
        simulate: see `Run`, as for `judge` and `branching`.
        strategy: has the conversations simulated and judged; None: all that are planned, at once.
        words: whom the user has named, where the experiment is a run folder's; None: all of it is the user's.
        again: replies that each detector is asked about again afterwards.
        on_start: called when all is found to be right, before a model is served or asked.

    Raises:
        UsageError: the experiment has a contradiction, or does not fit the folder.
        OperationalError: server, endpoint or disk failed.
    """
    folder.refuse_recording(settings.record)
    chats = None if simulate else load_imported_scenario(folder)
    scenario, planted = load_attacked(experiment) if chats is None else (chats, None)
    if branching is not None:
        branching.require_other(folder)
    elif simulate:
        check_plan(experiment, scenario)
    experiment = ensure_model(experiment)
    if words is not None:
        require_components_named(words, experiment, simulate)
    async with open_models(experiment, settings) as models, start_workers(settings, experiment) as workers:
        with showing("loading chatbots and detectors", settings.quiet):
            asking = simulate and (
                not all(user.messages for user in select_personas(experiment, scenario))
                or any(is_asking_model(bot.kind) for bot in experiment.chatbots)
            )
            run = build_run(
                experiment,
                scenario,
                folder,
                models,
                simulate,
                judge,
                planted,
                branching,
                needs_model=asking,
                workers=workers,
            )
        if words is not None and run.asks_model and not models.pool.recording.replaying:
            require_models_named(words, experiment, simulate)
        if simulate and not settings.fresh:
            require_same_experiment(folder, experiment, scenario, branching.identity if branching else None)
        with folder.claimed():
            with showing("reading the journals", settings.quiet):
                journals = _read_journals(folder, settings.fresh, simulate)
            if on_start is not None:
                check_serving(models.pool, settings, run.asks_model)
                on_start()
            await run.serve()
            provenance = run.describe_provenance()
            made_by = provenance.made_by
            # Before the conversations: whoever reads the folder meanwhile knows by it which of them count.
            provenance.write(folder, journals, settings.fresh, branching.free if branching else None)
            jobs = [] if made_by is None else plan(experiment, scenario, made_by, branching)
            async with run.working() as executor:
                counting = folder.select_current(journals)
                if strategy is None or made_by is None:
                    detectors = run.participants.detectors
                    await execute(detectors, jobs, folder, run.progress, counting, executor)
                else:
                    await strategy(run, executor, made_by, counting)
                if again:
                    detectors = run.participants.detectors
                    await ask_again(detectors, folder, run.progress, executor, again, experiment.seed)
            if any(bot.kind == GUARDED for bot in experiment.chatbots):
                write_guard_log(folder)
    return scenario


def build_run(
    experiment: Experiment,
    scenario: Scenario,
    folder: RunFolder,
    models: OpenModels,
    simulate: bool = True,
    judge: bool = True,
    planted: AttackRecord | None = None,
    branching: Branching | None = None,
    needs_model: bool = True,
    workers: WorkerExecutor | None = None,
) -> Run:
    """Make all who take part, on models that are open; see `Run` for the arguments.

    Raises:
        UsageError: a detector, a chatbot or an option is at fault.
    """
    max_turns = experiment.max_turns if branching is None else REPLIES
    needs_vectors = scenario.name != IMPORTED and find_searching(experiment, simulate) is not None
    by_words = not needs_vectors and not can_search_by_vectors()
    participants = Participants(
        experiment, scenario, models.pool, judge, max_turns, models.limits, models.waves, by_words
    )
    bots = experiment.chatbots if simulate else ()
    chatbots = {bot.name: participants.make_sample_chatbot(bot) for bot in bots}
    run = Run(
        experiment,
        scenario,
        folder,
        models,
        participants,
        chatbots,
        simulate,
        judge,
        planted,
        branching,
        workers,
        needs_model,
    )
    run.require_packages()
    return run


def find_searching(experiment: Experiment, simulate: bool) -> str | None:
    """Return who searches while conversations are held, such as `chatbot vanilla`; None: nobody does."""
    attack = experiment.attack
    if attack is not None and attack.retrieval is not None:
        return "attack on searches"
    for bot in experiment.chatbots if simulate else ():
        with experiment.placing_errors(bot):
            if is_searching(bot.kind):
                return f"chatbot {bot.name}"
    return None


def _read_journals(folder: RunFolder, fresh: bool, simulate: bool) -> Journals:
    """Read the folder's journals; they are empty if they are to be deleted.

    Raises:
        UsageError: a journal is damaged, or it is to be judged and is empty.
    """
    journals = Journals([], []) if fresh else folder.read_all_journals()
    if not simulate and not folder.select_current(journals).heads:
        raise UsageError(f"{folder.conversations} is empty: there is nothing to judge yet.")
    return journals
