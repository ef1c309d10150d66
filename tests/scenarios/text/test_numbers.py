"""Numbers by their value."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.text.numbers import list_word_values, parse_han_number, parse_number, write_number


@pytest.mark.parametrize("text", ["1.250,50", "1,250.50", "1250,5", "१२५०.५", "١٬٢٥٠٫٥", "1'250.50"])
def test_spellings_of_one_number_are_equal(text: str) -> None:
    assert parse_number(text, "de") == Decimal("1250.5")


@pytest.mark.parametrize(
    ("text", "language", "value"),
    [
        ("1.250", "de", "1250"),
        ("1,250", "de", "1.250"),
        ("1.250", "en", "1.250"),
        ("1,250", "en", "1250"),
        ("1,250", None, "1250"),
        ("0.250", "de", "0.250"),
        ("3,5", "en", "3.5"),
        ("1,00,000", "hi", "100000"),
        ("1.000.000", "en", "1000000"),
        ("1.000.000,5", "en", "1000000.5"),
    ],
)
def test_only_three_digits_behind_one_mark_depend_on_the_language(
    text: str, language: str | None, value: str
) -> None:
    assert str(parse_number(text, language)) == value


@pytest.mark.parametrize("text", ["", "a", "12a", "1..2", ".5", "12.05.2026", "1.2.3", "9" * 5_000])
def test_other_texts_are_no_numbers(text: str) -> None:
    assert parse_number(text) is None


@given(st.integers(0, 10**12), st.integers(0, 99))
def test_english_and_german_spellings_are_one_number(whole: int, cents: int) -> None:
    english = f"{whole:,}.{cents:02d}"
    german = english.translate(str.maketrans(",.", ".,"))
    assert parse_number(english, "en") == parse_number(german, "de") == Decimal(f"{whole}.{cents:02d}")


@given(st.integers(0, 10**9))
def test_the_shortest_spelling_reads_as_the_number(value: int) -> None:
    assert write_number(Decimal(value)) == str(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("十", 10),
        ("十二", 12),
        ("二百零五", 205),
        ("两千三百万", 23_000_000),
        ("二〇二五", 2025),
        ("百", None),
        ("百二十", 120),
        ("千五百", 1500),
        ("1万2千", 12_000),
        ("500万", 5_000_000),
        ("3.5億", 350_000_000),
        ("十百", None),
        ("三四十", None),
        ("万", None),
        ("元", None),
        ("1.", None),
    ],
)
def test_numbers_in_chinese_characters(text: str, value: int | None) -> None:
    assert parse_han_number(text) == value


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("fr", "1 250,50 €", "1250,5 €"),
        ("ru", "1 000 000 руб", "1000000 руб"),
        ("ar", "١،٢٥٠", "1250"),
        ("fa", "۱٬۲۵۰٫۵", "1250.5"),
        ("bn", "১,২৫০", "1250"),
        ("vi", "5.000đ", "5000đ"),
        ("ko", "1,250원", "1250원"),
        ("id", "Rp5.000", "Rp 5.000"),
        ("de", "CHF 1'250.50", "CHF 1250,50"),
        ("zh", "1,200万元", "一千二百万元"),
        ("ja", "1億2000万円", "120,000,000円"),
        ("de", "2½ Stunden, ½ kg", "2,5 Stunden, 0,5 kg"),
    ],
)
def test_a_number_has_its_value_however_it_is_written(language: str, one: str, other: str) -> None:
    assert list_word_values(one, language) == list_word_values(other, language)


def test_numbers_that_stand_side_by_side_stay_two() -> None:
    assert list_word_values("en 2026 250 euros", "fr") == ["en", "2026", "250", "euros"]
    assert list_word_values("1 250 Euro", "de") == ["1", "250", "euro"]
