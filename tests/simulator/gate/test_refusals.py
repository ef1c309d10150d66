"""What a gate refuses to judge: all that the baseline has must have been measured again."""

from __future__ import annotations

from hallulab.simulator.compare.setup import ComponentSetup
from tests.simulator.compare.made import found
from tests.simulator.gate.runs import checks_of, judge, run_of

ANEW = "make the baseline anew with `hallulab compare RUN --save FILE`"


def refusals(result: object) -> list[tuple[str, str]]:
    """Subject and message of each refusal."""
    return [
        (check.subject, check.message)
        for check in checks_of(result, "comparable")  # type: ignore[arg-type]
        if check.outcome == "not comparable"
    ]


def test_another_scenario() -> None:
    result = judge(run_of(0, scenario="tea"), run_of(0, name="before", scenario="coffee"))
    assert (result.verdict, result.exit_code) == ("not comparable", 3)
    assert refusals(result) == [("the run", f"other scenarios (coffee and tea): {ANEW}")]


def test_a_chatbot_that_is_gone() -> None:
    bot = {("asha", 0): [0]}
    result = judge(found({"a": bot}, "now"), found({"a": bot, "b": bot}, "before"))
    assert result.exit_code == 3
    assert refusals(result) == [("b", f"the baseline has it, the run does not: run it, or {ANEW}")]


def test_a_chatbot_that_is_new_is_told_and_not_judged() -> None:
    bot = {(f"p{number}", 0): [9] for number in range(9)}
    result = judge(found({"a": bot, "b": bot}, "now"), found({"a": bot}, "before"))
    assert (result.verdict, [line.chatbot for line in result.lines]) == ("passed", ["a"])
    assert result.warnings == ("not compared: the baseline lacks b.",)


def test_a_detector_of_another_version() -> None:
    result = judge(
        run_of(0, detectors={"d": ComponentSetup(version="2"), "e": ComponentSetup(version="1")}),
        run_of(0, name="before"),
    )
    assert result.exit_code == 3
    [(_, message)] = refusals(result)
    assert message.startswith("no detector in the same version (d changed")


def test_a_run_that_nothing_was_scored_of_is_not_clean() -> None:
    result = judge(run_of(*[None] * 6), run_of(*[0] * 6, name="before"))
    assert result.exit_code == 3
    assert refusals(result) == [("bot by d", "no turn of the run is scored, and a failure is never clean")]


def test_a_run_that_lost_the_personas_that_the_test_needs() -> None:
    result = judge(run_of(*[0] * 2), run_of(*[0] * 6, name="before"))
    assert result.exit_code == 3
    assert refusals(result) == [
        (
            "bot by d",
            f"of the baseline's 6 personas only 2 are scored in the run, 6 needed: run them, or {ANEW}",
        )
    ]


def test_a_run_of_which_few_personas_are_the_baselines() -> None:
    before, now = (
        found({"bot": {(f"p{number}", 0): [0] for number in range(start, start + 20)}}, name)
        for name, start in (("before", 0), ("now", 15))
    )
    assert refusals(judge(now, before)) == [
        (
            "bot by d",
            f"of the baseline's 20 personas too few are scored in the run, 6 needed: run them, or {ANEW}",
        )
    ]


def test_other_personas() -> None:
    before, now = (
        found({"bot": {(f"{name}{number}", 0): [0] for number in range(8)} | {("asha", 0): [0]}}, name)
        for name in ("before", "now")
    )
    result = judge(now, before)
    assert result.exit_code == 3
    assert [subject for subject, _ in refusals(result)] == ["bot by d"]


def test_what_failed_a_limit_blocks_though_another_line_cannot_be_compared() -> None:
    bot = {("asha", 0): [2]}
    result = judge(found({"a": bot}, "now"), found({"a": bot, "b": bot}, "before"), max_hpt=1.0)
    assert (result.verdict, result.exit_code) == ("blocked", 1)


def test_one_reason_of_several_lines_is_said_once() -> None:
    bot = {(f"p{number}", 0): [0] for number in range(2)}
    baseline = {(f"p{number}", 0): [0] for number in range(7)}
    result = judge(found({"a": bot, "b": bot}, "now"), found({"a": baseline, "b": baseline}, "before"))
    assert result.reasons == (
        "a by d and b by d: of the baseline's 7 personas only 2 are scored in the run, 7 needed: run them, "
        f"or {ANEW}",
    )
