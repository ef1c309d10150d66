from __future__ import annotations

import sys
import unicodedata
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from scenarios.transcript import Span
from simulator.measure.tokens import count_tokens, hallucinated, tokenize


def words(text: str) -> list[str]:
    return [text[start:end] for start, end in tokenize(text)]


def span(start: int | None, end: int | None) -> Span:
    return Span(start=start, end=end, text="x")


def test_words_and_punctuation_marks_are_tokens() -> None:
    assert words("Call 0381-232, now!") == ["Call", "0381", "-", "232", ",", "now", "!"]


def test_vowel_signs_stay_in_their_word() -> None:
    assert words("हिन्दी में।") == ["हिन्दी", "में", "।"]


def test_nothing_has_no_tokens() -> None:
    assert words(" \n\t") == []


def test_a_token_is_hallucinated_when_a_span_touches_one_of_its_characters() -> None:
    tokens = tokenize("one two three")
    assert hallucinated(tokens, [span(6, 8)]) == [False, True, False]
    assert hallucinated(tokens, [span(6, 9)]) == [False, True, True]


def test_a_span_on_white_space_touches_no_token() -> None:
    assert hallucinated(tokenize("one two"), [span(3, 4)]) == [False, False]


def test_overlapping_spans_count_a_token_once() -> None:
    assert hallucinated(tokenize("one two three"), [span(0, 7), span(4, 13)]) == [True, True, True]


def test_an_unlocated_span_touches_no_token() -> None:
    assert hallucinated(tokenize("one"), [span(None, None)]) == [False]


@given(st.text(max_size=60))
def test_tokens_are_ordered_apart_and_cover_all_but_white_space(text: str) -> None:
    tokens = tokenize(text)
    assert count_tokens(text) == len(tokens)
    assert all(left[1] <= right[0] for left, right in pairwise(tokens))
    assert "".join(words(text)) == "".join(text.split())


@given(st.text("ab ,", max_size=30), st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=6))
def test_a_token_is_hallucinated_if_and_only_if_a_span_meets_it(
    text: str, places: list[tuple[int, int]]
) -> None:
    tokens = tokenize(text)
    spans = [span(start, start + length) for start, length in places]
    assert hallucinated(tokens, spans) == [
        any(start < right and left < start + length for start, length in places) for left, right in tokens
    ]


def test_every_mark_of_unicode_belongs_to_a_word() -> None:
    marks = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] == "M"]
    assert len(tokenize(" ".join(f"a{mark}" for mark in marks))) == len(marks)
