"""Highlighted spans and forced citations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.chatbots.guarded.marks import add_marks, list_sources
from hallulab.scenarios.text.spans import Region
from hallulab.scenarios.transcript import Passage, Span

FEES = Passage(id="fees#0", document="fees", text="The fee of the complaint is Rs 200.")
OFFICE = Passage(id="office#0", document="office", text="The district office opens at nine on weekdays.")
BOTH = (FEES, OFFICE)


def span(start: int, end: int, reply: str) -> Span:
    return Span(start=start, end=end, text=reply[start:end])


def marked(reply: str, *places: tuple[int, int], highlight: bool = True, cite: bool = True) -> str:
    spans = [span(start, end, reply) for start, end in places]
    return add_marks(reply, spans, BOTH, highlight=highlight, cite=cite)


@pytest.mark.parametrize(
    ("reply", "cited"),
    [
        ("The fee is Rs 200.", "The fee is Rs 200 [1]."),
        ("The office opens at nine.", "The office opens at nine [2]."),
        ("Judges are elected every spring.", "Judges are elected every spring [no source]."),
        ("The fee is Rs 200. Judges retire!", "The fee is Rs 200 [1]. Judges retire [no source]!"),
        ("Hello! The fee is Rs 200", "Hello! The fee is Rs 200 [1]"),
        ("What did you pay?", "What did you pay?"),
        ("The fee is Rs 200 (see the notice).", "The fee is Rs 200 (see the notice) [1]."),
    ],
)
def test_a_sentence_that_claims_gets_its_source_before_the_full_stop(reply: str, cited: str) -> None:
    assert marked(reply) == cited


def test_a_flagged_sentence_has_no_source() -> None:
    assert marked("The fee is Rs 200.", (11, 17)) == "The fee is ⟦Rs 200⟧ [no source]."


def test_a_highlight_ends_before_the_full_stop() -> None:
    assert marked("It is free. Bye.", (0, 11), cite=False) == "⟦It is free⟧. Bye."


def test_spans_that_overlap_are_highlighted_once() -> None:
    assert marked("It is free of charge.", (0, 10), (6, 20), cite=False) == "⟦It is free of charge⟧."


def test_a_span_without_a_place_marks_nothing() -> None:
    spans = [Span(start=None, end=None, text="gone")]
    assert add_marks("It is free.", spans, BOTH, highlight=True, cite=False) == "It is free."


def test_marks_of_the_bot_are_removed_because_only_the_guards_may_stand_there() -> None:
    reply = "Judges retire [1]. ⟦The fee⟧ is Rs 200 [no source]."
    assert marked(reply) == "Judges retire [no source]. The fee is Rs 200 [1]."


def test_without_evidence_nothing_has_a_source() -> None:
    assert list_sources("The fee is Rs 200.", ()) == [(Region(0, 18), None)]
    assert add_marks("It costs 5.", (), (), highlight=True, cite=True) == "It costs 5 [no source]."


def test_an_empty_reply_stays_empty() -> None:
    assert marked("") == ""


@given(st.text(alphabet="ab .!?\n()[]*1⟦⟧", max_size=40), st.integers(0, 40), st.integers(1, 40))
def test_highlights_change_no_other_character(reply: str, start: int, length: int) -> None:
    end = min(start + length, len(reply))
    places = [span(start, end, reply)] if start < end else []
    plain = "".join(letter for letter in reply if letter not in "⟦⟧")
    made = add_marks(reply, places, BOTH, highlight=True, cite=False)
    assert made.replace("⟦", "").replace("⟧", "") == plain
