"""Participants of tests: users, chatbots and detectors that are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from hallulab.chatbots.evidence import EvidenceSource
from hallulab.chatbots.protocol import Chatbot
from hallulab.detectors.base.protocol import Detector
from hallulab.scenarios.turn_views import Retriever
from hallulab.simulator.engine import execution
from hallulab.simulator.engine.conversation import User
from hallulab.simulator.engine.execution import Observer
from hallulab.simulator.engine.executors import LocalExecutor
from hallulab.simulator.engine.participants import Participants
from hallulab.simulator.engine.plan import Job
from hallulab.simulator.records.experiment import Component, Experiment
from hallulab.simulator.records.folder import RunFolder


class Cast(Participants):
    """Who takes part, without models.

    Args:
        detectors: the judges.
        make_user: makes the user of a job.
        build_chatbot: makes a chatbot for a seed, and for what tells its conversation from others.
    """

    def __init__(
        self,
        detectors: Sequence[Detector],
        make_user: Callable[[Job], User],
        build_chatbot: Callable[[Component, int, str], Chatbot],
        evidence: EvidenceSource | None = None,
        max_turns: int = 2,
        concurrency: int = 4,
    ) -> None:
        self.detectors, self.evidence, self.max_turns = detectors, evidence, max_turns
        self.concurrency, self.limits, self._waves = concurrency, None, None
        self._experiment = Experiment()
        self.knowledge_base = None  # type: ignore[assignment] - no chatbot here searches by it
        self._make_user, self._build = make_user, build_chatbot

    def keep_answers(self) -> AbstractContextManager[None]:
        return nullcontext()

    def make_user(self, job: Job) -> User:
        return self._make_user(job)

    def _build_chatbot(self, bot: Component, seed: int, conversation: str, searches: Retriever) -> Chatbot:
        return self._build(bot, seed, conversation)


async def execute(
    participants: Participants, jobs: Sequence[Job], folder: RunFolder, observer: Observer
) -> None:
    """Hold and judge in this process what a folder lacks."""
    executor = LocalExecutor(participants)
    journals = folder.read_journals()
    await execution.execute(participants.detectors, jobs, folder, observer, journals, executor)
