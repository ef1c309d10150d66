"""Which cells some spreadsheet computes."""

from __future__ import annotations

import pytest

from hallulab.scenarios.files.tables import is_formula


@pytest.mark.parametrize(
    "text",
    [
        *("=1+1", "+1", "-1", "@SUM(A1)", "\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20x", "\u22121"),
        *("\ufe631", "\ufe661", "\ufe6bx", "\u207a1", "\u208c1"),
        *("\nx", "\rx", "\tx", "\n=1", " =1", "\u00a0=1", "\u3000=1", "\u2028=1", "\x0b=1", "\x00=1"),
        *(
            "\ufeff=1",
            "\u200b=1",
            "\u200d\u2060=1",
            "\u00ad=1",
            "\ufe0f=1",
            "\u0301=1",
            "\u3164=1",
            " \n\ufeff \uff1d1",
        ),
    ],
)
def test_a_cell_that_some_program_computes_is_a_formula(text: str) -> None:
    assert is_formula(text)


@pytest.mark.parametrize(
    "text", ["", " ", "\u200b", "a=1", "1-2", "'=1", '"=1"', "\u2013 x", "\u2014x", "\u00bd", " a\n=1"]
)
def test_other_text_is_no_formula(text: str) -> None:
    assert not is_formula(text)
