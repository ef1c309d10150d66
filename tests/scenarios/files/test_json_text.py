"""JSON that is refused although the library reads it, and how a text that ends too early is told apart."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.files.json_text import find_unwritable, is_unfinished, parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("text", "flaw"),
    [
        ("NaN", "a number that is not finite"),
        ('{"calls": [{}, {"latency_s": Infinity}]}', "calls.1.latency_s: a number that is not finite"),
        ("[1, -1e999]", "1: a number that is not finite"),
        (f"[{10**308}]", "a number of 309 digits is too large"),
        ("1" * 5000, "a number of 5000 digits is too large"),
        ('{"reply": "a\\ud800b"}', "reply: half of a character (\\ud800)"),
        ('{"a\\udfff": 1}', "a\\udfff: half of a character (\\udfff)"),
        ('{"a": 1, "b": 2, "a": 3}', "the key a occurs twice"),
        (f'{{"{"k" * 999}": NaN}}', f"{'k' * 199}…: a number that is not finite"),
        (f'{{"{"k" * 999}": 1, "{"k" * 999}": 1}}', f"the key {'k' * 199}… occurs twice"),
        ("[" * 101 + "]" * 101, "more than 100 levels of brackets"),
        ('{"a":' * 101 + "1" + "}" * 101, "more than 100 levels of brackets"),
        ("[" * 200_000, "more than 100 levels of brackets"),
    ],
)
def test_what_not_every_program_reads_is_refused(text: str, flaw: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(flaw)}$"):
        parse_json(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"\\ud83d\\ude00"', "\N{GRINNING FACE}"),
        (f"[{10**308 - 1}, 1.7e308]", [10**308 - 1, 1.7e308]),
        (f'"{"7" * 400}"', "7" * 400),
    ],
)
def test_what_only_looks_like_it_is_read(text: str, value: Any) -> None:
    assert parse_json(text) == value


def test_a_hundred_levels_are_read() -> None:
    value = parse_json("[" * 100 + "]" * 100)
    for _ in range(99):
        (value,) = value
    assert value == []


@pytest.mark.parametrize("number", [10**308, -(10**308)])
def test_a_whole_number_of_a_flag_that_is_no_float_is_refused(number: int) -> None:
    assert find_unwritable({"seed": [number]}) == (("seed", 0), "a number that is too large")


@pytest.mark.parametrize(
    ("text", "unfinished"),
    [
        ('{"a": "x', True),
        ('{"a": "x\\', True),
        ('{"a": "}"', True),
        ('{"a": [1, 2]', True),
        ('{"a": 1', True),
        ('{"a": "{"}', False),
        ('{"a": 1}{"b": 2}', False),
        ('{"a": 1,}', False),
        ("", False),
    ],
)
def test_a_string_or_a_bracket_that_is_open_makes_it_unfinished(text: str, unfinished: bool) -> None:
    assert is_unfinished(text) == unfinished


@given(st.dictionaries(st.text(), VALUES), st.integers(min_value=1))
def test_every_beginning_of_an_object_is_unfinished_and_the_whole_is_not(
    value: dict[str, Any], cut: int
) -> None:
    text = json.dumps(value)
    assert is_unfinished(text[: cut % len(text) or 1])
    assert not is_unfinished(text)
    assert parse_json(text) == value
