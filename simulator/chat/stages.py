"""What live conversations are held with: models that are served once, and a stage for each scenario."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hallulab.agents.models.adaptive import AdaptiveLimits
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.replicas import sticky_session
from hallulab.agents.served_model import identify_models
from hallulab.chatbots.protocol import describe_parts_version
from hallulab.detectors.base.protocol import Detector
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.simulator.chat.journal import open_journal
from hallulab.simulator.chat.live import LiveChat
from hallulab.simulator.engine.conversation import ConversationKey
from hallulab.simulator.engine.manifest import Manifest
from hallulab.simulator.engine.models import (
    RunSettings,
    ensure_model,
    make_limits,
    open_pool,
    open_recording,
    serve_models,
)
from hallulab.simulator.engine.plan import compute_scenario_version, get_model_name
from hallulab.simulator.engine.request import RunRequest, load_attacked
from hallulab.simulator.engine.stage import Stage, build_stage
from hallulab.simulator.records.config import Component, Experiment
from hallulab.simulator.records.experiment_json import HeldLive, SavedExperiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.makers import identify_makers

_WITHOUT_MODEL = ("callable", "autogen")
"""Kinds of chatbots that ask none of the experiment's models: your own code."""

Chosen = TypeVar("Chosen", Component, Detector)


@dataclass(frozen=True)
class LiveStage:
    """The models, chatbots and detectors of an experiment, served, to talk with as often as one likes."""

    stage: Stage
    revision: str | None
    """The revision of the model that is served here; None: not known."""

    @contextmanager
    def begin(self, chatbot: str, detectors: Sequence[str], folder: Path, at: str) -> Iterator[LiveChat]:
        """Yield a conversation that begins.

        Args:
            chatbot: name of a chatbot of the experiment.
            detectors: names of its detectors that judge.
            folder: the run folder.
            at: the command with which it is held.

        Raises:
            UsageError: there is no such chatbot or detector, or the folder holds something else.
            OperationalError: the folder cannot be made.
        """
        experiment, scenario = self.stage.request.experiment, self.stage.request.scenario
        bot = _choose("chatbot", {one.name: one for one in experiment.chatbots}, chatbot)
        by_name = {one.name: one for one in self.stage.participants.detectors}
        judges = [_choose("detector", by_name, name) for name in dict.fromkeys(detectors)]
        version = self._compute_version(bot)
        saved = self._describe(bot, judges, at)
        with sticky_session(), self.stage.participants.keep_answers(), open_journal(folder, saved) as journal:
            persona = f"person-{journal.number}"
            identity = [compute_scenario_version(scenario), version, bot.name, experiment.seed, persona]
            model = get_model_name(experiment, "chatbot")
            key = ConversationKey(
                digest(identity)[:16], scenario.name, persona, bot.name, model, experiment.seed, version
            )
            yield LiveChat(self.stage, bot, judges, key, journal)

    def _compute_version(self, bot: Component) -> str:
        """Return the version of the rules of a conversation and of the chatbot."""
        parts = {bot.name: describe_parts_version(self.stage.chatbots[bot.name])}
        experiment = self.stage.request.experiment
        made_by = identify_makers(experiment, identify_models(self.stage.pool), parts, branched=True)
        return made_by.version(bot.name)

    def _describe(self, bot: Component, judges: Sequence[Detector], at: str) -> SavedExperiment:
        request, manifest = self.stage.request, self.stage.describe(self.revision)
        names = {one.name for one in judges}
        judging = tuple(one for one in request.experiment.detectors if one.name in names)
        chosen = request.experiment.model_copy(update={"chatbots": (bot,), "detectors": judging})
        version = compute_scenario_version(request.scenario)
        before = SavedExperiment(
            experiment=Experiment.model_validate(chosen.model_dump()),  # every field counts as set
            # Differs from that of every simulation, so that none is added to the folder.
            identity={"scenario": f"held live about {request.scenario.name} {version}"},
            detectors={},
            seeds=(request.experiment.seed,),
            planted=request.planted,
            live=HeldLive(at=at),
        )
        verifying = {name: found for name, found in manifest.verifying.items() if name == bot.name}
        return Manifest(
            chosen,
            request.scenario,
            judges,
            verifying=verifying,
            revision=self.revision,
            read_how=manifest.read_how,
        ).update(before)


def _choose(what: str, known: dict[str, Chosen], name: str) -> Chosen:
    if name not in known:
        raise UsageError(f"there is no {what} {name!r} in the experiment. There are: {', '.join(known)}.")
    return known[name]


class LiveModels:
    """The models of live conversations about any scenario. They are served when somebody first needs them.

    Args:
        experiment: its chatbots and detectors take part.
        settings: how its models are asked.
        pool: its models.
        limits: those of their endpoints; None: concurrency is a number.
        until_the_end: what is closed at the end, such as the model server.
    """

    def __init__(
        self,
        experiment: Experiment,
        settings: RunSettings,
        pool: ModelPool,
        limits: AdaptiveLimits | None,
        until_the_end: AsyncExitStack,
    ) -> None:
        self._experiment = experiment
        self._settings = settings
        self._pool = pool
        self._limits = limits
        self._until_the_end = until_the_end
        self._serving = asyncio.Lock()
        self._served = False
        self._revision: str | None = None

    @asynccontextmanager
    async def open_stage(self, scenario: str) -> AsyncIterator[LiveStage]:
        """Make those who take part in conversations about a scenario; yield them, with their models served.

        Raises:
            UsageError: the experiment has a contradiction, or a component is at fault.
            OperationalError: a server or an endpoint failed.
        """
        experiment = self._experiment.model_copy(update={"scenario": scenario})
        loaded, planted = load_attacked(experiment)
        needs_model = any(bot.kind not in _WITHOUT_MODEL for bot in experiment.chatbots)
        request = RunRequest(
            experiment, loaded, planted, None, simulate=True, judge=True, needs_model=needs_model
        )
        stage = build_stage(request, self._settings, self._pool, limits=self._limits)
        try:
            async with stage.serve(RunFolder(Path()), self._serve(stage.asks_model)) as revision:
                yield LiveStage(stage, revision)
        finally:
            for detector in stage.participants.detectors:
                close = getattr(detector, "close", None)
                if close is not None:  # it has a process of its own
                    close()

    @asynccontextmanager
    async def _serve(self, needed: bool) -> AsyncIterator[str | None]:
        """Serve the models, unless they are, and yield the revision served; they stay when the block ends."""
        async with self._serving:
            if not self._served:
                serving = serve_models(self._pool, self._settings, needed)
                self._revision = await self._until_the_end.enter_async_context(serving)
                self._served = True
        yield self._revision


@asynccontextmanager
async def open_live_models(experiment: Experiment, settings: RunSettings) -> AsyncIterator[LiveModels]:
    """Open the models of an experiment, for live conversations while the block runs. Nothing is served yet.

    Raises:
        UsageError: no model is named, or the recording is at fault.
        OperationalError: the recording cannot be opened.
    """
    experiment = ensure_model(experiment.model_copy(update={"until_decided": None}))
    recording = open_recording(settings)
    limits = make_limits(experiment, recording)
    async with (
        open_pool(experiment, recording, settings.transport, limits, watched=True) as pool,
        AsyncExitStack() as until_the_end,
    ):
        yield LiveModels(experiment, settings, pool, limits, until_the_end)
