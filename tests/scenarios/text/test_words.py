"""Words, their forms, and messages of no more than courtesy."""

from __future__ import annotations

import pytest
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from hallulab.scenarios.text.words import STOP_WORDS, is_courtesy, read_word


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


@pytest.mark.parametrize(
    "message",
    [
        "Thank you.",
        "thanks a lot for your help!",
        "Hello",
        "Good morning, dear sir",
        "Ok, thank you so much for the clear information.",
        "You’re welcome!",
        "Bye",
    ],
)
def test_thanks_greetings_and_goodbyes_are_courtesies(message: str) -> None:
    assert is_courtesy(message)


@pytest.mark.parametrize(
    "message",
    [
        "Thank you. What is the number?",
        "Thanks, the bill is from March",
        "thanks, 4850 rupees",
        "Thank you, please send me the address",
        "Yes.",
        "ok",
        "My gas smells, hello",
        "",
    ],
)
def test_what_asks_or_tells_something_is_none(message: str) -> None:
    assert not is_courtesy(message)
