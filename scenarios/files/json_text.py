"""Strict JSON: finite numbers, whole characters, each key once, few levels of brackets.

Python's own reader accepts the opposite, and then the program fails much later: a page cannot be encoded, a
sum is no number, a written file cannot be read again.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 100
"""Nested lists and objects at most; ours have fewer than ten levels."""

TOO_DEEP = f"more than {MAX_DEPTH} levels of brackets"
"""The complaint about a text with more."""

Place = tuple[str | int, ...]
"""The keys and positions that lead to a value."""

_MOST_DIGITS = 308
"""Digits of a whole number at most. Floats end at somewhat larger numbers."""

_LONGEST_NAME = 200
"""Characters that are told of a key, or of the way to a value."""

_CONTAINERS = (dict, list)
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+("?)', re.DOTALL)
"""A string; its group is empty if the text ends before the string does."""


def parse_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        json.JSONDecodeError: it is not JSON.
        ValueError: it is JSON that not every program reads (see `find_unwritable`), or gives a key twice.
    """
    try:
        value = json.loads(text, object_pairs_hook=_refuse_repeated_keys, parse_int=_parse_whole_number)
    except RecursionError as error:
        raise ValueError(TOO_DEEP) from error
    if not _is_deep(value):
        try:
            # Passes nearly every text, a hundred times faster than a look at each value.
            json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
            return value
        except ValueError:
            pass
    found = find_unwritable(value)
    if found is not None:
        place, flaw = found
        raise ValueError(f"{_shorten_name('.'.join(map(str, place)))}: {flaw}" if place else flaw)
    return value


def find_unwritable(value: Any) -> tuple[Place, str] | None:
    """Return the first place in a JSON value that cannot be written and read again, and why; or None.

    Such are numbers that are not finite or too large for a float, half characters (lone surrogates), and more
    than `MAX_DEPTH` levels.
    """
    if _is_deep(value):
        return (), TOO_DEEP
    return next(((place, flaw) for place, leaf in _iterate_leaves(value) if (flaw := _find_flaw(leaf))), None)


def is_unfinished(text: str) -> bool:
    """Return whether JSON ends inside a string or before a bracket is closed.

    A killed process leaves such lines. Text that is no JSON for another reason is somebody's mistake.
    """
    rest = _STRING.sub(lambda string: "" if string[1] else '"', text)
    return '"' in rest or sum(map(rest.count, "[{")) > sum(map(rest.count, "]}"))


def _parse_whole_number(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits is too large")
    return int(digits)


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse repeated keys. JSON does not define their meaning; Python would silently keep the last one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {_shorten_name(twice)} occurs twice")
    return found


def _is_deep(value: Any) -> bool:
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(MAX_DEPTH):
        level = [
            item
            for outer in level
            for item in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(item, _CONTAINERS)
        ]
        if not level:
            return False
    return True


def _iterate_leaves(value: Any) -> Iterator[tuple[Place, Any]]:
    """Yield every key, text and number in order, with its place."""
    waiting: list[tuple[Place, Any]] = [((), value)]
    while waiting:
        place, item = waiting.pop()
        if isinstance(item, _CONTAINERS):
            if isinstance(item, dict):
                yield from (((*place, key), key) for key in item)
            inner = item.items() if isinstance(item, dict) else enumerate(item)
            waiting += reversed([((*place, key), one) for key, one in inner])
        else:
            yield place, item


def _find_flaw(leaf: Any) -> str | None:
    if isinstance(leaf, str):
        half = next((letter for letter in leaf if "\ud800" <= letter <= "\udfff"), None)
        return None if half is None else f"half of a character (\\u{ord(half):04x})"
    if isinstance(leaf, float) and not math.isfinite(leaf):
        return "a number that is not finite"
    if isinstance(leaf, int) and abs(leaf) >= 10**_MOST_DIGITS:
        return "a number that is too large"
    return None


def _shorten_name(name: str) -> str:
    """A key, or the way to a value, as it is told: keys may be of any length."""
    told = name.encode("utf-8", "backslashreplace").decode()
    return told if len(told) <= _LONGEST_NAME else f"{told[: _LONGEST_NAME - 1]}…"
