"""JSON from outside: what becomes of what cannot be written again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.files.data_files import read_json
from hallulab.scenarios.files.json_text import MAX_DEPTH

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2.5, "x", true, null]}', {"a": [1, 2.5, "x", True, None]}),
        ('["a\\ud800b", {"\\udfff": 1}]', ["a\ufffdb", {"\ufffd": 1}]),
        ('"\\ud83d\\ude00"', "😀"),
        ("[NaN, Infinity, -Infinity, 1e999]", [None, None, None, None]),
        (f"[{'9' * 309}, -{'9' * 5_000}, {'1' + '0' * 300}]", [None, None, 10**300]),
        (b'"\xed\xa0\x80"', "\ufffd"),
    ],
)
def test_what_is_read(text: str | bytes, value: Any) -> None:
    assert read_json(text) == value


def test_every_text_and_key_is_cleaned() -> None:
    assert read_json('{"a": ["b", {"c": "d"}]}', str.upper) == {"A": ["B", {"C": "D"}]}


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 5_000, 200_000])
def test_deep_nesting_is_no_value(depth: int) -> None:
    for text in ("[" * depth, "[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        with pytest.raises(ValueError, match=r".") as caught:
            read_json(text)
        assert not isinstance(caught.value, RecursionError)


def test_as_deep_as_it_may_be() -> None:
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert json.dumps(read_json(text)) == text


@given(VALUES)
def test_what_was_read_can_be_written_and_read_again(value: Any) -> None:
    read = read_json(json.dumps(value))
    written = json.dumps(read, ensure_ascii=False, allow_nan=False).encode()
    assert json.loads(written) == read
