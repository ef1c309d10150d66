from __future__ import annotations

import pytest

from hallulab.scenarios.text.wording import (
    choose_noun,
    clean_for_terminal,
    format_count,
    format_with_interval,
)


@pytest.mark.parametrize(("number", "said"), [(0, "0 turns"), (1, "1 turn"), (2, "2 turns")])
def test_a_count_agrees_with_its_noun(number: int, said: str) -> None:
    assert format_count(number, "turn") == said


def test_a_plural_that_no_s_makes_is_given() -> None:
    nouns = [choose_noun(number, "reply", "replies") for number in (0, 1, 2)]
    assert nouns == ["replies", "reply", "replies"]


def test_what_a_terminal_would_obey_is_made_visible_and_lines_stay() -> None:
    assert clean_for_terminal("a\x1b[31m\r\nb\u202e") == "a�[31m�\nb�"


def test_an_interval_stands_beside_its_number() -> None:
    assert format_with_interval(0.961, (0.95, 0.98), 1, 100) == "96.1 [95.0, 98.0]"
    assert format_with_interval(0.5, None, 2) == "0.50"
