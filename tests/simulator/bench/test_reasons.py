"""Why judgements are missing."""

from __future__ import annotations

from hallulab.scenarios.text.wording import BRIEF
from hallulab.scenarios.transcript import Judgement
from hallulab.simulator.bench.evaluate import Missing, count_reasons


def failed(reason: str) -> Judgement:
    return Judgement(outcome="failed", error=reason)


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
    assert [(item.reason, item.n) for item in found] == [
        ("g", 2),
        ("a", 1),
        ("b", 1),
        ("c", 1),
        ("d", 1),
    ]


def test_a_reason_is_one_line_of_text_whatever_a_model_wrote() -> None:
    assert count_reasons([failed("a\n  b\x1b[31m")])[0].reason == "a b�[31m"


def test_a_long_reason_is_cut() -> None:
    reason = count_reasons([failed("x" * (BRIEF + 1))])[0].reason
    assert (len(reason), reason[-2:]) == (BRIEF, "x…")
