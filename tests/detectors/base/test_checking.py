"""Judgements that cannot be counted or written are failed ones."""

from __future__ import annotations

import pytest

from hallulab.detectors.base.protocol import Detector, check_judgement, make_failed_judgement, run_detector
from hallulab.scenarios.transcript import Judgement, Span, TurnView
from tests.builders import call, scored


def flagging(*spans: Span) -> Judgement:
    return Judgement(outcome="scored", score=1.0, flagged=True, spans=spans, calls=(call("d.judge"),))


def test_a_judgement_of_the_reply_is_kept() -> None:
    found = flagging(Span(start=3, end=5, text="or"), Span(start=None, end=None, text="elsewhere"))
    assert check_judgement(found, "word!") == found


@pytest.mark.parametrize(
    ("found", "kind"),
    [(None, "NoneType"), ({"outcome": "scored"}, "dict"), (scored("c", 0), "Verdict")],
)
def test_what_is_no_judgement_is_a_failed_one(found: object, kind: str) -> None:
    judgement = check_judgement(found, "word!")
    assert (judgement.outcome, judgement.error) == ("failed", f"the detector gave a {kind}, no Judgement")


def test_a_span_outside_the_reply_is_a_failure_that_keeps_its_calls() -> None:
    judgement = check_judgement(flagging(Span(start=3, end=6, text="or!")), "word!")
    assert (judgement.outcome, judgement.error, judgement.calls) == (
        "failed",
        "the detector gave a span [3, 6) outside the reply, which has 5 characters",
        (call("d.judge"),),
    )


def test_a_judgement_that_no_file_can_hold_is_a_failed_one() -> None:
    judgement = check_judgement(flagging(Span(start=0, end=1, text="w", reason="bad \ud800")), "word!")
    assert judgement.outcome == "failed"
    assert (judgement.error or "").startswith("PydanticSerializationError: ")


def test_what_a_detector_raises_can_be_written() -> None:
    assert make_failed_judgement(ValueError("bad \ud800")) == Judgement(
        outcome="failed", error="ValueError: bad \ufffd"
    )


def test_scores_of_other_words_than_the_reply_has_are_a_failure() -> None:
    found = Judgement(outcome="scored", score=0.5, flagged=False, spans=(), word_scores=(0.1, 0.2))
    assert check_judgement(found, "two words") == found
    judgement = check_judgement(found, "three words here")
    assert (judgement.outcome, judgement.error) == (
        "failed",
        "the detector gave 2 word scores for a reply of 3 words",
    )


@pytest.mark.parametrize(
    ("changed", "flaw"),
    [
        ({"score": float("nan")}, "outcome 'scored' needs a score and a flag"),
        ({"score": "high"}, "`score`: input should be a valid number, unable to parse string as a number"),
        (
            {"units": ("a unit",)},
            "`units.0`: must be keys with values, `{key: value}`, not the text 'a unit'",
        ),
    ],
)
def test_a_judgement_that_was_changed_unchecked_is_a_failed_one(
    changed: dict[str, object], flaw: str
) -> None:
    judgement = check_judgement(flagging().model_copy(update=changed), "word!")
    assert (judgement.outcome, judgement.error) == (
        "failed",
        f"the detector gave no sound Judgement: {flaw}",
    )


async def test_a_judgement_is_checked_also_if_the_detectors_package_is_called_as_ours() -> None:
    class Theirs(Detector):
        __module__ = "detectors.theirs"

        async def detect(self, view: TurnView) -> Judgement:
            return flagging().model_copy(update={"score": "high"})

    [judgement] = await run_detector(Theirs(), [TurnView(question="", passages=(), reply="word!")])
    assert judgement.outcome == "failed"
