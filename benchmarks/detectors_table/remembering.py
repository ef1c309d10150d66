"""Detectors that learn, with their judgements kept in a recording.

Learning from every four fifths of four data sets takes a forest minutes, but a replay must take seconds. Kept
judgements count as long as the detector's version and its training data are the same. Else they are made
anew, with the same result on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hallulab.agents.models.recording import Recording
from hallulab.detectors.base.protocol import TrainableDetector
from hallulab.scenarios.errors import ReplayMiss
from hallulab.scenarios.files.digest import digest
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Judgement, TurnView

_LEFT_OUT: Any = {
    "word_scores": True,
    "spans": {"__all__": {"reason", "evidence"}},
    "units": {"__all__": {"details"}},
}
"""Fields of judgements that are not kept."""


class Remembering(TrainableDetector):
    """A detector that learns, and judges in batches, only where the recording lacks the outcome.

    Word scores and reasons are not kept, because the table does not use them.

    Args:
        detector: one that does both.
        recording: where the outcome is looked up and kept.
        learns: whether it learns what the recording lacks; else that is a `ReplayMiss`.
    """

    def __init__(self, detector: TrainableDetector, recording: Recording, learns: bool = True) -> None:
        if not detector.traits.batch:
            raise ValueError(f"{detector.name} does not judge in batches")
        self._detector = detector
        self._recording = recording
        self._learns = learns
        self._lesson: tuple[Sequence[LabelledReply], int] | None = None
        self._learner = detector.version
        self._learnt = self._learner
        self.name = detector.name
        self.version = detector.version
        self.threshold = detector.threshold
        self.threshold_protocol = detector.threshold_protocol
        self.traits = detector.traits

    def fit(self, replies: Sequence[LabelledReply], seed: int = 0) -> None:
        """See `TrainableDetector.fit`."""
        self._learnt = digest([self._learner, seed, [reply.model_dump_json() for reply in replies]])
        self._lesson = (replies, seed)
        known = self._recording.get("lesson", self._learnt)
        if known is None:
            self._learn()
            known = self._recording.put("lesson", self._learnt, {"threshold": self._detector.threshold})
        self.threshold = known["threshold"]

    async def detect(self, view: TurnView) -> Judgement:
        """See `Detector.detect`."""
        return (await self.detect_many([view]))[0]

    async def detect_many(self, views: Sequence[TurnView]) -> list[Judgement]:
        """See `Detector.detect_many`."""
        key = digest([self._learnt, [view.model_dump(mode="json") for view in views]])
        known = self._recording.get("judgements", key)
        if known is None:
            self._learn()
            told = [
                one.model_dump(mode="json", exclude_defaults=True, exclude=_LEFT_OUT)
                for one in await self._detector.detect_many(views)
            ]
            known = self._recording.put("judgements", key, told)
        return [Judgement.model_validate(one) for one in known]

    def _learn(self) -> None:
        """Learn what is not learnt yet.

        Raises:
            ReplayMiss: it must not.
        """
        if self._lesson is not None:
            if not self._learns:
                raise ReplayMiss(f"the recording {self._recording.source} lacks what {self.name} learnt")
            self._detector.fit(*self._lesson)
            self._lesson = None
