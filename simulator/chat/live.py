"""Conversations that a person holds with a chatbot of an experiment, judged turn by turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

from autogen_agentchat.messages import StructuredMessage

from hallulab.agents.models.redaction import remove_keys
from hallulab.agents.models.replicas import sticky_session
from hallulab.agents.models.watching import watching
from hallulab.agents.served_model import identify_models
from hallulab.agents.users.user import UserMove
from hallulab.chatbots.protocol import describe_parts_version, has_memory
from hallulab.chatbots.registry import is_asking_model
from hallulab.detectors.base.protocol import Detector, run_detector
from hallulab.scenarios.errors import HallulabError, ReplayMiss, UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.near_names import suggest_name
from hallulab.scenarios.transcript import Call, StopReason, Turn, Verdict
from hallulab.scenarios.turn_views import TurnView
from hallulab.simulator.chat.drafts import DraftFollower, ReplyDraft
from hallulab.simulator.chat.journal import LiveJournal, open_journal
from hallulab.simulator.engine.conversation import (
    ChatbotAgent,
    ConversationKey,
    Ending,
    build_ended_conversation,
)
from hallulab.simulator.engine.models import OpenModels, RunSettings, open_models
from hallulab.simulator.engine.plan import load_attacked
from hallulab.simulator.engine.run import Run, build_run
from hallulab.simulator.engine.turn_views import build_view
from hallulab.simulator.records.choices import compute_scenario_version, ensure_model, get_model_name
from hallulab.simulator.records.experiment import Component, Experiment
from hallulab.simulator.records.experiment_json import HeldLive, SavedExperiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.provenance import Provenance, identify_makers

Chosen = TypeVar("Chosen", Component, Detector)


def open_live_models(
    experiment: Experiment, settings: RunSettings
) -> AbstractAsyncContextManager[OpenModels]:
    """Open the models of an experiment, for live conversations while the block runs. Nothing is served yet.

    Raises:
        UsageError, OperationalError: see `open_models`.
    """
    asked = ensure_model(experiment.model_copy(update={"until_decided": None}))
    return open_models(asked, settings)


@asynccontextmanager
async def open_live_run(models: OpenModels, scenario: str) -> AsyncIterator[Run]:
    """Make those who take part in conversations about a scenario; yield them, with their models served.

    Raises:
        UsageError: the experiment has a contradiction, or a component is at fault.
        OperationalError: a server or an endpoint failed.
    """
    experiment = models.experiment.model_copy(update={"scenario": scenario})
    loaded, planted = load_attacked(experiment)
    needs_model = any(is_asking_model(bot.kind) for bot in experiment.chatbots)
    run = build_run(experiment, loaded, RunFolder(Path()), models, planted=planted, needs_model=needs_model)
    try:
        await run.serve()
        yield run
    finally:
        for detector in run.participants.detectors:
            close = getattr(detector, "close", None)
            if close is not None:  # it has a process of its own
                close()


@contextmanager
def begin_chat(run: Run, chatbot: str, detectors: Sequence[str], folder: Path, at: str) -> Iterator[LiveChat]:
    """Yield a conversation that begins.

    Args:
        detectors: names of its detectors that judge.
        at: the command with which it is held.

    Raises:
        UsageError: there is no such chatbot or detector, or the folder contains something else.
        OperationalError: the folder cannot be made.
    """
    experiment, scenario = run.experiment, run.scenario
    bot = _choose("chatbot", {one.name: one for one in experiment.chatbots}, chatbot)
    by_name = {one.name: one for one in run.participants.detectors}
    judges = [_choose("detector", by_name, name) for name in dict.fromkeys(detectors)]
    parts = {bot.name: describe_parts_version(run.chatbots[bot.name])}
    made_by = identify_makers(experiment, identify_models(run.models.pool), parts, branched=True)
    version = made_by.version(bot.name)
    saved = _describe(run, bot, judges, at)
    with sticky_session(), run.participants.keep_answers(), open_journal(folder, saved) as journal:
        persona = f"person-{journal.number}"
        identity = [compute_scenario_version(scenario), version, bot.name, experiment.seed, persona]
        model = get_model_name(experiment, "chatbot")
        key = ConversationKey(
            digest(identity)[:16], scenario.name, persona, bot.name, model, experiment.seed, version
        )
        yield LiveChat(run, bot, judges, key, journal)


def _choose(what: str, known: dict[str, Chosen], name: str) -> Chosen:
    if name not in known:
        near = suggest_name(name, known)
        raise UsageError(
            f"there is no {what} {name!r} in the experiment{near}. There are: {', '.join(known)}."
        )
    return known[name]


def _describe(run: Run, bot: Component, judges: Sequence[Detector], at: str) -> SavedExperiment:
    """Return what experiment.json says of a live conversation."""
    provenance = run.describe_provenance()
    names = {one.name for one in judges}
    judging = tuple(one for one in run.experiment.detectors if one.name in names)
    chosen = run.experiment.model_copy(update={"chatbots": (bot,), "detectors": judging})
    about = f"{run.scenario.name} {compute_scenario_version(run.scenario)}"
    before = SavedExperiment(
        experiment=Experiment.model_validate(chosen.model_dump()),  # every field counts as set
        # Differs from that of every simulation, so that none is added to the folder.
        identity={"scenario": f"live about {about}"},
        detectors={},
        seeds=(run.experiment.seed,),
        planted=run.planted,
        live=HeldLive(at=at),
    )
    return Provenance(
        chosen,
        run.scenario,
        judges,
        verifying={bot.name: provenance.verifying[bot.name]},
        revision=provenance.revision,
        read_how=provenance.read_how,
    ).update(before)


class ReplyFailed(HallulabError):
    """The chatbot gave no reply. The turns before it are kept."""


class LiveChat:
    """One conversation of a person with a chatbot. The turn is on disk when `say` returns."""

    def __init__(
        self,
        run: Run,
        bot: Component,
        detectors: Sequence[Detector],
        key: ConversationKey,
        journal: LiveJournal,
    ) -> None:
        self._run = run
        self._bot = bot
        self.detectors = detectors
        self.key = key
        self.folder = journal.folder
        self._journal = journal
        self._chatbot = run.participants.make_chatbot(bot, key)
        self.turns: list[Turn] = []
        self._calls: list[Call] = []
        self.over: str | None = None
        """Why nothing more can be said; None: it can."""

    @property
    def is_saved(self) -> bool:
        """True if a part of it is on disk."""
        return self._journal.is_written

    async def say(self, message: str, tell: Callable[[ReplyDraft], None]) -> Turn:
        """Have the chatbot answer a message; return the turn.

        Cancelling it stops the reply: the message is forgotten, the turns before it stay.

        Args:
            tell: gets the reply as it is made.

        Raises:
            ReplyFailed: there is no reply, or the replayed recording has no answer to the message.
            OperationalError: the turn cannot be written.
        """
        if self.over is not None:
            raise ReplyFailed(self.over)
        agent = ChatbotAgent(self._chatbot, self.key.chatbot, (), self.turns, lambda turn: None)
        move = UserMove(text=remove_keys(message))
        try:
            with watching(DraftFollower(self._bot, tell).follow):
                spoken = await agent.speak(StructuredMessage[UserMove](content=move, source="user"))
        except asyncio.CancelledError:
            self._restart("it was stopped within a reply")
            raise
        except ReplayMiss as miss:
            self._restart("the recording has no reply of it")
            raise ReplyFailed(str(miss)) from miss
        if isinstance(spoken, Ending):
            self._calls += spoken.calls
            error = remove_keys(spoken.error or "there is no reply")
            self._write(error)
            self._restart("a reply of it failed")
            raise ReplyFailed(error)
        self.turns = agent.turns
        evidence = self._run.participants.evidence
        try:
            if evidence is not None:
                self.turns[-1] = await evidence.complete(self.turns[-1])
        finally:
            self._write(None)
        return self.turns[-1]

    async def judge(self, turn: Turn) -> AsyncIterator[Verdict]:
        """Yield the detectors' verdicts on a turn as they come; each is on disk by then.

        Raises:
            ReplayMiss: the replayed recording lacks an answer to one; the others have judged by then.
        """
        before = [said for earlier in self.turns[: turn.index] for said in earlier.messages]
        known = [earlier.passages for earlier in self.turns[: turn.index]]
        view = build_view(turn, before, known, self._run.participants.evidence)
        judging = [asyncio.create_task(self._judge(turn, view, one)) for one in self.detectors]
        missed: ReplayMiss | None = None
        try:
            for judged in asyncio.as_completed(judging):
                try:
                    verdict = await judged
                except ReplayMiss as miss:
                    missed = miss
                    continue
                yield verdict
            if missed is not None:
                raise missed
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

    def _restart(self, why: str) -> None:
        """Replace the chatbot, which may be in the middle of something; not one that remembers."""
        if has_memory(self._chatbot):
            self.over = (
                f"chatbot {self.key.chatbot} remembers the conversation itself, and {why}: this conversation "
                "cannot go on. Begin another one."
            )
        else:
            self._chatbot = self._run.participants.make_chatbot(self._bot, self.key)
