"""What a gate refuses to judge, and what blocks a run: each rule by itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hallulab.detectors.base.thresholds import Fitted, GroupCounts, UnitCounts, locate_fitted_file
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.compare.gate_checks import count_totals
from hallulab.simulator.compare.gate_result import GateCheck, GateRules, read_severity
from hallulab.simulator.compare.setup import ComponentSetup
from hallulab.simulator.compare.summary import RunSummary
from tests.simulator.compare.gated import checks_of, judge, rated, run_of
from tests.simulator.compare.made import found

pytestmark = pytest.mark.usefixtures("own_cache")


RECREATE = "recreate the baseline with `hallulab compare RUN --save FILE`"


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
    assert refusals(result) == [("the run", f"other scenarios (coffee and tea): {RECREATE}")]


def test_a_chatbot_that_is_gone() -> None:
    bot = {("asha", 0): [0]}
    result = judge(found({"a": bot}, "now"), found({"a": bot, "b": bot}, "before"))
    assert result.exit_code == 3
    assert refusals(result) == [("b", f"the baseline has it, the run does not: run it, or {RECREATE}")]


def test_a_chatbot_that_is_new_is_told_and_not_judged() -> None:
    bot = {(f"p{number}", 0): [9] for number in range(9)}
    result = judge(found({"a": bot, "b": bot}, "now"), found({"a": bot}, "before"))
    assert (result.verdict, [line.chatbot for line in result.lines]) == ("passed", ["a"])
    assert result.warnings == ("not compared: b, missing in the baseline.",)


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
            f"of the baseline's 6 personas only 2 are scored in the run, 6 needed: run them, or {RECREATE}",
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
            f"of the baseline's 20 personas too few are scored in the run, 6 needed: run them, or {RECREATE}",
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
        f"or {RECREATE}",
    )


def check_calibration(planted: Path | None = None) -> list[GateCheck]:
    """What is said of the detector of a run."""
    return checks_of(judge(run_of(0), run_of(0), require_calibrated=True, planted=planted), "calibrated")


def fit(clean_flagged: int, wrong_flagged: int, version: str = "1") -> None:
    """Keep a calibration of ten clean and ten wrong replies."""
    counts = UnitCounts(clean=10, clean_flagged=clean_flagged, wrong=10, wrong_flagged=wrong_flagged)
    group = GroupCounts(replies=counts, sentences=counts)
    fitted = Fitted(
        detector="d", scoring="s", version=version, threshold=0.5, measured_on="m", groups=(group,)
    )
    path, text = locate_fitted_file(fitted)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def planted_file(folder: Path, version: str) -> Path:
    """The JSON of a benchmark on ten planted errors."""
    group = {
        "pairs": 10,
        "errors_flagged": 9,
        "twins_flagged": 2,
        "error_spans": 9,
        "twin_spans": 2,
        "error_sentences": 10,
        "twin_sentences": 10,
    }
    path = folder / "bench.json"
    measured = {"detector": "d", "version": version, "all_pairs": 10, "groups": [group]}
    path.write_text(json.dumps({"planted_counts": [measured]}))
    return path


def test_an_unknown_detector_is_refused() -> None:
    result = judge(run_of(0), run_of(0), require_calibrated=True)
    assert result.exit_code == 3
    assert [(check.subject, check.message) for check in result.blocking] == [
        (
            "by d",
            "its sensitivity and specificity on this model are unknown: fit it with `hallulab calibrate`, or "
            "measure it on planted errors and give --planted (docs/gate.md)",
        )
    ]


def test_it_may_gate_where_it_is_not_asked_for() -> None:
    assert judge(run_of(0), run_of(0)).verdict == "passed"


@pytest.mark.parametrize(
    ("clean_flagged", "wrong_flagged", "outcome", "message"),
    [
        (2, 8, "passed", "sensitivity 80%, specificity 80%, by calibration"),
        (
            5,
            5,
            "not comparable",
            "its flags do not separate wrong replies from clean ones (sensitivity 50%, specificity 50%, by "
            "calibration)",
        ),
    ],
)
def test_a_calibrated_one_may_gate_if_its_flags_separate_replies(
    clean_flagged: int, wrong_flagged: int, outcome: str, message: str
) -> None:
    fit(clean_flagged, wrong_flagged)
    assert [(one.outcome, one.message) for one in check_calibration()] == [(outcome, message)]


def test_a_calibration_of_another_version_does_not_count() -> None:
    fit(clean_flagged=2, wrong_flagged=8, version="2")
    assert [one.outcome for one in check_calibration()] == ["not comparable"]


def test_planted_errors_tell_it_too(tmp_path: Path) -> None:
    assert [(one.outcome, one.message) for one in check_calibration(planted_file(tmp_path, "1"))] == [
        ("passed", "sensitivity 90%, specificity 80%, by planted errors")
    ]


def test_planted_errors_of_another_version_are_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--planted: it measures version 2 of d, and version 1 judged"):
        check_calibration(planted_file(tmp_path, "2"))


def test_planted_errors_are_for_required_calibration(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--planted goes with --require-calibrated"):
        judge(run_of(0), run_of(0), planted=tmp_path)


OTHER = "two three"


def test_a_new_hallucination_of_severity_5_blocks() -> None:
    result = judge(rated({("asha", 0): [[2], [5]]}, reply=OTHER), rated({("asha", 0): [[2], [2]]}, "before"))
    assert result.verdict == "blocked"
    assert [(turn.persona, turn.turn, turn.after.severity) for turn in result.severe] == [("asha", 1, 5.0)]
    assert [(check.outcome, check.message) for check in checks_of(result, "severe")] == [
        ("failed", "1 turn with new hallucinations of severity 5 or more")
    ]


@pytest.mark.parametrize(
    ("now", "before", "guard", "blocked"),
    [
        pytest.param([[5]], [[5]], 5.0, [], id="there before"),
        pytest.param([[4]], [[]], 5.0, [], id="less severe"),
        pytest.param([[4]], [[]], 4.0, [0], id="a lower limit"),
        pytest.param([[], [5]], [[]], 5.0, [1], id="a turn beyond those of the baseline"),
    ],
)
def test_new_ones_that_are_severe_enough_block(
    now: list[list[float]], before: list[list[float]], guard: float, blocked: list[int]
) -> None:
    run = rated({("asha", 0): now}, reply=OTHER)
    result = judge(run, rated({("asha", 0): before}, "before"), severity_guard=guard)
    assert (result.verdict == "blocked", [turn.turn for turn in result.severe]) == (bool(blocked), blocked)


def test_off_asks_for_none() -> None:
    result = judge(rated({("asha", 0): [[5]]}), rated({("asha", 0): [[]]}, "before"), severity_guard=None)
    assert (result.verdict, checks_of(result, "severe")) == ("passed", [])


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
        "the chatbot did not change there, so this does not block."
    ) in result.warnings


def test_all_severe_ones_are_new_in_a_conversation_that_the_baseline_does_not_have() -> None:
    result = judge(
        rated({("asha", 0): [[]], ("asha", 1): [[], [5, 2]]}), rated({("asha", 0): [[]]}, "before")
    )
    assert result.verdict == "blocked"
    assert [(turn.seed, turn.turn, turn.conversation_before) for turn in result.severe] == [(1, 1, "")]


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
        ({"min_answered": 90.0}, "--min-answered 90: give a share from 0 to 1, such as 0.9."),
    ],
)
def test_numbers_that_mean_nothing_are_refused(rules: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        GateRules(**rules)  # type: ignore[arg-type]
    assert str(refused.value) == message


def with_a_failed_one(run: RunSummary) -> RunSummary:
    """The run, in which the last conversation ended with an error before its first reply."""
    *others, last = run.conversations
    failed = last.model_copy(update={"failed": True, "turns": ()})
    return run.model_copy(update={"conversations": (*others, failed)})


def test_a_conversation_that_failed_lacks_a_reply() -> None:
    [totals] = count_totals(with_a_failed_one(run_of(2, None, 1, 0))).values()
    assert (totals.failed, totals.turns, totals.scored) == (1, 3, 2)
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
    assert "bot: 1 conversation of the baseline missing in the run." in result.warnings
