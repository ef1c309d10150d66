"""Letters that are parted by spaces are words, unless they are the columns of a table."""

from __future__ import annotations

import pytest

from hallulab.scenarios.packs.kinds.spaced_letters import join_spaced_letters


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("O P E N I N G   H O U R S", "OPENING HOURS"),
        ("# Ö f f n u n g s z e i t e n", "# Öffnungszeiten"),
        ("F E E S\nO P E N", "FEES\nOPEN"),
        ("М Е Н Ю", "МЕНЮ"),
        ("M T W T F S S", "M T W T F S S"),
        ("J F M A M J J A S O N D", "J F M A M J J A S O N D"),
        ("Grades: A B C D E F", "Grades: A B C D E F"),
        ("a e i o u", "a e i o u"),
        ("1 2 3 4 5", "1 2 3 4 5"),
        ("Plan B is a go", "Plan B is a go"),
    ],
)
def test_spaced_letters_are_words(text: str, joined: str) -> None:
    assert join_spaced_letters(text) == joined
