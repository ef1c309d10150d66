from __future__ import annotations

from collections.abc import Sequence

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.compare.differences import DifferenceLine, compare_tallies, count_summary
from hallulab.simulator.compare.runs import compare_runs
from hallulab.simulator.metrics.comparisons import compare
from hallulab.simulator.metrics.run_sums import RunSums
from tests.simulator.compare.made import Found, found

SIX = [f"p{number}" for number in range(6)]


def each(personas: Sequence[str], count: int) -> Found:
    """So many hallucinations in one turn of each persona."""
    return {(one, 0): [count] for one in personas}


def line(before: Found, after: Found, metric: str = "hpt_1") -> DifferenceLine:
    """The line of one chatbot in two runs."""
    held = compare_runs([found({"bot": before}), found({"bot": after})]).runs[0].differences
    return next(one for one in held if one.metric == metric)


def test_a_persona_is_a_pair_with_its_shared_seeds_together() -> None:
    before = {("asha", 0): [1, 0], ("asha", 1): [0], ("ravi", 0): [0], ("ravi", 7): [3]}
    after = {("asha", 0): [2, 2], ("asha", 1): [1], ("ravi", 0): [1], ("ravi", 8): [5], ("meera", 0): [9]}
    made = line(before, after)
    # asha: 5 of 3 turns and 1 of 3; ravi: 1 of 1 and 0 of 1. Other seeds and meera do not enter.
    assert (made.after, made.before, made.difference) == (1.5, 0.25, 1.25)
    assert (made.personas, made.paired, made.same_seeds) == (2, True, True)
    assert made.p_value == 0.5


def test_without_shared_seeds_all_seeds_of_a_persona_stand_together() -> None:
    made = line({("asha", 0): [1], ("asha", 1): [0]}, {("asha", 5): [1], ("asha", 6): [1]})
    assert (made.before, made.after, made.paired, made.same_seeds) == (0.5, 1.0, True, False)


def test_answered_replies_are_compared_whether_scored_or_not_and_corrected_apart() -> None:
    declined = found({"bot": each(SIX, 0)}, "b", "I do not know.")
    failed = found({"bot": {(one, 0): [None] for one in SIX}})
    [hpt, tokacc, answered] = compare_runs([failed, declined]).runs[0].differences
    assert (hpt.difference, tokacc.difference) == (None, None)
    assert (answered.before, answered.after, answered.difference) == (1.0, 0.0, -1.0)
    assert answered.p_value == answered.p_holm == 2 / 64


def test_turns_that_a_detector_failed_on_do_not_enter() -> None:
    made = line({("asha", 0): [1, None], ("ravi", 0): [None]}, {("asha", 0): [0, 1], ("ravi", 0): [1]})
    assert (made.personas, made.before, made.after) == (1, 1.0, 0.5)
    assert made.p_value is None


def test_a_difference_that_is_the_same_with_every_pair_has_the_reason_in_place_of_an_interval() -> None:
    made = line(each(SIX, 0), each(SIX, 1))
    assert (made.difference, made.ci95, made.p_value) == (1.0, None, 0.03125)
    assert made.no_interval == "every persona has the same difference"


def test_six_pairs_have_an_interval_and_the_exact_p() -> None:
    made = line(each(SIX, 0), {(one, 0): [1 + (one > "p2")] for one in SIX})
    assert (made.difference, made.ci95, made.p_value) == (1.5, (0.9252, 2.0748), 0.03125)
    assert made.no_interval is None
    accuracy = line(each(SIX, 0), each(SIX, 1), "tokacc_1")
    assert (accuracy.before, accuracy.after, accuracy.difference) == (1.0, 0.5, -0.5)


def test_paired_lines_are_those_of_chatbots_in_one_run() -> None:
    """The same conversations as two chatbots of one run, and as one chatbot of two runs."""
    before: Found = {(one, 0): [number % 3, 0] for number, one in enumerate(SIX)}
    after: Found = {(one, 0): [1, number % 2] for number, one in enumerate(SIX)}
    one, other = found({"bot": before}, "one"), found({"bot": after}, "other")
    tallies = {
        ("after", "d"): count_summary(other, "d")["bot"],
        ("before", "d"): count_summary(one, "d")["bot"],
    }
    sums = RunSums(["after", "before"], ["d"])
    for persona in SIX:
        own = {key: [one for one in items if one.pairing[1] == persona] for key, items in tallies.items()}
        sums.add(("s", persona), own, frozenset())
    inside = compare(sums, ["after", "before"], ["d"])
    across = compare_tallies(count_summary(one, "d"), count_summary(other, "d"), ["bot"], "d")
    for expected, made in zip(inside, across, strict=True):
        assert made.metric == expected.metric
        assert (made.difference, made.ci95, made.p_value, made.personas) == (
            expected.difference,
            expected.ci95,
            expected.p_value,
            expected.pairs,
        )


def test_holm_covers_the_lines_of_all_chatbots_metrics_and_runs() -> None:
    before = found({bot: each(SIX, 0) for bot in ("a", "b")})
    after = found({"a": each(SIX, 1), "b": each(SIX, 0)})
    compared = compare_runs([before, after, before])
    assert compared.lines == 8
    lines = {(one.chatbot, one.metric): one for one in compared.runs[0].differences}
    assert (lines["a", "hpt_1"].p_value, lines["a", "hpt_1"].p_holm) == (0.03125, 0.25)
    assert (lines["b", "hpt_1"].p_value, lines["b", "hpt_1"].p_holm) == (1.0, 1.0)
    assert not lines["a", "hpt_1"].is_significant


def test_ten_personas_that_all_get_worse_are_told_apart() -> None:
    ten = [f"p{number}" for number in range(10)]
    made = line(each(ten, 0), each(ten, 1))
    assert made.p_holm == pytest.approx(2 * 2 / 2**10, abs=1e-6)
    assert (made.is_significant, made.worse) == (True, True)
    back = line(each(ten, 1), each(ten, 0))
    assert (back.is_significant, back.worse) == (True, False)
    assert line(each(ten, 0), each(ten, 1), "tokacc_1").worse


def test_the_noise_floor_is_the_mean_of_the_runs_that_have_several_seeds() -> None:
    several = {("asha", 0): [2], ("asha", 1): [0], ("ravi", 0): [2], ("ravi", 1): [0]}
    single = {("asha", 0): [2], ("ravi", 0): [1]}
    assert line(several, single).floor == 2.0
    assert line(single, single).floor is None
    assert line(several, {**several, ("asha", 0): [1], ("ravi", 0): [1]}).floor == 1.5


def test_other_personas_are_compared_unpaired_if_only_so_there_are_enough() -> None:
    others = [f"q{number}" for number in range(6)]
    made = line(each(SIX, 0), {(one, 0): [1] for one in [*others, "p0"]})
    assert (made.paired, made.personas, made.difference, made.ci95) == (False, 6, 1.0, None)
    assert made.no_interval == ("every persona of a run has the same number")
    assert made.p_value == pytest.approx(1 / 1716, abs=1e-6)
    few = line({("p0", 0): [0], ("p1", 0): [0]}, {("p0", 0): [1], ("q1", 0): [0]})
    assert (few.paired, few.personas, few.difference) == (True, 1, 1.0)


def test_two_conversations_of_one_user_cannot_be_paired() -> None:
    run = found({"bot": {("asha", 0): [1]}})
    twice = run.model_copy(update={"conversations": run.conversations * 2})
    with pytest.raises(UsageError, match="share persona asha, seed 0"):
        compare_runs([run, twice])
