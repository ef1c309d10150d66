"""Agreement of detectors: published examples, missing ratings, and what is not defined."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from hallulab.simulator.metrics.agreement import DetectorAgreement, PairAgreement, describe_agreement
from hallulab.simulator.statistics.agreement import compute_cohens_kappa, compute_krippendorffs_alpha
from tests.builders import conversation, scored, unscored
from tests.simulator.counted import result


def ratings(row: str) -> list[str | None]:
    return [None if mark == "." else mark for mark in row]


def test_alpha_of_krippendorffs_binary_example() -> None:
    # Krippendorff, "Computing Krippendorff's Alpha-Reliability", section A: two observers, alpha 0.095.
    assert compute_krippendorffs_alpha([ratings("0100000010"), ratings("1110010000")]) == pytest.approx(
        0.0952381
    )


def test_alpha_of_krippendorffs_example_with_missing_data() -> None:
    # The same, section C: four observers, twelve units, missing values, alpha 0.743.
    rows = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")
    assert compute_krippendorffs_alpha([ratings(row) for row in rows]) == pytest.approx(0.743, abs=5e-4)


def test_kappa_by_hand() -> None:
    # 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: observed 0.7, by chance 0.5.
    first = [True] * 25 + [False] * 25
    second = [True] * 20 + [False] * 5 + [True] * 10 + [False] * 15
    assert compute_cohens_kappa(first, second) == pytest.approx(0.4)


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_kappa_agrees_with_scikit_learn(pairs: list[tuple[bool, bool]]) -> None:
    first, second = [x for x, _ in pairs], [y for _, y in pairs]
    found = compute_cohens_kappa(first, second)
    if found is None:
        assert len({*first, *second}) == 1
    else:
        assert found == pytest.approx(cohen_kappa_score(first, second))


def test_ratings_that_are_all_the_same_have_neither() -> None:
    assert compute_krippendorffs_alpha([[True, True], [True, True]]) is None
    assert compute_cohens_kappa([True, True], [True, True]) is None


def test_units_with_one_rating_count_nowhere() -> None:
    lonely = [[True, False, True, None], [True, False, None, False]]
    assert (
        compute_krippendorffs_alpha(lonely)
        == compute_krippendorffs_alpha([[True, False], [True, False]])
        == 1.0
    )
    assert compute_cohens_kappa(*lonely) == 1.0


def test_failures_and_abstentions_are_no_ratings() -> None:
    verdicts = [
        scored("c", 0, [(0, 1)], detector="a"),
        scored("c", 0, [(0, 1)], detector="b"),
        scored("c", 1, [], detector="a"),
        unscored("c", 1, detector="b"),
        scored("c", 2, [], detector="a"),
        scored("c", 2, [(0, 1)], detector="b"),
    ]
    chat = conversation("c", ["x", "y", "z"])
    found = result(DetectorAgreement, [chat], verdicts, ["vanilla"], ["a", "b", "c"]).agreement
    assert found.turns == 2
    assert found.alpha == 0.0
    assert found.pairs == (
        PairAgreement(a="a", b="b", turns=2, agreement=0.5, kappa=0.0, kappa_ci95=None),
        PairAgreement(a="a", b="c", turns=0, agreement=None, kappa=None, kappa_ci95=None),
        PairAgreement(a="b", b="c", turns=0, agreement=None, kappa=None, kappa_ci95=None),
    )


def test_the_interval_of_kappa_is_over_personas() -> None:
    # Each persona has the same table: agreement 0.5, kappa 0; Cohen's error √(0.5 · 0.5 / 24) / 0.5.
    flags = [(True, True), (True, False), (False, True), (False, False)]
    chats = [conversation(f"c{number}", ["x"] * 4, persona=f"p{number}") for number in range(6)]
    verdicts = [
        scored(chat.id, turn, [(0, 1)] * flagged, detector=name)
        for chat in chats
        for turn, pair in enumerate(flags)
        for name, flagged in zip("ab", pair, strict=True)
    ]
    found = result(DetectorAgreement, chats, verdicts, ["vanilla"], ["a", "b"]).agreement
    [pair] = found.pairs
    half = math.tanh(2.570582 * (1 / 24) ** 0.5)
    assert (pair.turns, pair.kappa) == (24, 0.0)
    assert pair.kappa_ci95 == pytest.approx((-half, half), abs=1e-6)
    assert describe_agreement(found) == ["agreement of a and b: 50% of 24 turns, kappa 0.00 [-0.48, 0.48]."]
