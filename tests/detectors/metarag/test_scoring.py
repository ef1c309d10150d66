"""Table 1 and equations 1 and 2 of MetaRAG."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.detectors.metarag.steps import (
    PENALTIES,
    Decision,
    Relation,
    compute_expected_penalty,
    score_factoid,
    score_response,
)

SHARES = st.floats(0.0, 1.0)


@pytest.mark.parametrize(
    ("relation", "decision", "penalty"),
    [
        ("synonym", "YES", 0.0),
        ("synonym", "NOT SURE", 0.5),
        ("synonym", "NO", 1.0),
        ("antonym", "YES", 1.0),
        ("antonym", "NOT SURE", 0.5),
        ("antonym", "NO", 0.0),
    ],
)
def test_penalties_are_those_of_table_1(relation: Relation, decision: Decision, penalty: float) -> None:
    assert PENALTIES[relation][decision] == penalty
    assert compute_expected_penalty(relation, {decision: 1.0}) == penalty


def test_equation_1_is_the_mean_over_both_relations() -> None:
    assert score_factoid([0.0, 0.5], [1.0, 0.5]) == 0.5
    assert score_factoid([1.0], [0.0]) == 0.5


@pytest.mark.parametrize(("synonyms", "antonyms"), [([], []), ([0.5], [])])
def test_equation_1_needs_n_variants_of_each_kind(synonyms: list[float], antonyms: list[float]) -> None:
    with pytest.raises(ValueError, match="N of each"):
        score_factoid(synonyms, antonyms)


def test_equation_2_is_the_maximum() -> None:
    assert score_response([0.2, 0.7, 0.4]) == 0.7


def test_an_expected_penalty_weighs_the_decisions() -> None:
    decisions: dict[Decision, float] = {"YES": 0.5, "NO": 0.25, "NOT SURE": 0.25}
    assert compute_expected_penalty("synonym", decisions) == 0.375
    assert compute_expected_penalty("antonym", decisions) == 0.625


@given(SHARES, SHARES)
def test_penalties_of_both_kinds_complement(s: float, c: float) -> None:
    decisions: dict[Decision, float] = {"YES": s, "NO": (1 - s) * c, "NOT SURE": (1 - s) * (1 - c)}
    both = compute_expected_penalty("synonym", decisions) + compute_expected_penalty("antonym", decisions)
    assert both == pytest.approx(1.0)
