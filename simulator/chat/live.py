"""A conversation that a person holds with a chatbot of an experiment, judged turn by turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from autogen_agentchat.messages import StructuredMessage

from hallulab.agents.models.endpoints import staying
from hallulab.agents.models.redaction import remove_keys
from hallulab.agents.served_model import identify_models
from hallulab.agents.users.user import UserMove
from hallulab.chatbots.protocol import describe_parts_version, has_memory
from hallulab.detectors.base.protocol import Detector, run_detector
from hallulab.scenarios.errors import HallulabError, UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.transcript import Call, StopReason, Turn, TurnView, Verdict
from hallulab.simulator.chat.journal import LiveJournal, open_journal
from hallulab.simulator.experiment.config import Component, Experiment
from hallulab.simulator.experiment.conversation import (
    ChatbotAgent,
    ConversationKey,
    Ending,
    build_ended_conversation,
)
from hallulab.simulator.experiment.makers import identify_makers
from hallulab.simulator.experiment.manifest import Manifest
from hallulab.simulator.experiment.models import RunSettings, ensure_model
from hallulab.simulator.experiment.plan import compute_scenario_version, get_model_name
from hallulab.simulator.experiment.request import RunRequest, load_attacked
from hallulab.simulator.experiment.stage import Stage, open_stage
from hallulab.simulator.runs.experiment_json import HeldLive, SavedExperiment
from hallulab.simulator.runs.folder import RunFolder

_WITHOUT_MODEL = ("callable", "autogen")
"""Kinds of chatbots that ask none of the experiment's models: your own code."""

Chosen = TypeVar("Chosen", Component, Detector)


class ReplyFailed(HallulabError):
    """The chatbot gave no reply. The turns before it are kept."""


class LiveChat:
    """One conversation of a person with a chatbot. What was said is on disk when `say` returns.

    Args:
        stage: the models and participants.
        bot: the chatbot that answers.
        detectors: those that judge.
        key: what identifies the conversation.
        journal: where it is written.
    """

    def __init__(
        self,
        stage: Stage,
        bot: Component,
        detectors: Sequence[Detector],
        key: ConversationKey,
        journal: LiveJournal,
    ) -> None:
        self._stage = stage
        self._bot = bot
        self.detectors = detectors
        self.key = key
        self.folder = journal.folder
        self._journal = journal
        self._chatbot = stage.participants.make_chatbot_for(bot, key)
        self.turns: list[Turn] = []
        """The turns that ended."""
        self._calls: list[Call] = []
        self.over: str | None = None
        """Why nothing more can be said; None: it can."""

    @property
    def is_saved(self) -> bool:
        """Whether something of it is on disk."""
        return self._journal.is_written

    async def say(self, message: str) -> Turn:
        """Have the chatbot answer a message; return the turn.

        Cancelling it stops the reply: the message is forgotten, the turns before it stay.

        Raises:
            ReplyFailed: there is no reply.
            ReplayMiss: the recording lacks an answer.
            OperationalError: the turn cannot be written.
        """
        if self.over is not None:
            raise ReplyFailed(self.over)
        agent = ChatbotAgent(self._chatbot, self.key.chatbot, (), self.turns, lambda turn: None)
        move = UserMove(text=remove_keys(message))
        try:
            spoken = await agent.speak(StructuredMessage[UserMove](content=move, source="user"))
        except asyncio.CancelledError:
            self._begin_anew("it was stopped within a reply")
            raise
        if isinstance(spoken, Ending):
            self._calls += spoken.calls
            error = remove_keys(spoken.error or "there is no reply")
            self._write(error)
            self._begin_anew("a reply of it failed")
            raise ReplyFailed(error)
        self.turns = agent.turns
        self._write(None)
        return self.turns[-1]

    async def judge(self, turn: Turn) -> AsyncIterator[Verdict]:
        """Yield the detectors' verdicts on a turn as they come; each is on disk by then."""
        view = TurnView(
            history=tuple(said for earlier in self.turns[: turn.index] for said in earlier.messages),
            question=turn.user,
            passages=turn.passages,
            reply=turn.reply,
            knowledge=self._stage.participants.knowledge,
        )
        judging = [asyncio.create_task(self._judge(turn, view, one)) for one in self.detectors]
        try:
            for judged in asyncio.as_completed(judging):
                yield await judged
        finally:
            for task in judging:
                task.cancel()
            await asyncio.gather(*judging, return_exceptions=True)

    async def _judge(self, turn: Turn, view: TurnView, detector: Detector) -> Verdict:
        [judgement] = await run_detector(detector, [view])
        verdict = Verdict(
            **dict(judgement),
            conversation=self.key.id,
            turn=turn.index,
            detector=detector.name,
            version=detector.version,
        )
        self._journal.add(verdict)
        return verdict

    def _write(self, error: str | None) -> None:
        reason: StopReason = "unknown" if error is None else "error"
        self._journal.write(build_ended_conversation(self.key, reason, self.turns, error, self._calls))

    def _begin_anew(self, why: str) -> None:
        """Make the chatbot anew, which may be in the middle of something; not one that remembers."""
        if has_memory(self._chatbot):
            self.over = (
                f"chatbot {self.key.chatbot} remembers the conversation itself, and {why}: this conversation "
                "cannot go on. Begin another one."
            )
        else:
            self._chatbot = self._stage.participants.make_chatbot_for(self._bot, self.key)


@dataclass(frozen=True)
class LiveStage:
    """The models, chatbots and detectors of an experiment, served, to talk with as often as one likes."""

    stage: Stage
    """Who and what it has."""
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
        with staying(), self.stage.participants.keep_answers(), open_journal(folder, saved) as journal:
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


@asynccontextmanager
async def open_live_stage(experiment: Experiment, settings: RunSettings) -> AsyncIterator[LiveStage]:
    """Make the participants of an experiment and serve its models while the block runs.

    Raises:
        UsageError: the experiment has a contradiction, or a component is at fault.
        OperationalError: a server or an endpoint failed.
    """
    experiment = ensure_model(experiment.model_copy(update={"until_decided": None}))
    scenario, planted = load_attacked(experiment)
    needs_model = any(bot.kind not in _WITHOUT_MODEL for bot in experiment.chatbots)
    request = RunRequest(
        experiment, scenario, planted, None, simulate=True, judge=True, needs_model=needs_model
    )
    async with open_stage(request, settings) as stage, stage.serve(RunFolder(Path())) as revision:
        yield LiveStage(stage, revision)
