"""Tokens and their forms."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from hallulab.detectors.features.batch import Lexicon, find_all, tokenize

WORD = re.compile(r"(\S+)")


def test_without_texts_there_are_no_stretches() -> None:
    assert len(find_all(WORD, []).start) == 0


def test_stretches_have_their_places_in_their_own_text() -> None:
    found = find_all(WORD, ["", " a bc ", "d"])
    assert found.text.tolist() == [1, 1, 2]
    assert found.start.tolist() == [1, 3, 0]
    assert found.end.tolist() == [2, 5, 1]
    assert found.spelling == ["a", "bc", "d"]


@given(st.lists(st.text("ab \n٣é", max_size=12)))
def test_stretches_are_those_that_the_pattern_finds(texts: list[str]) -> None:
    found = find_all(WORD, texts)
    places = list(zip(found.text.tolist(), found.start.tolist(), found.end.tolist(), strict=True))
    assert places == [(n, *match.span()) for n, text in enumerate(texts) for match in WORD.finditer(text)]
    assert found.spelling == [texts[n][start:end] for n, start, end in places]


def test_tokens_are_numbers_clock_times_and_runs_of_letters() -> None:
    text = "OutdoorSeating: 1,250.50 at 5:30 PM, isn't it?"
    tokens = tokenize([text], Lexicon())
    found = [text[start:end] for start, end in zip(tokens.start, tokens.end, strict=True)]
    assert found == ["Outdoor", "Seating", "1,250.50", "at", "5:30 PM", "isn't", "it"]
    assert tokens.number.tolist() == [False, False, True, False, True, False, False]
    assert tokens.content.tolist() == [True, True, True, False, True, True, False]
    assert tokens.capital.tolist() == [True, True, False, False, False, False, False]


def test_equal_forms_have_equal_identifiers_across_texts() -> None:
    tokens = tokenize(["Maps are old.", "An old map"], Lexicon())
    assert tokens.text.tolist() == [0, 0, 0, 1, 1, 1]
    assert tokens.exact[2] == tokens.exact[4]
    assert tokens.exact[0] != tokens.exact[5]
    assert tokens.stem[0] == tokens.stem[5]
