"""Offsets of labels as annotation tools count them: in code points, UTF-16 units or bytes of UTF-8.

Browsers count UTF-16 units, so an emoji before a label moves it by one; some tools count bytes. Where a label
says its words, they tell which is meant. A label that fits none is refused: scores would be of other words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

Unit = str
"""`characters`, `UTF-16 units` or `bytes`."""


class LabelPlace(NamedTuple):
    """A label's place as its file gives it."""

    start: int
    end: int
    """One past the last unit."""
    text: str | None = None
    """The words there; None: the file does not say."""


class LocatedLabels(NamedTuple):
    """Places in code points."""

    places: tuple[tuple[int, int], ...]
    """[start, end) of each label."""
    unit: Unit


_SIZES: dict[Unit, Callable[[str], int]] = {
    "characters": lambda character: 1,
    "UTF-16 units": lambda character: 1 + (character > "\uffff"),
    "bytes": lambda character: len(character.encode("utf-8", "surrogatepass")),
}


def locate_labels(reply: str, given: Sequence[LabelPlace]) -> LocatedLabels:
    """Return the places of a reply's labels in code points.

    Of several units that fit the words of all labels, characters count; without words, too.

    >>> locate_labels("👩 It is 9 euros.", [LabelPlace(9, 16, "9 euros")])
    LocatedLabels(places=((8, 15),), unit='UTF-16 units')

    Raises:
        ValueError: no unit fits.
    """
    for unit, size in _SIZES.items():
        if unit != "characters" and (reply.isascii() or not any(place.text for place in given)):
            continue
        ends = accumulate(map(size, reply), initial=0)
        characters = {units: character for character, units in enumerate(ends)}
        places = [(characters.get(place.start, -1), characters.get(place.end, -1)) for place in given]
        if all(
            0 <= start < end and place.text in (None, reply[start:end])
            for (start, end), place in zip(places, given, strict=True)
        ):
            return LocatedLabels(tuple(places), unit)
    raise ValueError(_explain(reply, given))


def _explain(reply: str, given: Sequence[LabelPlace]) -> str:
    for place in given:
        if not 0 <= place.start < place.end <= len(reply):
            return (
                f"the label [{place.start}, {place.end}) is no stretch of the reply, which has {len(reply)} "
                "characters"
            )
        if place.text not in (None, there := reply[place.start : place.end]):
            return (
                f"the label [{place.start}, {place.end}) has the words {place.text!r}, and {there!r} stands "
                "there, counted in characters, UTF-16 units or bytes"
            )
    raise AssertionError("characters fit")
