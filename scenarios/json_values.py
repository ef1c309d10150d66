"""JSON that comes from outside, as values that can be written again."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from scenarios.data_files import without_surrogates

MOST_LEVELS = 100
"""Lists and objects inside one another; real answers have ten."""


def read_json(text: str | bytes, clean: Callable[[str], str] = without_surrogates) -> Any:
    """Parse what somebody else wrote.

    Args:
        text: the JSON.
        clean: what every string and every key in it goes through.

    Returns:
        The value. A number that is none (NaN, infinity, beyond every float) is null.

    Raises:
        ValueError: it is no JSON, or is nested deeper than `MOST_LEVELS`.
    """
    try:
        return writable(json.loads(text), clean)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def writable(value: Any, clean: Callable[[str], str] = without_surrogates) -> Any:
    """A value of a JSON parser, as `read_json` gives it.

    Raises:
        ValueError: it is nested deeper than `MOST_LEVELS`.
    """
    return _writable(value, clean, MOST_LEVELS)


_TOO_DEEP = f"lists and objects inside one another, more than {MOST_LEVELS} deep"


def _writable(value: Any, clean: Callable[[str], str], levels: int) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if not isinstance(value, dict | list):
        return value
    if levels == 0:
        raise ValueError(_TOO_DEEP)
    if isinstance(value, list):
        return [_writable(item, clean, levels - 1) for item in value]
    return {clean(key): _writable(item, clean, levels - 1) for key, item in value.items()}
