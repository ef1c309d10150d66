"""Whether a run may pass: worse beyond the noise, by the paired test and Holm."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.compare.gated import checks_of, judge, run_of
from tests.simulator.compare.made import found


def test_a_run_passes_against_itself() -> None:
    run = run_of(1, 0, 2, 0, 1, 3)
    result = judge(run, run)
    assert (result.verdict, result.exit_code) == ("passed", 0)
    assert [(line.difference, line.p_worse) for line in result.lines] == [(0.0, 1.0)]
    assert result.headline == "Passed: now against the baseline now."


def test_six_personas_that_all_get_worse_are_the_fewest_that_block() -> None:
    result = judge(run_of(*[1] * 6), run_of(*[0] * 6, name="before"))
    assert (result.verdict, result.exit_code) == ("blocked", 1)
    [line] = result.lines
    assert (line.personas, line.personas_needed, line.p_worse) == (6, 6, 1 / 64)
    assert [(check.subject, check.message) for check in result.blocking] == [
        ("bot by d", "HPT-1 0.00 → 1.00 on 6 personas, p = 0.016; below 0.025 blocks")
    ]


def test_a_run_that_is_better_passes() -> None:
    result = judge(run_of(*[0] * 6), run_of(*[1] * 6, name="before"))
    assert (result.verdict, result.lines[0].p_worse) == ("passed", 1.0)


def test_one_of_six_personas_that_gets_better_is_noise() -> None:
    result = judge(run_of(0, 1, 1, 1, 1, 1), run_of(1, 0, 0, 0, 0, 0, name="before"))
    assert (result.verdict, result.lines[0].p_worse) == ("passed", 7 / 64)


def test_five_personas_pass_and_it_is_said_that_nothing_can_be_seen() -> None:
    result = judge(run_of(*[3] * 5, reply="two three"), run_of(*[0] * 5, name="before"))
    assert result.verdict == "passed"
    assert (
        result.headline == "Passed: now against the baseline before, but a regression could not be detected."
    )
    assert [check.outcome for check in checks_of(result, "worse")] == ["not tested"]
    assert result.warnings == (
        "not enough personas to detect a regression: 5 personas, 6 needed. "
        "Add personas and recreate the baseline.",
    )


def test_a_detector_without_counts_is_not_said_to_lack_personas() -> None:
    before, now = (
        found(
            {
                "bot": {(f"p{number}", 0): [0] for number in range(7)},
                "mute": {(f"p{number}", 0): [None] for number in range(7)},
            },
            name,
        )
        for name in ("before", "now")
    )
    warnings = [said for said in judge(now, before).warnings if "mute by d" in said]
    assert warnings[-1:] == [
        "HPT-1 is not compared of mute by d: no reply of the baseline was scored with the places of "
        "hallucinations. Let a detector judge that gives them, such as halludetect."
    ]


@pytest.mark.parametrize(("personas", "verdict"), [(6, "passed"), (7, "blocked")])
def test_two_lines_need_more_personas(personas: int, verdict: str) -> None:
    """Holm doubles the smaller p-value: 2/64 is no less than 0.025, 2/128 is."""
    users = [(f"p{number}", 0) for number in range(personas)]
    before = found({name: {user: [0] for user in users} for name in ("a", "b")}, "before")
    now = found({"a": {user: [1] for user in users}, "b": {user: [0] for user in users}}, "now")
    result = judge(now, before)
    assert result.verdict == verdict
    assert [line.personas_needed for line in result.lines] == [7, 7]


def test_seeds_of_a_persona_are_one_pair() -> None:
    seeds = [(f"p{number}", seed) for number in range(3) for seed in range(4)]
    before = found({"bot": {user: [0] for user in seeds}}, "before")
    now = found({"bot": {user: [1] for user in seeds}}, "now")
    result = judge(now, before)
    assert (result.verdict, result.lines[0].personas) == ("passed", 3)


def test_a_run_with_other_seeds_is_paired_by_persona() -> None:
    before = found({"bot": {(f"p{number}", 0): [0] for number in range(6)}}, "before")
    now = found({"bot": {(f"p{number}", 1): [1] for number in range(6)}}, "now")
    assert judge(now, before).verdict == "blocked"


def test_what_was_changed_is_told() -> None:
    before = run_of(0, name="before", documents={"fees": "1"}, models={"user": "m"})
    now = run_of(0, documents={"fees": "2"}, models={"user": "n"})
    assert judge(now, before).setup == ("document fees", "model user: m → n")


def test_new_hallucinations_stand_first_among_the_changed_turns() -> None:
    before, now = run_of(1, 0, 1, 3, name="before"), run_of(0, 1, 2, 1, reply="one three")
    changed = judge(now, before).changed
    assert [(turn.kind, turn.persona) for turn in changed] == [
        ("new", "p1"),
        ("gone", "p0"),
        ("worse", "p2"),
        ("better", "p3"),
    ]


@pytest.mark.parametrize(("worse", "blocked"), [(0.0, 1), (2.0, 10)])
def test_an_unchanged_bot_is_seldom_blocked_and_a_worse_one_always(worse: float, blocked: int) -> None:
    """Ten builds, by the paired test alone; docs/studies/gate.md has 200 of recorded conversations."""
    random = np.random.default_rng(0)
    verdicts = []
    for _ in range(10):
        rates = random.gamma(2, 1 / 2, 20)
        before, now = (random.poisson(rates + more).tolist() for more in (0.0, worse))
        verdicts.append(judge(run_of(*now), run_of(*before, name="before"), severity_guard=None).verdict)
    assert verdicts.count("blocked") == blocked
