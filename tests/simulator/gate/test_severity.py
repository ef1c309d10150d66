"""The guard of severity: what is new, what is noise, and who rates nothing."""

from __future__ import annotations

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.gate.rules import GateRules, read_severity
from tests.simulator.gate.runs import checks_of, judge, rated, run_of

OTHER = "two three"


def test_a_new_hallucination_of_severity_5_blocks() -> None:
    result = judge(rated({("asha", 0): [[2], [5]]}, reply=OTHER), rated({("asha", 0): [[2], [2]]}, "before"))
    assert result.verdict == "blocked"
    assert [(turn.persona, turn.turn, turn.after.severity) for turn in result.severe] == [("asha", 1, 5.0)]
    assert [(check.outcome, check.message) for check in checks_of(result, "severe")] == [
        ("failed", "1 turn with new hallucinations of severity 5 or more")
    ]


def test_one_that_was_there_before_does_not() -> None:
    result = judge(rated({("asha", 0): [[5]]}, reply=OTHER), rated({("asha", 0): [[5]]}, "before"))
    assert (result.verdict, result.severe) == ("passed", ())


def test_one_of_lower_severity_does_not() -> None:
    result = judge(rated({("asha", 0): [[4]]}, reply=OTHER), rated({("asha", 0): [[]]}, "before"))
    assert (result.verdict, result.severe) == ("passed", ())
    assert (
        judge(
            rated({("asha", 0): [[4]]}, reply=OTHER), rated({("asha", 0): [[]]}, "before"), severity_guard=4.0
        ).verdict
        == "blocked"
    )


def test_where_the_reply_is_the_same_the_detector_changed_its_mind_and_that_is_told() -> None:
    before, now = (rated({("asha", 0): [[grade]]}, name) for name, grade in (("before", 2.0), ("now", 5.0)))
    before, now = (
        run.model_copy(update={"setup": run.setup.model_copy(update={"scenario_version": "1"})})
        for run in (before, now)
    )
    result = judge(now, before)
    assert (result.verdict, [turn.noise for turn in result.severe]) == ("passed", [True])
    assert (
        "new severe hallucinations in 1 turn with the same dialogue, passages and reply as in the baseline: "
        "the detector changed its mind there, so this does not block."
    ) in result.warnings


def test_all_severe_ones_are_new_in_a_conversation_that_the_baseline_does_not_have() -> None:
    result = judge(
        rated({("asha", 0): [[]], ("asha", 1): [[], [5, 2]]}), rated({("asha", 0): [[]]}, "before")
    )
    assert result.verdict == "blocked"
    assert [(turn.seed, turn.turn, turn.conversation_before) for turn in result.severe] == [(1, 1, "")]


def test_a_turn_beyond_those_of_the_baseline_has_only_new_ones() -> None:
    result = judge(rated({("asha", 0): [[], [5]]}), rated({("asha", 0): [[]]}, "before"))
    assert (result.verdict, [turn.turn for turn in result.severe]) == ("blocked", [1])


def test_off_asks_for_none() -> None:
    result = judge(rated({("asha", 0): [[5]]}), rated({("asha", 0): [[]]}, "before"), severity_guard=None)
    assert (result.verdict, checks_of(result, "severe")) == ("passed", [])


def test_it_is_said_that_no_detector_rates_severities() -> None:
    result = judge(run_of(3), run_of(0, name="before"))
    assert [(check.outcome, check.message) for check in checks_of(result, "severe")] == [
        ("not tested", "no hallucination has a severity: no detector here rates it")
    ]


@pytest.mark.parametrize(("given", "read"), [("5", 5.0), ("4.5", 4.5), ("off", None), (None, None), (3, 3.0)])
def test_a_severity_is_a_number_or_off(given: str | float | None, read: float | None) -> None:
    assert read_severity(given) == read


def test_another_word_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^--severity-guard high: give a severity from 1 to 5, or off\.$"):
        read_severity("high")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"severity_guard": 6.0}, "--severity-guard 6: give a severity from 1 to 5, or off."),
        ({"severity_guard": float("nan")}, "--severity-guard nan: give a severity from 1 to 5, or off."),
        ({"max_hpt": -1.0}, "--max-hpt -1: give hallucinations a turn, 0 or more."),
        ({"min_coverage": 90.0}, "--min-coverage 90: give a share from 0 to 1, such as 0.9."),
    ],
)
def test_numbers_that_mean_nothing_are_refused(rules: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        GateRules(**rules)  # type: ignore[arg-type]
    assert str(refused.value) == message
