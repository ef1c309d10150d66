"""The Markdown of replies: styles of a text that stays text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.simulator.show.reply_text import find_stretches, style_pieces


def show(reply: str) -> list[tuple[str, str]]:
    return [(piece.text, piece.style) for piece in style_pieces([(reply, ())])]


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        ("Plain.", [("Plain.", "")]),
        ("a **b c** d", [("a ", ""), ("b c", "bold"), (" d", "")]),
        ("__b__ *i* _e_", [("b", "bold"), (" ", ""), ("i", "italic"), (" ", ""), ("e", "italic")]),
        ("use `rm *` now", [("use ", ""), ("rm *", "code"), (" now", "")]),
        ("## Fees\nnone", [("Fees\n", "bold"), ("none", "")]),
        ("- one\n  * two", [("•", "item"), (" one\n", ""), ("  ", ""), ("•", "item"), (" two", "")]),
        ("```\nls **\n```\nend", [("ls **\n", "code"), ("end", "")]),
        ("```sh\nls", [("```sh\n", "code"), ("ls", "code")]),
        ("2*3*4 and a_b_c", [("2*3*4 and a_b_c", "")]),
        ("** not ** bold*", [("** not ** bold*", "")]),
        ("-5 degrees", [("-5 degrees", "")]),
        ("#1 of 3", [("#1 of 3", "")]),
        ("", []),
    ],
)
def test_the_signs_of_markdown_become_styles(reply: str, shown: list[tuple[str, str]]) -> None:
    assert show(reply) == shown


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        ("[pay](javascript:alert)", "pay(javascript:alert)"),
        ("![x](https://e.example/p.png)", "x(https://e.example/p.png)"),
        ("<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"),
        ("**<script>alert(1)</script>**", "<script>alert(1)</script>"),
        ("[a]: https://e.example\n<https://e.example>", "[a]: https://e.example\n<https://e.example>"),
    ],
)
def test_links_pictures_and_html_stay_text(reply: str, shown: str) -> None:
    assert "".join(text for text, _ in show(reply)) == shown


def test_marks_survive_styles_and_styles_survive_marks() -> None:
    pieces = style_pieces([("Pay **Rs ", ()), ("500 now", (0, 1)), ("** or `la", ()), ("ter`.", (2,))])
    assert [(one.text, one.covering, one.style, one.start) for one in pieces] == [
        ("Pay ", (), "", 0),
        ("Rs ", (), "bold", 6),
        ("500 now", (0, 1), "bold", 9),
        (" or ", (), "", 18),
        ("la", (), "code", 23),
        ("ter", (2,), "code", 25),
        (".", (2,), "", 29),
    ]


@given(st.text(alphabet="ab *_`#-[]()!\n", max_size=40), st.lists(st.integers(0, 40), max_size=4))
def test_every_letter_is_shown_once_and_in_its_place(reply: str, cuts: list[int]) -> None:
    places = sorted({0, len(reply), *(cut for cut in cuts if cut < len(reply))})
    pieces = [(reply[left:right], (left,)) for left, right in pairwise(places)]
    styled = style_pieces(pieces)
    letters = [at for at, sign in enumerate(reply) if sign in "ab"]
    shown = [one.start + at for one in styled for at, sign in enumerate(one.text) if sign in "ab"]
    assert shown == letters
    assert all(reply[one.start : one.start + len(one.text)] == one.text or one.text == "•" for one in styled)
    starts = [one.start for one in find_stretches(reply)]
    assert starts == sorted(starts)
