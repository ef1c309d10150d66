"""A confidence sequence is what its laws say."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.statistics.intervals import Ratio
from hallulab.simulator.statistics.mean_sequence import (
    CEILING,
    MEANS,
    STAKES,
    MeanSequence,
    compute_bar,
    compute_capital,
    compute_growth,
)
from hallulab.simulator.statistics.sequence import Decider, SequenceState, describe_decision, find_worse

DIFFERENCES = st.lists(st.sampled_from([i / 12 for i in range(-36, 37)]), max_size=40)


def follow(differences: list[float], level: float = 0.05) -> list[tuple[float, float]]:
    sequence = MeanSequence(level)
    found = [(sequence.low, sequence.high)]
    for difference in differences:
        sequence.add(difference)
        found.append((sequence.low, sequence.high))
    return found


def test_it_begins_with_the_bounds() -> None:
    assert follow([]) == [(-CEILING, CEILING)]


def test_intervals_of_a_constant() -> None:
    assert follow([0.5] * 100)[10::30] == [(-0.75, 1.39), (0.13, 0.77), (0.28, 0.66), (0.34, 0.61)]


@pytest.mark.parametrize(("difference", "persons"), [(1.0, 16), (0.5, 29), (0.3, 47)])
def test_a_constant_difference_takes_so_many_persons(difference: float, persons: int) -> None:
    assert [low >= 0 for low, _ in follow([difference] * persons)[-2:]] == [False, True]


def test_no_difference_at_all_takes_65_persons_to_be_below_the_margin() -> None:
    assert [high <= 0.2 for _, high in follow([0.0] * 65)[-2:]] == [False, True]


@given(DIFFERENCES)
@settings(max_examples=30, deadline=None)
def test_each_interval_is_inside_those_before_it(differences: list[float]) -> None:
    found = follow(differences)

    assert all(before[0] <= after[0] and after[1] <= before[1] for before, after in pairwise(found))


@given(DIFFERENCES)
@settings(max_examples=30, deadline=None)
def test_exchanging_both_chatbots_mirrors_it(differences: list[float]) -> None:
    mirrored = [(-high, -low) for low, high in follow([-one for one in differences])]

    assert mirrored == follow(differences)


@given(DIFFERENCES, st.sampled_from([0.01, 0.02, 0.05, 0.2]))
@settings(max_examples=30, deadline=None)
def test_a_smaller_level_makes_it_no_narrower(differences: list[float], level: float) -> None:
    narrow, wide = follow(differences, 0.2)[-1], follow(differences, level)[-1]

    assert wide[0] <= narrow[0]
    assert narrow[1] <= wide[1]


@given(st.floats(-1, 1), st.floats(0.01, 0.9))
def test_no_stake_gains_by_a_fair_difference(mean: float, size: float) -> None:
    """Two equally likely differences about the mean leave the capital as it was, on average."""
    gains = np.exp(compute_growth(np.array([mean - size, mean + size]), np.array(mean)))

    assert gains.mean(axis=0) == pytest.approx(np.ones(len(STAKES)))


def test_capital_is_the_mean_over_stakes() -> None:
    assert compute_capital(np.log([[1.0, 3.0]])).tolist() == pytest.approx([math.log(2)])


def test_a_mean_is_excluded_by_forty_times_the_capital() -> None:
    assert compute_bar(0.05) == pytest.approx(math.log(40))


def test_means_are_symmetric_and_have_zero_and_the_margin() -> None:
    assert (-MEANS[::-1]).tolist() == MEANS.tolist()
    assert {0.0, 0.2, -0.2} <= set(MEANS.tolist())


@pytest.mark.parametrize("difference", [3.01, -3.01, float("nan")])
def test_a_difference_is_within_the_bounds(difference: float) -> None:
    with pytest.raises(ValueError, match="is outside of ±3"):
        MeanSequence(0.05).add(difference)


def decide(persons: int, rates: dict[str, float]) -> SequenceState:
    decider = Decider(list(rates))
    for number in range(persons):
        decider.add(str(number), rates)
    return decider.end_batch()


def test_one_that_is_better_than_all_others_is_best() -> None:
    decision = decide(60, {"a": 1.0, "b": 0.25, "c": 1.0})

    assert (decision.kind, decision.best, decision.worse) == ("best", "b", ("a", "c"))
    assert describe_decision(decision) == (
        "b hallucinates least: it is better than every other chatbot, after 60 personas (at most 5% of such "
        "runs decide wrongly; HPT of a persona above 3 counts as 3)."
    )


def test_one_that_answers_less_is_never_better() -> None:
    decider = Decider(["silent", "honest"])
    for number in range(60):
        answered = {"silent": Ratio(0, 2), "honest": Ratio(2, 2)}
        decider.add(str(number), {"silent": 0.0, "honest": 1.0}, answered)
    decision = decider.end_batch()
    [pair] = decision.pairs
    assert pair.high <= 0
    assert (pair.better, pair.a_answered, pair.b_answered) == (None, 0.0, 1.0)
    assert (decision.kind, decision.worse, decider.next_chatbots) == ("open", (), ("silent", "honest"))


def test_one_that_answers_less_may_be_worse() -> None:
    decider = Decider(["silent", "honest"])
    for number in range(60):
        decider.add(
            str(number), {"silent": 1.0, "honest": 0.0}, {"silent": Ratio(0, 1), "honest": Ratio(1, 1)}
        )
    assert decider.end_batch().best == "honest"


def test_equal_ones_are_alike_once_the_intervals_are_inside_the_margin() -> None:
    decision = decide(200, {"a": 0.5, "b": 0.5})

    assert (decision.kind, decision.alike, decision.best) == ("alike", ("a", "b"), None)
    assert describe_decision(decision) == (
        "a and b are alike: they differ by less than 0.2 a turn, after 200 personas (at most 5% of such runs "
        "decide wrongly; HPT of a persona above 3 counts as 3)."
    )


def test_those_left_may_be_alike_when_another_is_worse() -> None:
    decision = decide(200, {"a": 0.5, "b": 1.5, "c": 0.5})

    assert (decision.kind, decision.alike, decision.worse) == ("alike", ("a", "c"), ("b",))


def test_few_persons_decide_nothing() -> None:
    decision = decide(10, {"a": 0.5, "b": 1.0})

    assert (decision.kind, decision.best, decision.worse, decision.alike) == ("open", None, (), ())
    assert describe_decision(decision) == (
        "It is still open which chatbot hallucinates least, after 10 personas."
    )


def test_a_pair_takes_only_persons_that_both_have() -> None:
    decider = Decider(["a", "b", "c"])
    decider.add("asha", {"a": 0.5, "b": None, "c": 1.0})
    decider.add("bela", {"a": 0.5, "b": 1.0})

    state = decider.state()

    assert [(pair.a, pair.b, pair.persons, pair.difference) for pair in state.pairs] == [
        ("a", "b", 1, -0.5),
        ("a", "c", 1, -0.5),
        ("b", "c", 0, None),
    ]
    assert state.asked == {"a": 2, "b": 2, "c": 1}
    assert state.scored == {"a": 2, "b": 1, "c": 1}
    assert state.persons == 2


def test_an_hpt_above_the_ceiling_counts_as_the_ceiling_and_is_told() -> None:
    decision = decide(1, {"a": 3.5, "b": 0.5})

    assert decision.pairs[0].difference == 2.5
    assert decision.clipped == {"a": 1, "b": 0}


def test_clearly_worse_ones_are_not_asked_again_unless_all_are_kept() -> None:
    rates = {"a": 0.5, "b": 0.5, "c": 2.0}
    asked = []
    for keep_all in (False, True):
        decider = Decider(list(rates), keep_all=keep_all)
        for number in range(40):
            decider.add(str(number), rates)
        assert decider.state().worse == ("c",)
        asked.append(decider.next_chatbots)

    assert asked == [("a", "b"), ("a", "b", "c")]


def test_steps_are_what_was_known_after_each_batch() -> None:
    decider = Decider(["a", "b"])
    for number in range(60):
        decider.add(str(number), {"a": 0.5, "b": 1.0})
        if number % 20 == 19:
            decision = decider.end_batch()

    assert [(step.persons, step.pairs[0].high, step.worse) for step in decision.steps] == [
        (20, 0.2, ()),
        (40, -0.13, ("b",)),
        (60, -0.24, ("b",)),
    ]


def test_a_decision_survives_json() -> None:
    decision = decide(30, {"a": 0.5, "b": 1.0})

    assert SequenceState.model_validate_json(decision.model_dump_json()) == decision


def test_one_that_is_only_worse_than_some_leaders_is_not_worse() -> None:
    a_beats_c = np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]], dtype=np.bool_)
    both_beat_c = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]], dtype=np.bool_)

    assert find_worse(np.array([a_beats_c, both_beat_c])).tolist() == [[False] * 3, [False, False, True]]


def test_one_that_is_worse_than_the_only_leader_is_worse() -> None:
    a_beats_both = np.array([[0, 1, 1], [0, 0, 0], [0, 0, 0]], dtype=np.bool_)

    assert find_worse(a_beats_both).tolist() == [False, True, True]


@given(
    st.permutations(["a", "b", "c"]),
    st.lists(st.tuples(*[st.sampled_from([0.0, 0.5, 1.0, 2.0])] * 3), min_size=1, max_size=3),
)
@settings(max_examples=5, deadline=None)
def test_the_order_of_chatbots_decides_nothing(names: list[str], kinds: list[tuple[float, ...]]) -> None:
    found = []
    for chatbots in (["a", "b", "c"], names):
        decider = Decider(chatbots)
        for number in range(45):
            rates = dict(zip("abc", kinds[number % len(kinds)], strict=True))
            decider.add(str(number), {name: rates[name] for name in chatbots})
        decision = decider.state()
        found.append((decision.kind, decision.best, set(decision.alike), set(decision.worse)))

    assert found[0] == found[1]


def test_findings_in_a_circle_make_nobody_worse() -> None:
    circle = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=np.bool_)

    assert find_worse(circle).tolist() == [False, False, False]


def test_a_person_counts_once() -> None:
    decider = Decider(["a", "b"])
    decider.add("asha", {"a": 0.5, "b": 0.5})

    with pytest.raises(ValueError, match="person 'asha' was taken already"):
        decider.add("asha", {"a": 0.5, "b": 0.5})


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ({"a": 0.5, "z": 0.5}, "unknown chatbots: z"),
        ({"a": -0.5, "b": float("nan")}, "HPT of a and b with 'asha' is no number from 0"),
    ],
)
def test_wrong_rates_are_refused(rates: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Decider(["a", "b"]).add("asha", rates)


@pytest.mark.parametrize("chatbots", [[], ["a"], ["a", "a"]])
def test_two_chatbots_are_needed(chatbots: list[str]) -> None:
    with pytest.raises(UsageError, match="only two chatbots or more"):
        Decider(chatbots)


@pytest.mark.parametrize("margin", [0.0, 3.0, float("nan")])
def test_a_margin_is_between_nothing_and_the_ceiling(margin: float) -> None:
    with pytest.raises(UsageError, match="is not between 0 and 3 hallucinations a turn"):
        Decider(["a", "b"], margin=margin)
