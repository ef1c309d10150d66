"""A model's name among those that an endpoint serves."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

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


def find_aliases(listed: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the other names of the models in a list, each with its usual one.

    >>> find_aliases([{"id": "grok-4-0709", "aliases": ["grok-4"]}])
    {'grok-4': 'grok-4-0709'}
    """
    lists = [(str(entry["id"]), entry.get("aliases")) for entry in listed]
    named = [(usual, others) for usual, others in lists if isinstance(others, list)]
    return {str(other): usual for usual, others in named for other in others}


def has_further_page(told: Mapping[str, Any]) -> bool:
    """Return whether a list of models goes on elsewhere, where nobody looks: the address may be anybody's.

    >>> has_further_page({"data": [{"id": "m"}], "has_more": True})
    True
    """
    return any(
        told.get(name) for name in ("has_more", "next", "next_page", "nextPageToken", "next_page_token")
    )


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
