"""What is counted of users' messages."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.simulator.metrics.messages import (
    Messages,
    compute_facts_given,
    compute_self_bleu,
    compute_sentence_bleu,
    count_questions,
    is_only_pronouns,
    measure_parts,
)

FACTS = ("She lives in Agartala, West Tripura", "The mixer cost Rs 4,850", "Her phone is 55501 20114")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("Thank you.", 0),
        ("how is it created", 1),
        ("How is it created?", 1),
        ("My bus was late. Who pays? And when?", 2),
        ("My bus was late, who pays?", 1),
        ("I do not know what to do.", 0),
    ],
)
def test_questions_have_a_mark_or_begin_with_a_word_that_asks(text: str, count: int) -> None:
    assert count_questions(text) == count


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("How is it created?", True),
        ("Are those the only steps?", True),
        ("When was that?", True),
        ("How is an intent created?", False),
        ("I know that intents are created", False),
        ("How long does it take to file a complaint?", False),
        ("", False),
    ],
)
def test_messages_by_pronoun_only(text: str, found: bool) -> None:
    assert is_only_pronouns(text) is found


def test_a_fact_is_given_with_half_of_its_content_words() -> None:
    assert compute_facts_given("My mixer for Rs 4850 burnt out. I live in Agartala.", FACTS) == pytest.approx(
        2 / 3
    )
    assert compute_facts_given("My mixer burnt out.", FACTS) == 0.0


def test_without_facts_their_share_is_not_known() -> None:
    assert compute_facts_given("My mixer burnt out.", ()) is None
    assert Messages(("s", "p", 0), ("Hello",)).counts["facts_given"] == ()


def test_each_message_has_a_number() -> None:
    said = (
        "My mixer burnt out, who pays?",
        "Thanks. How can I help you?",
        "That\N{RIGHT SINGLE QUOTATION MARK}s all, bye",
    )
    counts = Messages(("s", "p", 0), said, FACTS).counts
    assert counts == {
        "first_words": (6.0,),
        "follow_up_words": (6.0, 3.0),
        "questions": (1.0, 1.0, 0.0),
        "facts_given": (0.0,),
        "pronoun_only": (0.0, 0.0),
        "thanks": (0.0, 1.0, 0.0),
        "endings": (0.0, 0.0, 1.0),
        "assistants_part": (0.0, 1.0, 0.0),
    }


def test_a_conversation_without_messages_has_no_numbers() -> None:
    assert set(Messages(("s", "p", 0), (), FACTS).counts.values()) == {()}


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
