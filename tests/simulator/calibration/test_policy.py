"""Thresholds of a safeguard's topics."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.chatbots.guarded.policy import Policy
from hallulab.scenarios.transcript import Judgement
from hallulab.simulator.bench.evaluate import Evaluation
from hallulab.simulator.bench.split import split_into_folds
from hallulab.simulator.calibration.policy import apply_thresholds, build_topic_rows, raise_threshold
from tests.builders import labelled


def policy(**changes: Any) -> Policy:
    given: dict[str, Any] = {
        "name": "p",
        "topics": {"visa": {"sensitive": True, "words": ["visa"]}, "fees": {}},
        "thresholds": {"general": 0.5, "sensitive": 0.3},
    }
    return Policy.model_validate({**given, "says": {"abstain": "No.", "human": "Wait."}, **changes})


def planted(controls: list[float], errors: list[float], question: str = "My visa?") -> Evaluation:
    """Judged pairs on a topic, in documents by turns of four; one control's words stand twice."""
    meta = {"twin": "x"}
    replies, judgements = [], []
    for kind, scores in ((False, controls), (True, errors)):
        for at, score in enumerate(scores):
            fields = {"id": f"{kind}{at}", "question": question, "group": f"g{at % 4}", "meta": meta}
            replies.append(labelled(f"Reply {at}.", kind, **fields))
            judgements.append(Judgement(outcome="scored", score=score, flagged=False))
    replies.append(labelled("Reply 0.", False, id="again", question=question, group="g0", meta=meta))
    judgements.append(Judgement(outcome="scored", score=1.0, flagged=False))
    return Evaluation("d", 0.5, "given", tuple(replies), tuple(judgements), 0.0)


CONTROLS = [0.43] * 20 + [0.1] * 40


def test_a_threshold_that_flags_the_truth_rises_until_a_tenth_is_flagged() -> None:
    judged = planted(CONTROLS, [0.9] * 50 + [0.35] * 10)
    [row] = build_topic_rows(judged, policy(), {}, split_into_folds(judged.replies, 4, seed=0))
    assert (row.topic, row.controls, row.errors, row.before) == ("visa", 60, 60, 0.3)
    assert (row.flagged_before, row.recall_before) == (pytest.approx(1 / 3, abs=1e-4), 1.0)
    assert (row.threshold, row.flagged) == (0.431, 0.0)
    assert row.recall == pytest.approx(5 / 6, abs=1e-4)
    assert (row.flagged_held_out, row.recall_held_out) == (0.0, row.recall)


def test_a_threshold_that_flags_at_most_a_tenth_stays() -> None:
    judged = planted([0.43] * 6 + [0.1] * 54, [0.9] * 60)
    [row] = build_topic_rows(judged, policy(), {}, split_into_folds(judged.replies, 4, seed=0))
    assert (row.threshold, row.flagged, row.recall) == (0.3, 0.1, 1.0)


def test_too_few_controls_fit_nothing() -> None:
    judged = planted(CONTROLS[:59], [0.9] * 60)
    [row] = build_topic_rows(judged, policy(), {}, split_into_folds(judged.replies, 4, seed=0))
    assert (row.threshold, row.flagged_held_out) == (None, None)
    assert row.not_fitted == "59 grounded controls, and 60 are needed (--count plants more)"


def test_replies_on_other_topics_do_not_count() -> None:
    judged = planted(CONTROLS, [0.9] * 60, question="My bicycle?")
    [row] = build_topic_rows(judged, policy(), {}, split_into_folds(judged.replies, 4, seed=0))
    assert (row.controls, row.errors) == (0, 0)


def test_a_topic_of_the_scenario_is_fitted_and_enters_the_policy() -> None:
    judged = planted(CONTROLS, [0.9] * 60)
    rows = build_topic_rows(
        judged, policy(), {"visa": 0.2, "asylum": 0.3}, split_into_folds(judged.replies, 4, seed=0)
    )
    assert [(row.topic, row.before, row.threshold) for row in rows] == [
        ("visa", 0.2, 0.431),
        ("asylum", 0.3, None),
    ]
    written = apply_thresholds(policy(), rows)
    assert written.topics["visa"].threshold == 0.431
    assert written.decision(["visa"], {"visa": 0.2}, False).threshold == 0.431
    assert "asylum" not in written.topics


@given(st.lists(st.floats(0, 1), min_size=1, max_size=200), st.floats(0, 1))
def test_at_most_a_tenth_reaches_the_threshold(controls: list[float], before: float) -> None:
    found = raise_threshold(controls, before)
    if found is None:
        assert sum(score == 1 or score * 1000 >= 999 for score in controls) > len(controls) // 10
        return
    assert sum(score >= found for score in controls) <= len(controls) * 0.1
    assert found >= before
