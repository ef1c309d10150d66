"""Span arithmetic on literal strings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.text.spans import (
    Region,
    compute_unknown_share,
    cut_region,
    locate,
    locate_mentions,
    split_sentences,
    strip,
)

TEXT = st.text(alphabet=st.sampled_from("abC .!?\n-1*’İßé,:…"), max_size=60)


def split(text: str) -> list[str]:
    return [region.of(text) for region in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It opens at 6. It closes at 8!", ["It opens at 6.", "It closes at 8!"]),
        ("crayola made chalk . it then made wax.", ["crayola made chalk .", "it then made wax."]),
        ("Call 1800-11-4000. Or 1915.", ["Call 1800-11-4000.", "Or 1915."]),
        ("Dr. Rao paid Rs. 5.50 to Acme Ltd. in May.", ["Dr. Rao paid Rs. 5.50 to Acme Ltd. in May."]),
        ("It is at No. 32, Off M. G. Road.", ["It is at No. 32, Off M. G. Road."]),
        ("No. That is wrong.", ["No.", "That is wrong."]),
        ("See Reg. No. 5 of it.", ["See Reg. No. 5 of it."]),
        ("Ask S. K. Rao, see p. 5.", ["Ask S. K. Rao, see p. 5."]),
        ("Open at 9 a.m. daily. We wait.", ["Open at 9 a.m. daily.", "We wait."]),
        (
            "Commission,\nTripura,\nAgartala.You can call.",
            ["Commission,\nTripura,\nAgartala.", "You can call."],
        ),
        ("Bring:\n1. A card.\n2. A form\nThen wait.", ["Bring:", "1. A card.", "2. A form", "Then wait."]),
        ("- one\n  goes on\n- two", ["- one\n  goes on", "- two"]),
        ("**Fees**\nThe fee is 5.", ["**Fees**", "The fee is 5."]),
        ("First part\n\nsecond part", ["First part", "second part"]),
        ('He said "Stop." Then he left.', ['He said "Stop."', "Then he left."]),
        (
            "Write to a.b@mail.com or www.Ex.com or go.Ex.com today.",
            ["Write to a.b@mail.com or www.Ex.com or go.Ex.com today."],
        ),
        ("", []),
        (" \n ", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, expected: list[str]) -> None:
    assert split(text) == expected


@given(TEXT)
def test_every_visible_character_is_in_exactly_one_sentence(text: str) -> None:
    covered = [index for region in split_sentences(text) for index in range(region.start, region.end)]
    assert covered == sorted(set(covered))
    assert {i for i, character in enumerate(text) if not character.isspace()} <= set(covered)
    assert all(region.of(text) == region.of(text).strip() != "" for region in split_sentences(text))


def test_a_quotation_is_found_verbatim() -> None:
    assert locate("at 6", "It opens at 6.") == (9, 13)


@pytest.mark.parametrize(
    ("quote", "text", "found"),
    [
        (
            'state commission, tripura - "agartala".',
            "The address is: State Commission,\n  Tripura – “Agartala”.",
            "State Commission,\n  Tripura – “Agartala”.",
        ),
        (
            '"…0381-232-0325 or 0381-232-0326"',
            "Their numbers are 0381-232-0325 or 0381-232-0326.",
            "0381-232-0325 or 0381-232-0326",
        ),
        (
            "You can contact them at their phone numbers: 0381-232-0325 or 0381-232-0326.",
            "Yes. You can also contact them at their phone number: 0381-232-0325 or 0381-232-0326. Bye.",
            "You can also contact them at their phone number: 0381-232-0325 or 0381-232-0326",
        ),
    ],
    ids=["case, white space and quotation marks", "punctuation around it", "reworded, in whole words"],
)
def test_a_quotation_is_found_in_another_spelling(quote: str, text: str, found: str) -> None:
    place = locate(quote, text)
    assert place is not None
    assert place.of(text) == found


@pytest.mark.parametrize("quote", ["", "  ", "The moon is made of cheese", "shut", "opens at 5"])
def test_what_is_not_there_is_not_located(quote: str) -> None:
    assert locate(quote, "It opens at 6 and closes at 8.") is None


def test_a_repeated_string_goes_to_the_nearest_occurrence() -> None:
    text = "It is free. Entry is free."
    assert locate("free", text) == (6, 10)
    assert locate("free", text, near=15) == (21, 25)
    assert locate("FREE", text, near=15) == (21, 25)


@pytest.mark.parametrize(
    ("quote", "text", "place"),
    [
        ("Rs 5", "Not Rs 500 but Rs 5.", (15, 19)),
        ("FREE", "A freelancer is free.", (16, 20)),
        ("free", "A freelancer.", (2, 6)),
    ],
)
def test_whole_words_are_preferred_to_parts_of_longer_ones(
    quote: str, text: str, place: tuple[int, int]
) -> None:
    assert locate(quote, text) == locate(quote, text, near=0) == place


def test_repeated_quotations_take_their_occurrences_in_turn() -> None:
    assert locate_mentions(["free", "Free", "free"], "free, free!") == [(0, 4), (6, 10), (6, 10)]


@given(TEXT, st.integers(0, 60), st.integers(1, 20))
def test_any_stretch_of_a_text_is_located_as_itself(text: str, start: int, length: int) -> None:
    quote = text[start : start + length]
    found = locate(quote, text, near=start)
    if quote.strip():
        assert found is not None
        assert found.of(text) == quote.strip()
    else:
        assert found is None


@given(TEXT, TEXT)
def test_a_located_quotation_lies_inside_the_text(quote: str, text: str) -> None:
    found = locate(quote, text)
    assert found is None or (0 <= found.start < found.end <= len(text))


def test_the_unknown_share_counts_each_occurrence_and_is_none_without_words() -> None:
    assert compute_unknown_share("It is, it IS free!", {"is"}) == 3 / 5
    assert compute_unknown_share("?!", {"is"}) is None


def test_a_region_is_clipped_to_its_bounds() -> None:
    assert cut_region(Region(2, 9), Region(4, 6)) == (4, 6)
    assert cut_region(Region(2, 4), Region(4, 6)) is None


def test_white_space_at_the_ends_is_stripped() -> None:
    assert strip(" ab ", Region(0, 4)) == (1, 3)
    assert strip("   ", Region(0, 3)) is None
