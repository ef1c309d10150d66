"""Judge replies that are given as they are, such as labelled ones, in this process or by workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hallulab.agents.models.adaptive import AdaptiveLimits
from hallulab.agents.models.model import ModelPool
from hallulab.detectors.base.protocol import Detector, run_detector
from hallulab.scenarios.transcript import Judgement, TurnView
from hallulab.simulator.engine.executors import SingleEventTask, TaskExecutor, perform_single
from hallulab.simulator.engine.participants import make_detectors
from hallulab.simulator.records.config import Experiment


@dataclass(frozen=True)
class RepliesJudged:
    """The replies of a task were judged."""

    judgements: tuple[Judgement, ...]
    """One a reply, in their order."""
    seconds: float | None
    """What judging them took where it was done, without the way there; None: nobody could."""


@dataclass(frozen=True)
class ReplyTask(SingleEventTask):
    """Replies that a detector judges at once (a `WorkTask`)."""

    detector: int
    """Its number among the executor's, from 0."""
    views: tuple[TurnView, ...]

    def fail(self, reason: str) -> Iterable[RepliesJudged]:
        """See `WorkTask`."""
        failed = Judgement(outcome="failed", error=reason)
        yield RepliesJudged((failed,) * len(self.views), None)


class ReplyExecutor:
    """Judges replies in this process, as many at once as it is given.

    Args:
        detectors: the judges.
    """

    def __init__(self, detectors: Sequence[Detector]) -> None:
        self._detectors = detectors

    async def perform(self, task: ReplyTask, emit: Callable[[RepliesJudged], None]) -> None:
        """See `TaskExecutor`."""
        started = time.perf_counter()
        judgements = await run_detector(self._detectors[task.detector], task.views)
        emit(RepliesJudged(tuple(judgements), time.perf_counter() - started))


@dataclass(frozen=True)
class ReplyWork:
    """Replies are judged (a `Work`)."""

    experiments: tuple[Experiment, ...]
    """Those whose detectors judge. A task names a detector by its number among those of all."""

    def make_executor(
        self, experiment: Experiment, pool: ModelPool, limits: AdaptiveLimits | None
    ) -> ReplyExecutor:
        """See `Work`."""
        return ReplyExecutor([one for each in self.experiments for one in make_detectors(each, pool, {})])


@dataclass(frozen=True)
class Jury:
    """Who judges the replies of one detector, and how they are shared out."""

    executor: TaskExecutor
    detector: int = 0
    """The detector's number in the executor."""
    parts: int = 1
    """Parts that are judged side by side, each by a worker of its own."""

    async def judge(self, views: Sequence[TurnView], part: int, tasks: int) -> RepliesJudged:
        """Judge replies at once.

        Args:
            views: what the detector sees of them.
            part: to which they belong, from 0.
            tasks: how often this is called for that part.
        """
        task = ReplyTask(self.detector, tuple(views), group=part, of_group=tasks)
        return await perform_single(self.executor, task)
