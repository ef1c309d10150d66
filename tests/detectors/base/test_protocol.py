"""Which detectors need the served model."""

from __future__ import annotations

from typing import Any

import pytest

from agents.claim_check import ClaimCheck
from detectors.base.protocol import DetectorContext, asks_a_model, judging, scores_are_probabilities
from detectors.registry import DETECTORS, make_detector
from tests.scripted import scripted_pool

NEED_NONE = {"lexical", "combined", "lettucedetect", "hhem", "minicheck"}


@pytest.mark.parametrize("kind", DETECTORS)
def test_a_detector_says_itself_whether_it_asks_a_model(kind: str) -> None:
    pool, _ = scripted_pool(lambda _: "")
    made = make_detector(kind, kind, DetectorContext(models=pool))
    assert asks_a_model(made) is not (kind in NEED_NONE or kind.startswith("evidence-chain"))


class Theirs:
    """A detector that says nothing of models."""

    name, version, threshold, threshold_protocol = "theirs", "1", None, "given"

    async def detect(self, view: Any) -> Any:
        raise AssertionError


class Batched(Theirs):
    """One that judges in batches."""

    def detect_batch(self, views: Any) -> Any:
        raise AssertionError


def test_a_detector_that_does_not_say_asks_a_model_unless_it_judges_in_batches() -> None:
    assert asks_a_model(Theirs()) is True  # type: ignore[arg-type]
    assert asks_a_model(Batched()) is False  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", DETECTORS)
def test_who_asks_a_model_judges_by_the_one_that_plays_the_detector(kind: str) -> None:
    pool, _ = scripted_pool(lambda _: "")
    made = make_detector(kind, kind, DetectorContext(models=pool))
    assert judging(made, "scripted").models == (("scripted",) if asks_a_model(made) else ())


@pytest.mark.parametrize("kind", ["direct-judge", "self-check", "logic-graph"])
def test_a_detector_tells_the_prompts_that_it_asks_by(kind: str) -> None:
    pool, _ = scripted_pool(lambda _: "")
    made = make_detector(kind, kind, DetectorContext(models=pool))
    assert (
        set(judging(made, "scripted").prompts)
        == {
            "direct-judge": {"reply", "sentence"},
            "self-check": {"sample", "check"},
            "logic-graph": {"supported", "entailed_answer"},
        }[kind]
    )


def test_a_detector_that_tells_nothing_judges_by_the_served_model_if_it_asks_one() -> None:
    assert judging(Theirs(), "m") == ClaimCheck(models=("m",))  # type: ignore[arg-type]
    assert judging(Batched(), "m") == ClaimCheck()  # type: ignore[arg-type]


def test_what_a_detector_tells_goes_before_the_served_model() -> None:
    class Telling(Theirs):
        claim_check = ClaimCheck(models=("own",))

    assert judging(Telling(), "m") == ClaimCheck(models=("own",))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", DETECTORS)
def test_all_scores_but_severities_are_probabilities(kind: str) -> None:
    pool, _ = scripted_pool(lambda _: "")
    made = make_detector(kind, kind, DetectorContext(models=pool))
    assert scores_are_probabilities(made) is (kind != "halludetect")


def test_a_detector_that_does_not_say_gives_probabilities() -> None:
    assert scores_are_probabilities(Theirs()) is True  # type: ignore[arg-type]
