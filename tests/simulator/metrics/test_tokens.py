from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.text.scripts import UNSPACED
from hallulab.scenarios.transcript import Span
from hallulab.simulator.metrics.tokens import count_hallucinated, count_tokens


def places(text: str) -> Iterator[tuple[int, int]]:
    """Where the tokens of a text are, letter by letter."""
    start, alone = None, False
    for at, letter in enumerate(text + " "):
        joined = letter in "\u200c\u200d" or unicodedata.category(letter)[0] == "M"
        of_a_word = joined or letter.isalnum() or letter == "_"
        unspaced = letter.isalpha() and re.match(f"[{UNSPACED}]", letter) is not None
        if start is not None and (not of_a_word or unspaced or (alone and not joined)):
            yield start, at
            start = None
        if of_a_word and start is None:
            start, alone = at, unspaced
        if not of_a_word and not letter.isspace():
            yield at, at + 1


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("Call 0381-232, now!", 7), ("हिन्दी में।", 3), ("借28天。", 4), ("ที่นี่ฟรี", 4), (" \n\t", 0), ("", 0)],
)
def test_words_and_punctuation_marks_are_tokens(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


@pytest.mark.parametrize(
    ("ends", "hallucinated"),
    [
        ([(6, 8)], 1),  # two letters of "two"
        ([(6, 9)], 2),  # and the one after the space
        ([(3, 4)], 0),  # the space alone
        ([(0, 7), (4, 13)], 3),
        ([(0, 1), (2, 3)], 1),
        ([(None, None)], 0),
    ],
)
def test_a_token_that_spans_touch_is_hallucinated_once(
    ends: list[tuple[int | None, int | None]], hallucinated: int
) -> None:
    spans = [Span(start=start, end=end, text="x") for start, end in ends]
    assert count_hallucinated("one two three", spans) == hallucinated


@given(st.text(max_size=60))
def test_tokens_are_counted_as_letter_by_letter(text: str) -> None:
    assert count_tokens(text) == len([*places(text)])


@given(
    st.text("ab ,\u093f\n图ก\u0e31", max_size=30),
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=6),
)
def test_a_token_is_hallucinated_if_and_only_if_a_span_meets_it(
    text: str, stretches: list[tuple[int, int]]
) -> None:
    spans = [Span(start=start, end=start + length, text="x") for start, length in stretches]
    assert count_hallucinated(text, spans) == sum(
        any(start < right and left < start + length for start, length in stretches)
        for left, right in places(text)
    )


def test_every_mark_of_unicode_belongs_to_a_word() -> None:
    marks = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] == "M"]
    assert count_tokens(" ".join(f"a{mark}" for mark in marks)) == len(marks)
