"""Descriptions that detectors give of themselves, and judgements that cannot be counted or written."""

from __future__ import annotations

import pytest

from hallulab.agents.served_model import ClaimCheck
from hallulab.detectors.base.protocol import (
    Detector,
    DetectorContext,
    Traits,
    check_judgement,
    describe_judging,
    make_failed_judgement,
    run_detector,
)
from hallulab.detectors.registry import DETECTORS, make_detector
from hallulab.scenarios.transcript import Judgement, Span
from hallulab.scenarios.turn_views import TurnView
from hallulab.testing.scripted import scripted_pool
from tests.builders import call, scored

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


def flagging(*spans: Span) -> Judgement:
    return Judgement(outcome="scored", score=1.0, flagged=True, spans=spans, calls=(call("d.judge"),))


WORDS = Judgement(outcome="scored", score=0.5, flagged=False, spans=(), word_scores=(0.1, 0.2))


def test_a_judgement_of_the_reply_is_kept() -> None:
    found = flagging(Span(start=3, end=5, text="or"), Span(start=None, end=None, text="elsewhere"))
    assert check_judgement(found, "word!") == found
    assert check_judgement(WORDS, "two words") == WORDS


@pytest.mark.parametrize(
    ("found", "flaw"),
    [
        (None, "a NoneType, no Judgement"),
        ({"outcome": "scored"}, "a dict, no Judgement"),
        (scored("c", 0), "a Verdict, no Judgement"),
        (
            flagging(Span(start=3, end=6, text="or!")),
            "a span [3, 6) outside the reply, which has 5 characters",
        ),
        (WORDS, "2 word scores for a reply of 1 words"),
        (
            flagging().model_copy(update={"score": float("nan")}),
            "no sound Judgement: outcome 'scored' needs a score and a flag",
        ),
        (
            flagging().model_copy(update={"score": "high"}),
            "no sound Judgement: `score`: input should be a valid number, unable to parse string as a number",
        ),
        (
            flagging().model_copy(update={"units": ("a unit",)}),
            "no sound Judgement: `units.0`: must be keys with values, `{key: value}`, not the text 'a unit'",
        ),
    ],
)
def test_what_is_no_sound_judgement_of_the_reply_is_a_failed_one(found: object, flaw: str) -> None:
    judgement = check_judgement(found, "word!")
    assert (judgement.outcome, judgement.error) == ("failed", f"the detector gave {flaw}")
    kept = found.calls if isinstance(found, Judgement) and "no sound" not in flaw else ()
    assert judgement.calls == kept


def test_a_judgement_that_no_file_can_hold_is_a_failed_one() -> None:
    judgement = check_judgement(flagging(Span(start=0, end=1, text="w", reason="bad \ud800")), "word!")
    assert judgement.outcome == "failed"
    assert (judgement.error or "").startswith("PydanticSerializationError: ")


def test_what_a_detector_raises_can_be_written() -> None:
    assert make_failed_judgement(ValueError("bad \ud800")) == Judgement(
        outcome="failed", error="ValueError: bad \ufffd"
    )


async def test_a_judgement_is_checked_also_if_the_detectors_package_is_called_as_ours() -> None:
    class CalledAsOurs(Theirs):
        __module__ = "detectors.theirs"

        async def detect(self, view: TurnView) -> Judgement:
            return flagging().model_copy(update={"score": "high"})

    [judgement] = await run_detector(CalledAsOurs(), [TurnView(question="", passages=(), reply="word!")])
    assert judgement.outcome == "failed"
