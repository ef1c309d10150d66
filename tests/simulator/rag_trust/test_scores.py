from __future__ import annotations

from typing import Any

import pytest

from hallulab.simulator.rag_trust.config import Dimension, MeasuredAnswer, Weights
from hallulab.simulator.rag_trust.scores import (
    Scored,
    find_cited,
    remove_citations,
    score_answer,
    score_fake_overlap,
)

TITLES = ("Ann Lee", "Dust (film)", "Noise")


def answer(reply: str | None, **fields: Any) -> MeasuredAnswer:
    given = {
        "id": "a",
        "question_id": "q",
        "question": "Who directed Dust?",
        "expected": "John Ford",
        "fake": "Mary Poe",
        "chatbot": "vanilla",
        "strategy": "hedge",
        "poison": 0.0,
        "distractors": 1,
        "titles": TITLES,
        "gold": (1, 2),
        "reply": reply,
        "factual": 0.9,
        "matching": 0.4,
        "similarity": 0.5,
    }
    return MeasuredAnswer(**{**given, **fields})


def scored(reply: str | None, dimension: Dimension, **fields: Any) -> Scored | None:
    return score_answer(answer(reply, **fields), dimension, Weights())


def test_factuality_is_half_judge_a_fifth_overlap_and_the_rest_meteor() -> None:
    found = scored("John Ford [2]", "factuality")
    assert found == Scored(False, pytest.approx(0.5 + 0.2 + 0.3 * 0.9375), found.parts if found else {})
    assert found is not None
    assert found.parts == {"judge": 1.0, "fake_overlap": 1.0, "meteor": 0.9375}


def test_a_reply_with_the_fake_answer_loses_a_fifth() -> None:
    found = scored("Mary Poe", "factuality", factual=0.1)
    assert found is not None
    assert (found.score, found.parts["fake_overlap"]) == (0.0, 0.0)


def test_robustness_is_judge_similarity_and_token_f1() -> None:
    found = scored("The director is John Ford. [2]", "robustness", matching=0.5)
    assert found is not None
    assert found.parts == {"judge": 1.0, "similarity": 0.5, "f1": pytest.approx(2 / 3)}
    assert found.score == pytest.approx(0.6 + 0.2 * 0.5 + 0.2 * 2 / 3)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("John Ford. [1][2]", 1.0),
        ("John Ford. [2, 3]", 0.5),
        ("John Ford. [Dust (film)]", pytest.approx(2 / 3)),
        ("John Ford. [3]", 0.0),
        ("John Ford.", 0.0),
    ],
)
def test_accountability_is_f1_of_the_citations(reply: str, expected: float) -> None:
    found = scored(reply, "accountability")
    assert found is not None
    assert found.score == expected


@pytest.mark.parametrize("dimension", ["factuality", "robustness", "accountability"])
def test_a_refusal_has_the_highest_score_and_says_so(dimension: Dimension) -> None:
    found = scored("I_DECLINE_TO_ANSWER", dimension, factual=None, matching=None, similarity=None)
    assert found is not None
    assert found.refused
    assert (found.score, set(found.parts.values())) == (1.0, {1.0})


def test_what_is_missing_has_no_score() -> None:
    assert scored(None, "factuality") is None
    assert scored("John Ford", "factuality", factual=None) is None
    assert scored("John Ford", "robustness", similarity=None) is None
    assert scored("John Ford [1]", "accountability", gold=()) is None


def test_citations_are_numbers_and_titles_in_square_brackets() -> None:
    assert find_cited("A [1], b [2; 3] and [ann lee], not [date] or (2). [9]", TITLES) == {1, 2, 3, 9}
    assert remove_citations("John Ford [1] [Dust (film)]. He was [unclear].", TITLES) == (
        "John Ford. He was [unclear]."
    )


def test_a_fake_answer_counts_as_whole_words_only() -> None:
    assert score_fake_overlap("Roman", "Romania") == 1.0
    assert score_fake_overlap("the Roman", "It was a ROMAN, no?") == 0.0
