"""One form of a text, and the places in the text as it was."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.text.one_form import collect_spellings, join_broken_words, unify_text


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


@pytest.mark.parametrize(
    ("texts", "form"),
    [
        (["a self-\nservice desk"], "a self-service desk"),
        (["a time-\nshare", "The Time-share is free."], "a time-share"),
        (["a time-\nshare", "The timeshare is free."], "a timeshare"),
        (["a non-\nsense rule", "nonsense"], "a nonsense rule"),
        (["two-\nand three-year cards", "twoand"], "two-\nand three-year cards"),
        (["the replace-\r\nment"], "the replacement"),
        (["the replace- ment fee", "A replacement costs 5 euros."], "the replacement fee"),
        (["the replace- ment fee", "A fee."], "the replace- ment fee"),
        (["a re- sort", "A resort, or a re-sort."], "a re- sort"),
        (["Rye-\nMills"], "Rye-\nMills"),
    ],
)
def test_a_hyphen_stays_where_the_word_has_it(texts: list[str], form: str) -> None:
    assert unify_text(texts[0], collect_spellings(texts)).text == form


def test_a_text_without_broken_words_is_the_same_object() -> None:
    text = "two-year cards - all"
    assert join_broken_words(text) is text


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
