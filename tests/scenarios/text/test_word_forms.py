"""Words and their forms."""

from __future__ import annotations

import pytest
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from hallulab.scenarios.text.words import STOP_WORDS, read_word


@pytest.mark.parametrize(
    ("spelling", "exact", "stem"),
    [
        ("Museum's", "museum", "museum"),
        ("openings", "openings", "open"),
        ("1,250.50", "1250.5", "1250.5"),
        ("007", "7", "7"),
        ("17:0", "17:0", "17:00"),
        ("5 PM", "5pm", "17:00"),
        ("12:30 a.m", "12:30am", "0:30"),
        ("Seven", "seven", "7"),
    ],
)
def test_a_word_has_an_exact_form_and_a_stem(spelling: str, exact: str, stem: str) -> None:
    word = read_word(spelling)
    assert (word.exact, word.stem) == (exact, stem)


def test_stop_words_are_those_of_scikit_learn() -> None:
    assert STOP_WORDS == ENGLISH_STOP_WORDS
