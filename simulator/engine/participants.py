"""The participants of an experiment: its users, chatbots and detectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property

from hallulab.agents.models.adaptive import AdaptiveLimits
from hallulab.agents.models.batch import BatchTransport
from hallulab.agents.models.model import ModelPool
from hallulab.agents.retrieval.knowledge import KnowledgeBase
from hallulab.agents.users.act_rules import write_note
from hallulab.agents.users.personas import StyleProfile, find_manner, slipped, speaking
from hallulab.agents.users.pressure import PressingUser
from hallulab.agents.users.user import MAX_TOKENS, SimulatedUser, UserFailed, UserMove, turn_seed
from hallulab.chatbots.evidence import EvidenceSource
from hallulab.chatbots.pipeline import failures_as_chatbot_errors
from hallulab.chatbots.protocol import Chatbot, ChatbotContext, Reply, has_memory
from hallulab.chatbots.registry import ComponentFactory, make_chatbot
from hallulab.detectors.base.protocol import Detector, DetectorContext, run_detector
from hallulab.detectors.registry import make_detector
from hallulab.scenarios.attacks.attack import UserOrder
from hallulab.scenarios.attacks.retrieval import AttackedRetriever
from hallulab.scenarios.errors import HallulabError, UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.packs.pack import Persona, Reading, Scenario, ScriptedMessage
from hallulab.scenarios.transcript import Message, Turn
from hallulab.scenarios.turn_views import Retriever
from hallulab.simulator.engine.batch import EVERYTHING
from hallulab.simulator.engine.conversation import ConversationKey, GivenMessage, TurnObserver, User
from hallulab.simulator.engine.plan import Job
from hallulab.simulator.engine.turn_views import build_view
from hallulab.simulator.records.choices import choose_language, draw_user_model, select_personas
from hallulab.simulator.records.experiment import Component, Experiment

OTHER_SEED = 1_000_003
"""Added to the seed where detectors are asked again: far above what they add to it for samples."""


class Participants:
    """Who takes part in an experiment: makes users and chatbots for its conversations, and has the detectors.

    Args:
        experiment: it, with its model.
        scenario: its pack, with what an attack planted.
        judge: whether replies are judged; if not, there are no detectors.
        max_turns: replies after which a conversation is stopped.
        limits: the endpoints' limits, which say how many conversations are simulated and turns judged; None:
            `concurrency` does.
        waves: asks the models in waves; None: they are asked one by one.
        by_words: whether evidence is searched by words, as `KnowledgeBase` has it.

    Raises:
        UsageError: a detector cannot be made, or a persona's script asks a detector that there is not.
    """

    def __init__(
        self,
        experiment: Experiment,
        scenario: Scenario,
        pool: ModelPool,
        judge: bool,
        max_turns: int,
        limits: AdaptiveLimits | None = None,
        waves: BatchTransport | None = None,
        by_words: bool = False,
    ) -> None:
        self.max_turns = max_turns
        self.limits = limits
        self.concurrency = experiment.at_once if waves is None else EVERYTHING
        """Conversations simulated, and turns judged, at the same time."""
        self.knowledge_base = KnowledgeBase(
            scenario, embedding_model=experiment.embedding_model, recording=pool.recording, by_words=by_words
        )
        """The pack's documents; their vectors are made when they are first needed."""
        self.detectors: Sequence[Detector] = (
            make_detectors(experiment, pool, scenario.identity_thresholds) if judge else []
        )
        self.by_words = by_words
        source = EvidenceSource(self.knowledge_base, experiment.top_k)
        self.evidence = source if scenario.documents else None
        """Where evidence is searched that chatbots do not name; None: there are no documents."""
        self._experiment, self._scenario, self._pool, self._waves = experiment, scenario, pool, waves
        self._by_name = {detector.name: detector for detector in self.detectors}
        self._parts = ComponentFactory()
        for persona in select_personas(experiment, scenario):
            check_script(persona, self._by_name)
        if waves is not None:
            require_batchable(self.detectors)

    @cached_property
    def second_detectors(self) -> Mapping[str, Detector]:
        """The detectors as they are asked again, by name: those that ask a model have another seed.

        Their thresholds are the first ones': one that was fitted here belongs to a seed.
        """
        seed = self._experiment.seed + OTHER_SEED
        other = self._experiment.model_copy(update={"seed": seed})
        made = make_detectors(other, self._pool, self._scenario.identity_thresholds)
        found = {}
        for first, second in zip(self.detectors, made, strict=True):
            if first.scoring is not None and first.threshold is not None:
                second.use_calibrated(first.threshold)
            found[first.name] = second if first.traits.needs_model else first
        return found

    def keep_answers(self) -> AbstractContextManager[None]:
        """Keep answers of models until the block ends, for all who ask the same."""
        return self._pool.recording.stretch()

    def count_as_work(self) -> AbstractContextManager[None]:
        """Count a conversation or judgement as under way: a wave is sent when all of them wait for one."""
        return nullcontext() if self._waves is None else self._waves.work.piece()

    def make_user(self, job: Job) -> User:
        """Make the user of a conversation."""
        if isinstance(job.user, GivenMessage):
            return job.user
        user: User
        if job.user.messages:
            user = ScriptedUser(job.user.messages, self._by_name, self.evidence)
        else:
            user = self._simulate_user(job.user, job.key)
        return user if job.order is None else InjectingUser(user, job.order)

    def _simulate_user(self, persona: Persona, key: ConversationKey) -> User:
        experiment = self._experiment
        language = choose_language(experiment, self._scenario)
        model = draw_user_model(experiment, persona.id, key.seed)
        limit = min(experiment.reply_tokens or MAX_TOKENS, MAX_TOKENS)
        if key.pressure is not None:
            return PressingUser(
                persona,
                self._scenario.domain,
                self._pool,
                key.seed,
                pressure=key.pressure,
                model=model,
                min_turns=experiment.min_turns,
                max_tokens=limit,
                language=language,
            )
        style = StyleProfile() if key.manner is None else find_manner(key.manner)
        simulated = SimulatedUser(
            speaking(persona, style, language),
            self._scenario.domain,
            self._pool,
            key.seed,
            model=model,
            min_turns=experiment.min_turns,
            max_tokens=min(limit, style.tokens or MAX_TOKENS),
            short=style.short,
            language=language,
            acts=style.acts,
        )
        # The slips are those of English words and articles.
        return simulated if language else TypoUser(simulated, style, persona, key.seed)

    def make_chatbot(self, bot: Component, key: ConversationKey) -> Chatbot:
        """Make a chatbot for a conversation."""
        # Not the identifier, which is another one after each change of our code: a replay would miss.
        turn = None if key.branch is None else key.branch.turn
        conversation = digest([key.persona, key.seed, key.chatbot, turn])
        attack = self._experiment.attack
        if attack is None or attack.retrieval is None:
            return self._build_chatbot(bot, key.seed, conversation, self.knowledge_base)
        searches = AttackedRetriever(self.knowledge_base, attack.retrieval, attack.seed, key.persona)
        made = self._build_chatbot(bot, key.seed, conversation, searches)
        return SearchNotingChatbot(made, searches, self._experiment.top_k)

    def make_sample_chatbot(self, bot: Component) -> Chatbot:
        """Make a chatbot for no conversation, to describe it."""
        return self._build_chatbot(bot, self._experiment.seed, "", self.knowledge_base)

    def _build_chatbot(self, bot: Component, seed: int, conversation: str, searches: Retriever) -> Chatbot:
        context = ChatbotContext(
            models=self._pool,
            model=self._experiment.roles.get("chatbot"),
            knowledge=searches,
            scenario=self._scenario,
            seed=seed,
            top_k=self._experiment.top_k,
            options=self._experiment.options_of(bot),
            conversation=conversation,
            parts=self._parts,
        )
        with self._experiment.placing_errors(bot):
            return make_chatbot(bot.kind, context)


