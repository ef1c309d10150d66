"""Places in JSON, by JMESPath (https://jmespath.org), bounded in time and size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import AfterValidator

_LONGEST_PATH = 1_000
"""Characters of a JMESPath at most: one is read by recursion."""
_MOST_COPIES = 64
"""Copies of an answer at most that the lists in a JMESPath make."""


def _check_path(path: str) -> str:
    if len(path) > _LONGEST_PATH:
        raise ValueError(f"a JMESPath of more than {_LONGEST_PATH:,} characters is not read")
    try:
        copies = _count_copies(jmespath.compile(path).parsed)
    except (JMESPathError, ValueError, RecursionError) as error:
        said = "too deep" if isinstance(error, RecursionError) else " ".join(str(error).split())
        raise ValueError(f"{path[:200]!r} is no JMESPath: {said[:120]}") from error
    if copies > _MOST_COPIES:
        raise ValueError(f"{path[:200]!r} makes {copies:,} copies of an answer; shorten its lists")
    return path


def _count_copies(node: Mapping[str, Any]) -> int:
    """Return how many times as large as its value the result of an expression may be."""
    inner = [_count_copies(one) for one in node.get("children", ()) if isinstance(one, Mapping)]
    own = (
        len(inner) if node["type"] in ("multi_select_list", "multi_select_dict", "function_expression") else 1
    )
    return max(own, 1) * math.prod(inner)


JmesPath = Annotated[str, AfterValidator(_check_path)]
"""Where something stands in JSON, such as `choices[0].message.content`."""


def search(path: str, value: Any) -> Any:
    """Return what stands in a value at a path; None: nothing."""
    try:
        return jmespath.search(path, value)
    except Exception:  # noqa: BLE001 - a function that does not take such a value: ceil("Infinity")
        return None
