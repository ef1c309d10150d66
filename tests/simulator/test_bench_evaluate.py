"""Detectors that judge in batches, and how long judging took."""

from __future__ import annotations

from collections.abc import Sequence

from detectors.protocol import ThresholdProtocol
from scenarios.labelled import LabelledReply
from scenarios.transcript import Judgement, Passage, TurnView
from simulator.bench.evaluate import evaluate


def replies(*texts: str) -> list[LabelledReply]:
    return [
        LabelledReply(
            id=text,
            dataset="d",
            task="qa",
            passages=(Passage(id="p#0", document="p", text="Evidence."),),
            reply=text,
            label=False,
            group="g",
        )
        for text in texts
    ]


class Lengths:
    """Scores a reply by its length; keeps what it was given at once."""

    name = "lengths"
    version = "1"
    threshold: float | None = None
    threshold_protocol: ThresholdProtocol = "given"

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    async def detect(self, view: TurnView) -> Judgement:
        if view.reply == "bad":
            raise RuntimeError("no bad")
        return Judgement(outcome="scored", score=len(view.reply) / 10, flagged=False)

    def detect_batch(self, views: Sequence[TurnView]) -> list[Judgement]:
        self.batches.append([view.reply for view in views])
        if any(view.reply == "bad" for view in views):
            raise RuntimeError("no bad")
        return [Judgement(outcome="scored", score=len(view.reply) / 10, flagged=False) for view in views]


async def test_the_first_reply_is_judged_alone_and_the_others_in_a_batch() -> None:
    detector, told = Lengths(), list[int]()
    found = await evaluate(detector, replies("a", "bb", "ccc"), 4, told.append)
    assert detector.batches == [["a"], ["bb", "ccc"]]
    assert [judgement.score for judgement in found.judgements] == [0.1, 0.2, 0.3]
    assert (found.batched, told) == (True, [1, 2])
    assert found.latencies_s[0] == found.latencies_s[1]
    assert found.cold_s is not None
    assert found.cold_s > 0.0


async def test_one_reply_at_fault_does_not_fail_its_batch() -> None:
    found = await evaluate(Lengths(), replies("a", "bb", "bad"), 4)
    assert [judgement.outcome for judgement in found.judgements] == ["scored", "scored", "failed"]


async def test_no_replies_take_no_time() -> None:
    found = await evaluate(Lengths(), [], 4)
    assert (found.judgements, found.cold_s, found.latencies_s) == ((), None, ())
