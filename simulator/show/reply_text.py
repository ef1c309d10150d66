"""Replies as chatbots write them: the little Markdown in them becomes styles, the rest stays text.

A renderer puts every piece into a page as text within an element of a fixed list, so nothing that a reply
says becomes markup: no HTML, no link that can be followed, no picture that is fetched. Pieces know their
places in the reply, where detectors' spans are; Markdown libraries forget these within a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

Style = Literal["", "bold", "italic", "code", "item"]
"""`item`: the sign before an item of a list, which is shown as a dot."""

_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(?=\S)")
_BULLET = re.compile(r"[ \t]*[-*+](?=[ \t]+\S)")
_FENCE = re.compile(r" {0,3}```[^`]*")
# Each part between two marks excludes the mark, so a line is read once, whatever is left open in it.
_INLINE = re.compile(
    r"`(?P<code>[^`]+)`"
    r"|\*\*(?!\s)(?P<bold>[^*]+)(?<!\s)\*\*"
    r"|(?<!\w)__(?!\s)(?P<strong>[^_]+)(?<!\s)__(?!\w)"
    r"|(?<![\w*])\*(?!\s)(?P<italic>[^*]+)(?<!\s)\*(?![\w*])"
    r"|(?<!\w)_(?!\s)(?P<emphasis>[^_]+)(?<!\s)_(?!\w)"
    r"|!?\[(?P<link>[^\[\]]+)\](?=\([^()\s]+\))"
)
_STYLES: dict[str, Style] = {
    "code": "code",
    "bold": "bold",
    "strong": "bold",
    "italic": "italic",
    "emphasis": "italic",
    "link": "",
}


class Stretch(NamedTuple):
    """A part of a reply that is shown."""

    start: int
    """First character."""
    end: int
    """One past the last character."""
    style: Style


class StyledPiece(NamedTuple):
    """A piece of a reply that looks the same throughout."""

    text: str
    """As it is shown."""
    covering: tuple[int, ...]
    """The spans that cover it, as `cut_segments` numbers them."""
    style: Style
    start: int
    """Its first character in the reply."""


def find_stretches(reply: str) -> list[Stretch]:
    """Return what is shown of a reply; the signs of Markdown between are not.

    >>> reply = "**No.** See [the `act`](https://a.example)."
    >>> [(reply[one.start : one.end], one.style) for one in find_stretches(reply)]
    [('No.', 'bold'), (' See ', ''), ('the `act`', ''), ('(https://a.example).', '')]
    """
    found: list[Stretch] = []
    start, in_code = 0, False
    for line in reply.splitlines(keepends=True):
        end = start + len(line)
        is_fence = _FENCE.fullmatch(line.rstrip()) is not None
        in_code ^= is_fence
        if is_fence and not line.strip(" `\r\n"):
            pass  # behind the sign may stand words, which nobody may hide
        elif is_fence or in_code:
            found.append(Stretch(start, end, "code"))
        elif heading := _HEADING.match(line):
            found.append(Stretch(start + heading.end(), end, "bold"))
        else:
            found += _read_line(reply, start, end)
        start = end
    return found


def _read_line(reply: str, start: int, end: int) -> Iterator[Stretch]:
    at = start
    if bullet := _BULLET.match(reply, start, end):
        at = bullet.end()
        yield from [Stretch(start, at - 1, "")] * (start < at - 1)
        yield Stretch(at - 1, at, "item")
    for match in _INLINE.finditer(reply, at, end):
        assert match.lastgroup is not None
        if at < match.start():
            yield Stretch(at, match.start(), "")
        yield Stretch(*match.span(match.lastgroup), _STYLES[match.lastgroup])
        at = match.end()
    if at < end:
        yield Stretch(at, end, "")


def style_pieces(pieces: Sequence[tuple[str, tuple[int, ...]]]) -> list[StyledPiece]:
    """Cut the pieces of a reply where its style changes, too, and leave out the signs of Markdown.

    Args:
        pieces: as from `cut_segments`; they join to the reply.
    """
    reply = "".join(text for text, _ in pieces)
    stretches = iter(find_stretches(reply))
    styled: list[StyledPiece] = []
    stretch = next(stretches, None)
    start = 0
    for text, covering in pieces:
        end = start + len(text)
        while stretch is not None and stretch.start < end:
            left, right = max(start, stretch.start), min(end, stretch.end)
            if left < right:
                shown = "•" if stretch.style == "item" else reply[left:right]
                styled.append(StyledPiece(shown, covering, stretch.style, left))
            if stretch.end > end:
                break
            stretch = next(stretches, None)
        start = end
    return styled
