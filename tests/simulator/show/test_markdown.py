from __future__ import annotations

import pytest

from hallulab.simulator.show.markdown import escape_markdown


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("Rs 500 (a fee), 3.5%.", "Rs 500 (a fee), 3.5%."),
        ("<b>&amp;", "&#60;b&#62;&#38;amp;"),
        ("[x](https://a.b)", "&#91;x&#93;(https&#58;//a.b)"),
        ("www.a.b", "www&#46;a.b"),
        ("a | b\n\n# c", "a &#124; b &#35;&#8288; c"),
        ("@all #12", "&#64;&#8288;all &#35;&#8288;12"),
        (
            "**a** _b_ `c` ~d~ $e$ \\",
            "&#42;&#42;a&#42;&#42; &#95;b&#95; &#96;c&#96; &#126;d&#126; &#36;e&#36; &#92;",
        ),
        ("- a", "&#45; a"),
        ("-0.5", "-0.5"),
        ("\x1b[0m\u202e", "�&#91;0m�"),
    ],
)
def test_texts_stay_texts(text: str, escaped: str) -> None:
    assert escape_markdown(text) == escaped
