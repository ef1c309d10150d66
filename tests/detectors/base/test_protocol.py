"""What detectors say of themselves."""

from __future__ import annotations

import pytest

from hallulab.agents.served_model import ClaimCheck
from hallulab.detectors.base.protocol import Detector, DetectorContext, Traits, describe_judging
from hallulab.detectors.registry import DETECTORS, make_detector
from hallulab.scenarios.transcript import Judgement, TurnView
from hallulab.testing.scripted import scripted_pool

NEED_NONE = {"lexical", "combined", "lettucedetect", "hhem", "minicheck", "factcg"}


def made(kind: str) -> Detector:
    pool, _ = scripted_pool(lambda _: "")
    return make_detector(kind, kind, DetectorContext(models=pool))


@pytest.mark.parametrize("kind", DETECTORS)
def test_a_detector_says_whether_it_asks_a_model_and_what_its_scores_are(kind: str) -> None:
    asks = not (kind in NEED_NONE or kind.startswith("evidence-chain"))
    detector = made(kind)
    assert (detector.traits.needs_model, detector.traits.probabilities) == (asks, kind != "halludetect")
    assert describe_judging(detector, "scripted").models == (("scripted",) if asks else ())


class Theirs(Detector):
    """A detector that says no more of itself than it must."""

    name, version = "theirs", "1"

    async def detect(self, view: TurnView) -> Judgement:
        return Judgement(outcome="scored", score=len(view.reply) / 10, flagged=False)


class Free(Theirs):
    """One that needs no served model."""

    traits = Traits(needs_model=False)


def test_a_detector_that_says_nothing_needs_the_model_and_has_no_threshold() -> None:
    assert Theirs().traits == Traits(needs_model=True, probabilities=True, batch=False, reads_origin=False)
    assert (Theirs().threshold, Theirs().threshold_protocol) == (None, "given")


async def test_many_replies_are_judged_one_by_one_unless_a_detector_can_do_better() -> None:
    views = [TurnView(question="", passages=(), reply=reply) for reply in ("a", "bb")]
    assert [one.score for one in await Theirs().detect_many(views)] == [0.1, 0.2]


@pytest.mark.parametrize(
    ("kind", "prompts"),
    [
        ("direct-judge", {"reply", "sentence"}),
        ("self-check", {"sample", "check"}),
        ("logic-graph", {"supported", "entailed_answer"}),
    ],
)
def test_a_detector_tells_the_prompts_that_it_asks_by(kind: str, prompts: set[str]) -> None:
    assert set(describe_judging(made(kind), "scripted").prompts) == prompts


def test_a_detector_that_tells_nothing_judges_by_the_served_model_if_it_asks_one() -> None:
    assert describe_judging(Theirs(), "m") == ClaimCheck(models=("m",), methods=(f"{__name__}.Theirs",))
    assert describe_judging(Free(), "m") == ClaimCheck(methods=(f"{__name__}.Free",))


def test_what_a_detector_tells_goes_before_the_served_model() -> None:
    class Telling(Theirs):
        claim_check = ClaimCheck(models=("own",))

    told = describe_judging(Telling(), "m")
    assert (told.models, told.prompts) == (("own",), {})
