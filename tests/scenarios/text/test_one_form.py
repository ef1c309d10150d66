"""One form of a text, and the places in the text as it was."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.text.one_form import collect_compounds, unify_text


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("the o\ufb03ce of\ufb01ce", "the office office"),
        ("a re\u00adplace\u00adment", "a replacement"),
        ("a re\u00ad\n  placement", "a replacement"),
        ("an infor-\n mation desk", "an information desk"),
        ("20-\n30 days, A-\nB, x -\ny", "20-\n30 days, A-\nB, x -\ny"),
        ("Mu\u0308ller", "Müller"),
        ("２０ Ｒｓ ３．５", "20 Rs 3.5"),
        ("ｶｰﾄﾞ", "カード"),
        ("l\u200bate", "late"),
        ("می\u200cرود", "می\u200cرود"),
        ("x² ½ …", "x² ½ …"),
        ("plain text", "plain text"),
    ],
)
def test_the_one_form(text: str, form: str) -> None:
    assert unify_text(text).text == form


def test_a_word_with_a_hyphen_elsewhere_keeps_it_at_the_end_of_a_line() -> None:
    texts = ["a self-\nservice desk", "The Self-service is free."]
    assert unify_text(texts[0], collect_compounds(texts)).text == "a self-service desk"


def test_places_are_those_in_the_text_as_it_was() -> None:
    text = "The o\ufb03ce of Mu\u0308ller, infor-\nmation"
    form = unify_text(text)
    found = [form.text.index(word) for word in ("office", "Müller", "information")]
    places = [form.find_origin(at, at + length) for at, length in zip(found, (6, 6, 11), strict=True)]
    assert [text[start:end] for start, end in places] == ["o\ufb03ce", "Mu\u0308ller", "infor-\nmation"]


@given(st.text(st.sampled_from("ab\u0308\u00ad\n-\u200bﬁ１ हि한ᄀ ᅡ\u0301.")))
def test_places_are_in_order_and_the_form_is_stable(text: str) -> None:
    form = unify_text(text)
    assert unicodedata.is_normalized("NFC", form.text)
    edges = [edge for place in form.places or () for edge in place]
    assert all(0 <= edge <= len(text) for edge in edges)
    assert [start for start, _ in form.places or ()] == sorted(start for start, _ in form.places or ())
    assert form.places is None or len(form.places) == len(form.text)
