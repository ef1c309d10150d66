"""Gamma of two annotators: alignment, disorder, chance, and where it is not defined."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from hallulab.simulator.statistics.agreement import MarkedUnit, SpanAgreement, compute_disorder, compute_gamma

Places = Sequence[tuple[int, int, int]]


def mark(*places: tuple[int, int, int]) -> list[MarkedUnit]:
    return [MarkedUnit(*place) for place in places]


# Disorders of the best alignment by pygamma-agreement 0.5.9, which reckons with single precision:
# CombinedCategoricalDissimilarity(alpha=1, beta=1, delta_empty=1, cat_dissim=OrdinalCategoricalDissimilarity(
# ["1", "2", "3", "4", "5"])), Continuum.get_best_alignment(...).disorder. The expected ones are the mean of
# 1500 continua of its ShuffleContinuumSampler, aligned likewise; their standard error is below 0.008.
ONE: tuple[Places, Places] = (((0, 10, 3), (20, 30, 4), (50, 58, 1)), ((2, 11, 3), (22, 40, 5)))
TWO: tuple[Places, Places] = (
    ((0, 17, 4), (30, 35, 2), (36, 80, 5), (90, 91, 1)),
    ((0, 17, 4), (31, 60, 2), (58, 82, 3), (89, 99, 1), (120, 130, 5)),
)
THREE: tuple[Places, Places] = (
    ((5, 9, 2), (7, 25, 5), (26, 40, 3)),
    ((6, 30, 4), (8, 24, 1), (41, 55, 3), (60, 61, 2)),
)


@pytest.mark.parametrize(
    ("pair", "disorder"), [(ONE, 0.5834416747), (TWO, 0.6397253871), (THREE, 0.9938192367)]
)
def test_the_disorder_of_the_best_alignment_is_that_of_pygamma(
    pair: tuple[Places, Places], disorder: float
) -> None:
    one, two = pair
    assert compute_disorder([mark(*one)], [mark(*two)]) == pytest.approx(disorder, abs=1e-6)


@pytest.mark.parametrize(
    ("pair", "length", "observed", "expected"),
    [(ONE, 58, 0.5834416747, 1.1329), (TWO, 130, 0.6397253871, 1.1455), (THREE, 61, 0.9938192367, 1.1012)],
)
def test_the_expected_disorder_is_that_of_pygammas_shuffling(
    pair: tuple[Places, Places], length: int, observed: float, expected: float
) -> None:
    # A second reply of one character makes two turns of it, and hardly changes the continuum.
    one, two = ([mark(*places), []] for places in pair)
    found = compute_gamma(one, two, [length - 1, 1]).gamma
    assert found is not None
    assert observed / (1 - found) == pytest.approx(expected, rel=0.03)


def test_places_of_different_replies_are_not_aligned() -> None:
    one, two = mark((0, 10, 3)), mark((0, 10, 3))
    assert compute_disorder([one, []], [two, []]) == 0.0
    assert compute_disorder([one, []], [[], two]) == 2.0


def test_a_severity_apart_costs_its_share_of_the_scale() -> None:
    assert compute_disorder([mark((0, 10, 1))], [mark((0, 10, 5))]) == 1.0
    assert compute_disorder([mark((0, 10, 3))], [mark((0, 10, 4))]) == 0.25


def test_units_that_cost_more_together_are_left_alone() -> None:
    assert compute_disorder([mark((0, 10, 3))], [mark((200, 210, 3))]) == 2.0


def test_equal_places_agree_fully() -> None:
    marks = [mark((0, 10, 3)), [], mark((5, 9, 1), (20, 30, 5))]
    assert compute_gamma(marks, marks, [40, 40, 40]) == SpanAgreement(6, 1.0)


def test_places_by_chance_give_about_0_and_worse_ones_less() -> None:
    # The places of the second are those of the first, moved by about a third of all replies: a shift itself.
    one = [mark((at, at + 8, 3)) for at in (0, 10, 20, 5, 30, 12, 22, 1, 33)]
    shifted = compute_gamma(one, [*one[3:], *one[:3]], [50] * 9).gamma
    apart = compute_gamma(one, [mark((u.start + 12, u.end + 12, 3)) for [u] in one], [50] * 9).gamma
    assert shifted == pytest.approx(0.0, abs=0.3)
    assert apart is not None
    assert apart < -0.2


def test_equal_seeds_give_equal_numbers() -> None:
    one, two = [mark(*ONE[0]), []], [mark(*ONE[1]), []]
    assert compute_gamma(one, two, [60, 60], seed=3) == compute_gamma(one, two, [60, 60], seed=3)
    assert compute_gamma(one, two, [60, 60], seed=3) != compute_gamma(one, two, [60, 60], seed=4)


@pytest.mark.parametrize(
    ("one", "two", "units", "reason"),
    [
        ([mark((0, 1, 1))], [mark((0, 1, 1))], 2, "fewer than 2 turns are labelled by both"),
        ([], [], 0, "fewer than 2 turns are labelled by both"),
        ([[], []], [[], []], 0, "nobody marked a place"),
        ([mark((0, 1, 1)), []], [[], []], 1, "one of them marked no place"),
        ([mark((0, 1, 1)), mark((0, 1, 1))], [mark((0, 1, 1)), mark((0, 1, 1))], 4, "agree just as well"),
    ],
)
def test_where_it_is_not_defined_a_reason_is_told(
    one: list[list[MarkedUnit]], two: list[list[MarkedUnit]], units: int, reason: str
) -> None:
    found = compute_gamma(one, two, [1] * len(one))
    assert (found.units, found.gamma) == (units, None)
    assert reason in (found.undefined or "")


def test_the_best_alignment_saves_as_much_as_that_of_all_pairs() -> None:
    draw = random.Random(5)
    for _ in range(300):
        one, two = (
            mark(
                *(
                    (start, start + 1 + draw.randrange(draw.choice([2, 10, 90])), 1 + draw.randrange(5))
                    for start in draw.choices(range(60), k=draw.randrange(1, 9))
                )
            )
            for _ in range(2)
        )
        place = [
            [
                ((abs(a.start - b.start) + abs(a.end - b.end)) / (a.end - a.start + b.end - b.start)) ** 2
                for b in two
            ]
            for a in one
        ]
        kind = [[abs(a.severity - b.severity) / 4 for b in two] for a in one]
        saved = np.maximum(2 - np.array(place) - np.array(kind), 0)
        best = saved[linear_sum_assignment(saved, maximize=True)].sum()
        units = len(one) + len(two)
        assert compute_disorder([one], [two]) == pytest.approx((units - best) / (units / 2), abs=1e-12)


def test_a_chain_of_units_that_touch_is_aligned_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = ([mark(*((at + by, at + by + 9, 3) for at in range(0, 90, 5)))] for by in (0, 2))
    whole = compute_disorder(one, two)
    monkeypatch.setattr("hallulab.simulator.statistics.agreement.AT_ONCE", 1)
    assert compute_disorder(one, two) == whole == pytest.approx((4 / 18) ** 2)