def make_detectors(
    experiment: Experiment,
    pool: ModelPool,
    identity_thresholds: Mapping[str, float | Mapping[Reading, float]],
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


def is_model_needed(detectors: Sequence[Detector]) -> bool:
    """Return whether any of them asks the served model, so that one must be served."""
    return any(detector.traits.needs_model for detector in detectors)


def require_batchable(detectors: Sequence[Detector]) -> None:
    """Check that detectors can be asked in waves.

    Raises:
        UsageError: one judges a single reply at a time and asks a model, so each reply would be a wave.
    """
    from hallulab.detectors.peers.detector import PeerDetector

    for detector in detectors:
        if isinstance(detector, PeerDetector) and detector.traits.needs_model:
            raise UsageError(
                f"--batch: the detector {detector.name!r} judges one reply at a time, so its questions fill "
                "no wave. Leave it out, and judge with it afterwards by `hallulab detect` without --batch."
            )


class SearchNotingChatbot:
    """Says in the steps of each reply what was done to the searches for it.

    Args:
        searches: what it searches with, and what searches at once for a chatbot that does not say what it
            read: what was done to that search belongs to the reply.
    """

    def __init__(self, chatbot: Chatbot, searches: AttackedRetriever, top_k: int) -> None:
        self._chatbot = chatbot
        self._searches = searches
        self._source = EvidenceSource(searches, top_k)

    @property
    def remembers(self) -> bool:
        """True if the chatbot remembers more than the history that it is given."""
        return has_memory(self._chatbot)

    async def reply(self, history: Sequence[Message]) -> Reply:
        """See `Chatbot.reply`."""
        self._searches.take_steps()  # those of a reply that failed are no part of this one
        made = await self._chatbot.reply(history)
        with failures_as_chatbot_errors(made.calls):
            made = await self._source.complete(made)
        return made.model_copy(update={"steps": (*made.steps, *self._searches.take_steps())})


@dataclass
class ScriptedUser:
    """Says one message after the other, and stops after the last one.

    A message may depend on a detector's verdict on the reply before. The detector judges that reply here, and
    again with all others when the conversation has ended. Then its requests are answered from memory, and are
    counted once.
    """

    messages: Sequence[ScriptedMessage]
    detectors: Mapping[str, Detector]
    """The experiment's detectors by name."""
    evidence: EvidenceSource | None
    """Searched by them, and gives a reply its evidence; None: nothing."""
    _heard: list[Turn] = field(default_factory=list)

    def heard(self, turn: Turn) -> None:
        """See `TurnObserver.heard`."""
        self._heard.append(turn)

    async def next(self, history: Sequence[Message]) -> UserMove:
        """See `User.next`.

        Raises:
            UserFailed: the message depends on a verdict, and the detector gave none.
        """
        said = sum(message.role == "user" for message in history)
        if said == len(self.messages):
            return UserMove(text=None, stop="script_ended")
        message = self.messages[said]
        if message.by is None or not self._heard:
            return UserMove(text=message.text, goal=message.goal)
        flagged = await self._flagged(message.by, history)
        return UserMove(text=message.flagged if flagged else message.unflagged, goal=message.goal)

    async def _flagged(self, by: str, history: Sequence[Message]) -> bool:
        try:
            if self.evidence is not None:
                self._heard = [await self.evidence.complete(turn) for turn in self._heard]
        except HallulabError as error:
            raise UserFailed(
                f"the script asks what {by} says, and it has no evidence: {error}", ()
            ) from error
        *before, turn = self._heard
        # The last two messages are the turn itself.
        view = build_view(turn, history[:-2], [one.passages for one in before], self.evidence)
        [judgement] = await run_detector(self.detectors[by], [view])
        if judgement.outcome != "scored" or judgement.flagged is None:
            why = judgement.error or judgement.outcome
            raise UserFailed(f"the script asks what {by} says, and it gave no verdict: {why}", ())
        return judgement.flagged


def check_script(persona: Persona, detectors: Mapping[str, Detector]) -> None:
    """Check that there are the detectors on which a persona's messages depend.

    Raises:
        UsageError: one is missing; names persona and message.
    """
    for number, message in enumerate(persona.messages, start=1):
        if message.by is not None and message.by not in detectors:
            raise UsageError(
                f"persona {persona.id}, message {number}: it depends on {message.by!r}, which does not judge "
                "here. Put it among the detectors of `run`, or correct `by`."
            )


@dataclass(frozen=True)
class TypoUser:
    """Makes the slips of a manner in what another user says, but not in the note that it pastes."""

    user: User
    manner: StyleProfile
    persona: Persona
    seed: int

    async def next(self, history: Sequence[Message]) -> UserMove:
        """See `User.next`."""
        move = await self.user.next(history)
        if move.text is None:
            return move
        seed = turn_seed(self.seed, self.persona.id, len(history) // 2)
        before, note, after = move.text.partition(write_note(self.persona))
        texts = (slipped(before, self.manner, seed), note, slipped(after, self.manner, seed))
        return move.model_copy(update={"text": "".join(texts)})


class InjectingUser:
    """Puts an order behind one message of another user.

    That user does not see the order, so it cannot obey it. All else goes on as without: the flaws of the
    user, and what it says next, are those of its own words.
    """

    def __init__(self, user: User, order: UserOrder) -> None:
        self._user = user
        self._order = order
        self._said: str | None = None

    def heard(self, turn: Turn) -> None:
        """See `TurnObserver.heard`."""
        if turn.index == self._order.turn:
            self._said = self._order.remove(turn.user)
        if isinstance(self._user, TurnObserver):
            self._user.heard(turn)

    async def next(self, history: Sequence[Message]) -> UserMove:
        """See `User.next`."""
        place = 2 * self._order.turn
        own = list(history)
        if self._said is not None and len(own) > place:
            own[place] = Message(role="user", text=self._said)
        move = await self._user.next(own)
        if move.text is None or len(history) != place:
            return move
        return move.model_copy(update={"text": self._order.after(move.text)})
