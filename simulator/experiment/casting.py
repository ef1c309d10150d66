"""Who takes part in an experiment: its users, chatbots and detectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hallulab.agents.models.model import ModelPool
from hallulab.agents.retrieval.knowledge import KnowledgeBase
from hallulab.agents.users.manners import StyleProfile, find_manner, speaking
from hallulab.agents.users.user import MAX_TOKENS, SimulatedUser
from hallulab.chatbots.protocol import Chatbot, ChatbotContext
from hallulab.chatbots.registry import ComponentFactory, make_chatbot
from hallulab.detectors.base.protocol import Detector, DetectorContext
from hallulab.detectors.registry import make_detector
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack import Scenario
from hallulab.simulator.experiment.config import Component, Experiment
from hallulab.simulator.experiment.conversation import GivenMessage, User
from hallulab.simulator.experiment.ordering_user import InjectingUser
from hallulab.simulator.experiment.plan import Job, draw_user_model, select_personas
from hallulab.simulator.experiment.scripted_user import ScriptedUser, check_script
from hallulab.simulator.experiment.slipping_user import TypoUser
from hallulab.simulator.experiment.stage import Participants


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


def is_model_needed(detectors: Sequence[Detector]) -> bool:
    """Return whether any of them asks the served model, so that one must be served."""
    return any(detector.traits.needs_model for detector in detectors)


def make_knowledge(experiment: Experiment, scenario: Scenario, pool: ModelPool) -> KnowledgeBase:
    """Return the knowledge base of a pack; its vectors are made when they are first needed."""
    return KnowledgeBase(scenario, embedding_model=experiment.embedding_model, recording=pool.recording)


def make_cast(
    experiment: Experiment,
    scenario: Scenario,
    pool: ModelPool,
    knowledge: KnowledgeBase,
    detectors: Sequence[Detector],
    max_turns: int,
) -> Participants:
    """Return who takes part in the experiment.

    Raises:
        UsageError: a persona's script asks a detector that there is not.
    """
    workshop = ComponentFactory()
    searched = knowledge if scenario.documents else None
    by_name = {detector.name: detector for detector in detectors}
    for persona in select_personas(experiment, scenario):
        check_script(persona, by_name)

    def user(job: Job) -> User:
        if isinstance(job.user, GivenMessage):
            return job.user
        if job.user.messages:
            scripted = ScriptedUser(job.user.messages, by_name, searched)
            return scripted if job.order is None else InjectingUser(scripted, job.order)
        manner = StyleProfile() if job.key.manner is None else find_manner(job.key.manner)
        simulated = SimulatedUser(
            speaking(job.user, manner),
            scenario.domain,
            pool,
            job.key.seed,
            model=draw_user_model(experiment, job.user.id, job.key.seed),
            min_turns=experiment.min_turns,
            max_tokens=min(experiment.reply_tokens or MAX_TOKENS, manner.tokens or MAX_TOKENS, MAX_TOKENS),
            short=manner.short,
        )
        slipping = TypoUser(simulated, manner, job.user.id, job.key.seed)
        return slipping if job.order is None else InjectingUser(slipping, job.order)

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

    return Participants(
        user, chatbot, detectors, searched, max_turns, experiment.concurrency, pool.recording.stretch
    )
