"""METEOR and token F1 against reference implementations, on 200 recorded pairs."""

from __future__ import annotations

import json
import re
import string
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.simulator.metrics.tokens import compute_token_f1
from hallulab.simulator.rag_trust.meteor import compute_meteor, find_synonyms, stem
from tests.places import RECORDINGS

PAIRS = json.loads((RECORDINGS / "rag_trust" / "meteor.json").read_text(encoding="utf-8"))


def test_meteor_agrees_with_nltk_on_200_pairs() -> None:
    assert len(PAIRS) == 200
    assert len({pair["meteor"] for pair in PAIRS}) > 150
    for pair in PAIRS:
        assert compute_meteor(pair["reference"], pair["text"]) == pytest.approx(pair["meteor"], abs=1e-9)


def official_f1(prediction: str, ground_truth: str) -> float:
    """SQuAD v1.1's script, and HotpotQA's without the rule for yes and no."""

    def normalize_answer(s: str) -> str:
        lowered = "".join(ch for ch in s.lower() if ch not in set(string.punctuation))
        return " ".join(re.sub(r"\b(a|an|the)\b", " ", lowered).split())

    prediction_tokens = normalize_answer(prediction).split()
    ground_truth_tokens = normalize_answer(ground_truth).split()
    num_same = sum((Counter(prediction_tokens) & Counter(ground_truth_tokens)).values())
    if num_same == 0:
        return 0.0
    precision = 1.0 * num_same / len(prediction_tokens)
    recall = 1.0 * num_same / len(ground_truth_tokens)
    return (2 * precision * recall) / (precision + recall)


def test_token_f1_agrees_with_the_official_script_on_200_pairs() -> None:
    for pair in PAIRS:
        expected = official_f1(pair["text"], pair["reference"])
        assert compute_token_f1(pair["reference"], pair["text"]) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("reference", "text", "expected"),
    [
        ("the cat", "the cat", 0.9375),  # one chunk of two matches: 1 − 0.5 · (1/2)³
        ("cats", "cat", 0.5),  # by stem
        ("car", "auto", 0.5),  # by synonym
        ("a b", "b a", 0.5),  # two chunks of two matches
        ("yes", "no", 0.0),
        ("", "no", 0.0),
    ],
)
def test_meteor_of_few_words(reference: str, text: str, expected: float) -> None:
    assert compute_meteor(reference, text) == pytest.approx(expected)


@given(st.text(max_size=40), st.text(max_size=40))
def test_both_are_shares(reference: str, text: str) -> None:
    assert 0.0 <= compute_meteor(reference, text) <= 1.0
    assert compute_token_f1(reference, text) == compute_token_f1(text, reference)
    assert 0.0 <= compute_token_f1(reference, text) <= 1.0


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("dies", "die"),
        ("died", "die"),
        ("agreed", "agre"),
        ("feed", "feed"),
        ("hopping", "hop"),
        ("falling", "fall"),
        ("filing", "file"),
        ("using", "use"),
        ("happy", "happi"),
        ("enjoys", "enjoy"),
        ("relational", "relat"),
        ("theology", "theolog"),
        ("hopefully", "hope"),
        ("adoption", "adopt"),
        ("controlling", "control"),
        ("rate", "rate"),
        ("skies", "sky"),
        ("is", "is"),
    ],
)
def test_stems_are_those_of_nltk(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_synonyms_share_a_synset_with_a_base_form() -> None:
    assert "auto" in find_synonyms("cars")
    assert "travel" in find_synonyms("went")
    assert find_synonyms("hallulab") == frozenset()
