"""Read JSON of endpoints and recordings, and repair it so that it can be written again.

`json_text` refuses what this module repairs. Files can be corrected by their authors, but a model's answer
cannot, and it cost a request.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from hallulab.scenarios.files.data_files import replace_surrogates
from hallulab.scenarios.files.json_text import MAX_DEPTH, TOO_DEEP


def read_json(text: str | bytes, clean: Callable[[str], str] = replace_surrogates) -> Any:
    """Parse other people's JSON.

    Args:
        text: the JSON.
        clean: applied to every string and every key.

    Returns:
        The value, with None for NaN, infinities and numbers too large for a float.

    Raises:
        ValueError: it is no JSON, or is nested deeper than `MAX_DEPTH`.
    """
    try:
        return repair_value(json.loads(text), clean)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


def repair_value(value: Any, clean: Callable[[str], str] = replace_surrogates) -> Any:
    """Repair a value of a JSON parser, as `read_json` does.

    Raises:
        ValueError: it is nested deeper than `MAX_DEPTH`.
    """
    return _repair_value(value, clean, MAX_DEPTH)


def _repair_value(value: Any, clean: Callable[[str], str], levels: int) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if not isinstance(value, dict | list):
        return value
    if levels == 0:
        raise ValueError(TOO_DEEP)
    if isinstance(value, list):
        return [_repair_value(item, clean, levels - 1) for item in value]
    return {clean(key): _repair_value(item, clean, levels - 1) for key, item in value.items()}
