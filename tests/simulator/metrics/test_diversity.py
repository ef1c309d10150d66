"""How much messages differ from each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.simulator.metrics.diversity import compute_self_bleu, compute_sentence_bleu, measure_parts

VECTORS = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])


def ratio(texts: list[str], name: str, size: int = 9) -> float:
    over, under = measure_parts(texts, VECTORS[: len(texts)], size)[name].sum(axis=0)
    return float(over / under)


def test_distinct_is_different_words_over_words() -> None:
    texts = ["a b a", "A c"]
    assert ratio(texts, "distinct_1") == pytest.approx(3 / 5)
    assert ratio(texts, "distinct_2") == 1.0
    assert ratio(["a b", "a b"], "distinct_2") == 0.5


def test_messages_above_the_cosine_are_near_duplicates_of_each_other() -> None:
    assert measure_parts(["x", "y", "z"], VECTORS, 3)["near_duplicates"].tolist() == [[1, 1], [1, 1], [0, 1]]


def test_without_vectors_near_duplicates_are_not_measured() -> None:
    assert "near_duplicates" not in measure_parts(["x", "y"], None, 2)


def test_equal_messages_have_self_bleu_1_and_strangers_0() -> None:
    assert compute_self_bleu([["a", "b"], ["a", "b"], ["c"]]) == [1.0, 1.0, 0.0]


def test_sentence_bleu_by_hand() -> None:
    """Runs of two are 0 + 1 of 2 + 1, so the product is 2/3 · 1/3; there are no longer runs than 3 words."""
    expected = (2 / 3 * 1 / 3 * 1 / 2) ** (1 / 3)
    assert compute_sentence_bleu([(2, 3), (0, 2), (0, 1), (0, 0)], 3, [3]) == pytest.approx(expected)
    assert compute_sentence_bleu([(3, 3), (2, 2), (1, 1), (0, 0)], 3, [6]) == pytest.approx(math.exp(-1))


def test_a_word_counts_as_often_as_another_message_has_it() -> None:
    first, _ = compute_self_bleu([["a", "a"], ["a", "b"]])
    assert first == pytest.approx(math.sqrt(1 / 2 * 1 / 2))


def test_more_messages_than_a_sample_are_drawn_again_and_again() -> None:
    held = measure_parts(["a b", "a c", "a d"], VECTORS, 2)["self_bleu"]
    assert held[:, 1].sum() == 20
    assert (held == measure_parts(["a b", "a c", "a d"], VECTORS, 2)["self_bleu"]).all()


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=6), min_size=2, max_size=5))
def test_self_bleu_is_a_share(sample: list[list[str]]) -> None:
    assert all(0 <= score <= 1 + 1e-12 for score in compute_self_bleu(sample))
