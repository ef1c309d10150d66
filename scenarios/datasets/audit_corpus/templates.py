"""Fill sentences with slots, such as `It opened in {year}.`, and find the places of the values.

`{name}` is the first form of a slot's value, `{name/1}` the second (the last one if there are fewer).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

Forms = tuple[str, ...]
"""A value in all its forms; sources use the first."""

_SLOT = re.compile(r"\{(\w+)(?:/(\d))?\}")


class Filled(NamedTuple):
    """A filled template."""

    text: str
    """The text."""
    places: dict[str, list[tuple[int, int]]]
    """Slot → places of its value: [start, end) in characters of the text."""


def fill(template: str, values: Mapping[str, Forms]) -> Filled:
    """Fill `template` with the slots' values; its first letter becomes a capital.

    Raises:
        KeyError: the template has a slot that `values` lacks.
    """
    text, at = "", 0
    places: dict[str, list[tuple[int, int]]] = {}
    for slot in _SLOT.finditer(template):
        text += template[at : slot.start()]
        forms = values[slot[1]]
        value = forms[min(int(slot[2] or 0), len(forms) - 1)]
        places.setdefault(slot[1], []).append((len(text), len(text) + len(value)))
        text += value
        at = slot.end()
    text += template[at:]
    return Filled(text[:1].upper() + text[1:], places)


def fill_tree(tree: Any, values: Mapping[str, Forms]) -> Any:
    """Fill all texts in nested mappings and lists; their case does not change."""
    if isinstance(tree, str):
        return _SLOT.sub(lambda slot: values[slot[1]][0], tree)
    if isinstance(tree, Mapping):
        return {fill_tree(key, values): fill_tree(value, values) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [fill_tree(item, values) for item in tree]
    return tree


def list_slots(template: str) -> list[str]:
    """Return the slots of a template in order, with repetitions."""
    return [slot[1] for slot in _SLOT.finditer(template)]
