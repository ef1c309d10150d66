"""Marks that claim nothing become spaces, and nothing else does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.text.page_marks import blank_marks


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("20 cents a day [1]. A reader [2][3].", "20 cents a day . A reader ."),
        ("a day [1, 2] or [2–4]", "a day or"),
        ("a day.[^1]\n\n[^1]: cards-and-loans.md\nEnd", "a day. End"),
        ("[^1]: The desk says so.", ": The desk says so."),
        ("a day 【4:0†source】[doc2].", "a day ."),
        ("1. Books\n2) Films\n  (3) Maps\n**4.** Toys", "Books Films Maps ** Toys"),
        ("In 2. At 3) and 4.5", "In 2. At 3) and 4.5"),
        ("Open at\n28 desks", "Open at 28 desks"),
        ("| Item | Cost |\n|---|---:|\n| Film | 20 |", "|---|---:| | Film | 20 |"),
        ("Item | Cost\n--- | ---\nFilm | 20", "--- | --- Film | 20"),
        ("No table\n---\nat all", "No table --- at all"),
        ("array[10000] and [a]", "array[10000] and [a]"),
    ],
)
def test_only_marks_are_blanked(text: str, left: str) -> None:
    blanked = blank_marks(text)
    assert " ".join(blanked.split()) == left
    assert len(blanked) == len(text)


def test_list_numbers_may_stay() -> None:
    assert blank_marks("1. Books [1]", list_numbers=False) == "1. Books    "


@given(st.text(st.sampled_from("[]^1.,| -:\n【】a*("), max_size=60))
def test_each_sign_stays_or_becomes_a_space(text: str) -> None:
    assert all(new in (old, " ") for old, new in zip(text, blank_marks(text), strict=True))
