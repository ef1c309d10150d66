"""Detectors that judge in batches, how long judging took, and why judgements are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from hallulab.detectors.base.protocol import Detector, Traits
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.wording import BRIEF
from hallulab.scenarios.transcript import Judgement, Span
from hallulab.scenarios.turn_views import Origin, TurnView
from hallulab.simulator.bench.evaluate import Missing, compute_costs, count_reasons, evaluate, join_folds
from tests.builders import labelled


def replies(*texts: str) -> list[LabelledReply]:
    return [labelled(text, id=text) for text in texts]


class Lengths(Detector):
    """Scores a reply by its length; keeps what it was given at once."""

    name = "lengths"
    version = "1"
    traits = Traits(needs_model=False, batch=True)

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    async def detect(self, view: TurnView) -> Judgement:
        if view.reply == "bad":
            raise RuntimeError("no bad")
        return Judgement(outcome="scored", score=len(view.reply) / 10, flagged=False)

    async def detect_many(self, views: Sequence[TurnView]) -> list[Judgement]:
        self.batches.append([view.reply for view in views])
        if any(view.reply == "bad" for view in views):
            raise RuntimeError("no bad")
        return [Judgement(outcome="scored", score=len(view.reply) / 10, flagged=False) for view in views]


async def test_the_first_reply_is_judged_alone_and_the_others_in_a_batch() -> None:
    detector, told = Lengths(), list[int]()
    found = await evaluate(detector, replies("a", "bb", "ccc"), 4, told.append)
    assert detector.batches == [["bb", "ccc"]]
    assert [judgement.score for judgement in found.judgements] == [0.1, 0.2, 0.3]
    assert (found.batched, told) == (True, [1, 2])
    assert found.latencies_s[0] is None
    assert found.latencies_s[1] == found.latencies_s[2]
    assert found.cold_s is not None
    assert found.cold_s > 0.0


async def test_one_reply_at_fault_does_not_fail_its_batch() -> None:
    found = await evaluate(Lengths(), replies("a", "bb", "bad"), 4)
    assert [judgement.outcome for judgement in found.judgements] == ["scored", "scored", "failed"]


class Beyond(Lengths):
    """Flags two characters of every reply, also of those that have one."""

    async def detect(self, view: TurnView) -> Judgement:
        return (await self.detect_many([view]))[0]

    async def detect_many(self, views: Sequence[TurnView]) -> list[Judgement]:
        span = Span(start=0, end=2, text="xx")
        return [Judgement(outcome="scored", score=1.0, flagged=True, spans=(span,)) for _ in views]


async def test_a_judgement_that_does_not_fit_its_reply_is_a_failed_one() -> None:
    found = await evaluate(Beyond(), replies("a", "bb", "c"), 4)
    assert [judgement.outcome for judgement in found.judgements] == ["failed", "scored", "failed"]


class Knowing(Lengths):
    """Keeps what it is told of the replies' origins."""

    def __init__(self, reads_origin: bool) -> None:
        super().__init__()
        self.traits = replace(Lengths.traits, reads_origin=reads_origin)
        self.told: list[Origin] = []

    async def detect(self, view: TurnView) -> Judgement:
        self.told.append(view.origin)
        return await super().detect(view)


async def test_a_detector_that_asks_for_it_is_told_who_wrote_the_replies() -> None:
    detector = Knowing(reads_origin=True)
    written = [
        one.model_copy(update={"meta": {"model": f"m{number}"}})
        for number, one in enumerate(replies("a", "bad", "bb"))
    ]
    found = await evaluate(detector, written, 4)
    assert [origin.generator for origin in detector.told] == ["m0", "m1", "m2"]
    assert [judgement.outcome for judgement in found.judgements] == ["scored", "failed", "scored"]
    assert found.told_origin


async def test_a_detector_that_does_not_ask_is_never_told_who_wrote_the_replies() -> None:
    detector = Knowing(reads_origin=False)
    found = await evaluate(detector, replies("a", "bad", "bb"), 4)
    assert (detector.told, found.told_origin) == ([Origin()] * 3, False)


async def test_no_replies_take_no_time() -> None:
    found = await evaluate(Lengths(), [], 4)
    assert (found.judgements, found.cold_s, found.latencies_s) == ((), None, ())


async def test_folds_are_joined_in_the_order_of_the_whole() -> None:
    first = await evaluate(Lengths(), replies("bb", "dddd"), 4, train_s=1.0)
    second = await evaluate(Lengths(), replies("a", "ccc"), 4, train_s=2.0)
    first, second = replace(first, threshold=0.2), replace(second, threshold=0.4)
    found = join_folds([first, second], [[1, 3], [0, 2]])
    assert [reply.reply for reply in found.replies] == ["a", "bb", "ccc", "dddd"]
    assert [judgement.score for judgement in found.judgements] == [0.1, 0.2, 0.3, 0.4]
    assert (found.train_s, found.cold_s) == (3.0, first.cold_s)
    assert found.latencies_s == (None, None, second.latencies_s[1], first.latencies_s[1])
    assert found.threshold == pytest.approx(0.3)
    assert found.fold_thresholds == (0.2, 0.4)


async def test_a_fold_without_a_threshold_leaves_none_to_tell() -> None:
    one = await evaluate(Lengths(), replies("a"), 4)
    other = replace(await evaluate(Lengths(), replies("b"), 4), threshold=0.4)
    assert join_folds([one, other], [[0], [1]]).threshold is None


def failed(reason: str) -> Judgement:
    return Judgement(outcome="failed", error=reason)


async def test_memory_is_what_the_process_grew_by_while_it_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = iter([100.0, 140.5])
    monkeypatch.setattr("hallulab.simulator.bench.evaluate._measure_peak_mb", lambda: next(peaks))
    found = await evaluate(Lengths(), replies("a", "bb"), 4)
    assert compute_costs(found).memory_mb == 40.5


def test_reasons_are_counted_the_most_frequent_first() -> None:
    judgements = [
        failed("no answer"),
        Judgement(outcome="abstained", error="no evidence"),
        Judgement(outcome="scored", score=0.5, flagged=False),
        Judgement(outcome="abstained", error="no evidence"),
    ]
    assert count_reasons(judgements) == (
        Missing(outcome="abstained", reason="no evidence", n=2),
        Missing(outcome="failed", reason="no answer", n=1),
    )


def test_five_reasons_are_told() -> None:
    found = count_reasons([failed(name) for name in "abcdefgg"])
    assert [(item.reason, item.n) for item in found] == [("g", 2), ("a", 1), ("b", 1), ("c", 1), ("d", 1)]


@pytest.mark.parametrize(
    ("reason", "told"), [("a\n  b\x1b[31m", "a b�[31m"), ("x" * (BRIEF + 1), "x" * (BRIEF - 1) + "…")]
)
def test_a_reason_is_one_short_line_of_text_whatever_a_model_wrote(reason: str, told: str) -> None:
    assert count_reasons([failed(reason)])[0].reason == told
