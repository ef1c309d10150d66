"""What a detector says after learning is kept, and learnt anew only where something has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.detectors_table.measure import Remembering
from hallulab.agents.models.recording import Recording
from hallulab.detectors.base.protocol import TrainableDetector, Traits
from hallulab.scenarios.errors import ReplayMiss
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Judgement, Passage
from hallulab.scenarios.turn_views import TurnView
from tests.builders import labelled

FACT = Passage(id="p#0", document="p", text="Evidence.")


class Learner(TrainableDetector):
    """Flags what is as long as the longest hallucinated reply it learnt; counts its lessons."""

    name = "learner"
    version = "1"
    threshold_protocol = "tuned"
    traits = Traits(needs_model=False, batch=True)

    def __init__(self) -> None:
        self.threshold = 100.0
        self.lessons = 0

    def fit(self, replies: Sequence[LabelledReply], seed: int = 0) -> None:
        self.lessons += 1
        self.threshold = float(max(len(reply.reply) for reply in replies if reply.label))

    async def detect(self, view: TurnView) -> Judgement:
        return (await self.detect_many([view]))[0]

    async def detect_many(self, views: Sequence[TurnView]) -> list[Judgement]:
        assert self.threshold is not None
        return [
            Judgement(
                outcome="scored",
                score=float(len(view.reply)),
                flagged=len(view.reply) >= self.threshold,
                word_scores=(0.5,),
            )
            for view in views
        ]


def wrong(text: str) -> LabelledReply:
    return labelled(text, True, id=text, passages=(FACT,), group=text)


def view(text: str) -> TurnView:
    return TurnView(question="", passages=(FACT,), reply=text)


TWO = [view("four"), view("two")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A recording of what was said of two replies after one lesson."""
    path = tmp_path / "d.learner.jsonl"
    recording = Recording.record(path)
    remembering = Remembering(Learner(), recording)
    remembering.fit([wrong("four")], 1)
    asyncio.run(remembering.detect_many(TWO))
    recording.close()
    return path


@pytest.fixture
def learner() -> Learner:
    return Learner()


@pytest.fixture
def remembering(file: Path, learner: Learner) -> Remembering:
    return Remembering(learner, Recording.replay(file))


async def test_what_is_kept_needs_no_lesson(remembering: Remembering, learner: Learner) -> None:
    remembering.fit([wrong("four")], 1)
    found = await remembering.detect_many(TWO)
    assert [(one.flagged, one.score, one.word_scores) for one in found] == [(True, 4, None), (False, 3, None)]
    assert (remembering.threshold, learner.lessons) == (4.0, 0)


@pytest.mark.parametrize(("lesson", "seed"), [("three", 1), ("four", 2)])
async def test_another_lesson_is_learnt(
    lesson: str, seed: int, remembering: Remembering, learner: Learner
) -> None:
    remembering.fit([wrong(lesson)], seed)
    [judgement, _] = await remembering.detect_many(TWO)
    assert (judgement.flagged, remembering.threshold, learner.lessons) == (seed == 2, len(lesson), 1)


async def test_what_must_not_be_learnt_again_is_a_stale_recording(file: Path, learner: Learner) -> None:
    remembering = Remembering(learner, Recording.replay(file), learns=False)
    remembering.fit([wrong("four")], 1)
    assert [one.flagged for one in await remembering.detect_many(TWO)] == [True, False]
    with pytest.raises(ReplayMiss, match=r"d\.learner\.jsonl lacks what learner learnt$"):
        await remembering.detect_many([view("three")])
    with pytest.raises(ReplayMiss):
        remembering.fit([wrong("three")], 1)
    assert learner.lessons == 0


async def test_a_reply_that_is_not_kept_is_judged_after_the_lesson(
    remembering: Remembering, learner: Learner
) -> None:
    remembering.fit([wrong("four")], 1)
    assert [one.flagged for one in await remembering.detect_many([view("three")])] == [True]
    assert learner.lessons == 1
