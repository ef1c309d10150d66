"""Whether a gate sees that a chatbot answers less."""

from __future__ import annotations

import pytest

from hallulab.simulator.compare.gate_result import GateResult
from hallulab.simulator.compare.summary import RunSummary
from tests.simulator.compare.gated import checks_of, judge, run_of
from tests.simulator.compare.made import found

DECLINE = "I cannot find that. Please contact the help desk."
BEFORE = run_of(*[1] * 6, name="before")
SILENT = run_of(*[0] * 6, reply=DECLINE)


def list_answered(result: GateResult) -> list[tuple[str, str, str]]:
    return [(check.subject, check.outcome, check.message) for check in checks_of(result, "answered")]


def without_kinds(run: RunSummary) -> RunSummary:
    """The run as a baseline file from before the kind of replies was kept."""
    chats = [
        chat.model_copy(
            update={"turns": tuple(turn.model_copy(update={"answers": None}) for turn in chat.turns)}
        )
        for chat in run.conversations
    ]
    return run.model_copy(update={"conversations": tuple(chats)})


def test_a_run_that_declines_what_it_answered_is_blocked_without_any_hallucination() -> None:
    result = judge(SILENT, BEFORE)
    assert (result.verdict, result.exit_code) == ("blocked", 1)
    [line] = result.lines
    assert (line.answered_before, line.answered, line.p_answered) == (1.0, 0.0, 1 / 64)
    assert [(check.rule, check.subject, check.message) for check in result.blocking] == [
        ("answered", "bot", "answered 100.0% → 0.0% of replies on 6 personas, p = 0.016; below 0.025 blocks")
    ]


def test_a_run_that_answers_more_or_as_much_passes() -> None:
    assert judge(BEFORE, SILENT, severity_guard=None).lines[0].p_answered == 1.0
    assert list_answered(judge(BEFORE, BEFORE)) == [
        ("bot", "passed", "answered 100.0% → 100.0% of replies on 6 personas, p = 1; below 0.025 blocks")
    ]


def test_few_personas_are_not_tested() -> None:
    few = judge(run_of(0, 0, reply=DECLINE), run_of(0, 0, name="before"))
    assert list_answered(few) == [("bot", "not tested", "cannot detect fewer answers: 2 personas, 6 needed")]


@pytest.mark.parametrize(("personas", "verdict"), [(6, "passed"), (7, "blocked")])
def test_holm_is_over_chatbots(personas: int, verdict: str) -> None:
    zeros = {(f"p{number}", 0): [0] for number in range(personas)}
    before = found({"a": zeros, "b": zeros}, "before")
    silent = found({"a": zeros}, "now", DECLINE).conversations
    now = found({"b": zeros}, "now")
    now = now.model_copy(update={"conversations": (*silent, *now.conversations)})
    assert judge(now, before).verdict == verdict


def test_a_baseline_that_does_not_say_what_answers_is_not_tested() -> None:
    assert list_answered(judge(SILENT, without_kinds(BEFORE))) == [
        (
            "bot",
            "not tested",
            "the baseline does not say which replies answer (a language without rules, or a file of an "
            "earlier version: recreate the baseline with `hallulab compare RUN --save FILE`)",
        )
    ]


def test_a_run_that_only_thanks_cannot_be_judged() -> None:
    thanks = judge(run_of(*[0] * 6, reply="You're welcome!"), BEFORE)
    assert (thanks.verdict, list_answered(thanks)) == (
        "not comparable",
        [("bot", "not comparable", "answered 100.0% of replies; now the rules read none")],
    )


def test_a_floor_blocks_whatever_the_baseline_answered() -> None:
    assert judge(BEFORE, BEFORE, min_answered=1.0).verdict == "passed"
    result = judge(SILENT, SILENT, min_answered=0.8)
    assert [(check.rule, check.subject, check.message) for check in result.blocking] == [
        ("min-answered", "bot", "answered 0.0%; at least 80.0% is needed")
    ]


def test_an_unknown_share_is_above_no_floor() -> None:
    thanks = run_of(*[0] * 6, reply="You're welcome!")
    assert [(check.outcome, check.message) for check in judge(thanks, thanks, min_answered=0.0).blocking] == [
        ("not comparable", "answered unknown, the rules read no reply; at least 0.0% is needed")
    ]
