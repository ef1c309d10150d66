"""Absolute limits, and coverage that counts the replies that failed conversations lack."""

from __future__ import annotations

from hallulab.simulator.compare.summary import RunSummary
from hallulab.simulator.gate.totals import count_totals
from tests.simulator.gate.runs import checks_of, judge, run_of


def with_a_failed_one(run: RunSummary) -> RunSummary:
    """The run, in which the last conversation ended with an error before its first reply."""
    *others, last = run.conversations
    failed = last.model_copy(update={"failed": True, "turns": ()})
    return run.model_copy(update={"conversations": (*others, failed)})


def test_a_conversation_that_failed_lacks_a_reply() -> None:
    [totals] = count_totals(with_a_failed_one(run_of(2, None, 1, 0))).values()
    assert (totals.conversations, totals.failed, totals.turns, totals.scored) == (4, 1, 3, 2)
    assert (totals.hpt_1, totals.coverage, totals.personas) == (1.5, 0.5, 2)


def test_a_chatbot_above_the_limit_blocks() -> None:
    run = run_of(2, 1)
    assert judge(run, run, max_hpt=1.5).verdict == "passed"
    result = judge(run, run, max_hpt=1.4)
    assert (result.verdict, [check.message for check in result.blocking]) == (
        "blocked",
        ["HPT-1 1.5; at most 1.4 is allowed"],
    )


def test_a_chatbot_without_a_scored_turn_is_below_no_limit() -> None:
    run = run_of(None)
    result = judge(run, run, max_hpt=10.0)
    assert (result.verdict, [check.message for check in result.blocking]) == (
        "not comparable",
        ["HPT-1 unknown, no turn is scored; at most 10 is allowed"],
    )


def test_less_coverage_than_the_limit_blocks() -> None:
    run = with_a_failed_one(run_of(0, 0, 0, 0))
    assert judge(run, run, min_coverage=0.75).verdict == "passed"
    result = judge(run, run, min_coverage=0.8)
    assert [(check.rule, check.message) for check in result.blocking] == [
        ("min-coverage", "coverage 75.0%; at least 80.0% is needed")
    ]


def test_a_drop_in_coverage_and_failed_conversations_are_told() -> None:
    result = judge(with_a_failed_one(run_of(0, None, 0, 0)), run_of(0, 0, 0, 0, name="before"))
    assert result.verdict == "passed"
    assert result.warnings[1:] == (
        "bot by d: coverage fell from 100.0% to 50.0%.",
        "bot: 1 conversation failed, 0 in the baseline.",
    )
    assert [check.outcome for check in checks_of(result, "worse")] == ["not tested"]


def test_conversations_that_the_run_lacks_are_told() -> None:
    result = judge(run_of(0), run_of(0, 0, name="before"))
    assert "bot: the run lacks 1 conversation of the baseline." in result.warnings
