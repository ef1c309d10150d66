"""A model's name among those that an endpoint serves."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches

MOST_SHOWN = 240
"""Characters of names that are shown at most."""

MOST_COMPARED = 2000
"""Names that are compared at most: an endpoint may list any number."""

_LONGEST = 100
"""Characters of a name that is shown."""

_FOLDER = "models/"
_USUAL_TAG = ":latest"


def find_served_name(name: str, served: Collection[str]) -> str | None:
    """Return the endpoint's name of a model; None if it serves none of that name.

    The same name with another case, with Ollama's `:latest` or Gemini's `models/` is the same model, if just
    one is.

    >>> find_served_name("llama3.2", ["llama3.2:latest", "llama3.2:1b"])
    'llama3.2:latest'
    """
    if name in served:
        return name
    same = [one for one in served if _simplify(one) == _simplify(name)]
    return same[0] if len(same) == 1 else None


def describe_served(name: str, served: Sequence[str]) -> str:
    """Say which models an endpoint serves, and which of them have names near to one that it does not serve.

    >>> describe_served("gpt-4o-mni", ["gpt-4o", "gpt-4o-mini", "whisper-1"])
    'it serves: gpt-4o, gpt-4o-mini, whisper-1'
    """
    shown = [" ".join(one.split())[:_LONGEST] for one in served]
    if not shown:
        return "it serves: nothing"
    whole = _fit(shown)
    if len(whole) == len(shown):
        return f"it serves: {', '.join(shown)}"
    rest = f"it serves: {', '.join(whole)} and {len(shown) - len(whole):,} more"
    by_small = {one.lower(): one for one in reversed(shown[:MOST_COMPARED])}
    near = _fit([by_small[one] for one in get_close_matches(name.lower(), by_small, n=5)])
    return f"near names: {', '.join(near)}; {rest}" if near else rest


def _fit(names: Sequence[str]) -> list[str]:
    """Return the first names that may be shown together, at least one."""

    def take() -> Iterator[str]:
        left = MOST_SHOWN
        for name in names:
            left -= len(name) + 2
            if left < 0:
                return
            yield name

    return list(take())


def _simplify(name: str) -> str:
    return name.lower().removeprefix(_FOLDER).removesuffix(_USUAL_TAG)
