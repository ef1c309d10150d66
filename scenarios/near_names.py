"""The name that is probably meant where an unknown one is given."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

_LONGEST = 60
"""Characters of a name that are compared: the time grows with their square."""
_MOST = 2000
"""Names that are compared at most."""


def find_near_name(name: str, known: Iterable[str], least: float = 0.65) -> str | None:
    """Return the known name that is most like another, whatever the case; None: none is like it.

    >>> find_near_name("Halludetct", ["lexical", "halludetect"])
    'halludetect'

    Args:
        name: the unknown name, which may be anything.
        least: how like it must be, from 0 to 1, as `difflib` counts.
    """
    by_small = {one[:_LONGEST].lower(): one for one in islice(known, _MOST)}
    return next(
        (by_small[one] for one in get_close_matches(name[:_LONGEST].lower(), by_small, 1, least)), None
    )


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return what a sentence adds behind an unknown name: the near one in brackets, or nothing.

    >>> suggest_name("vanila", ["vanilla", "agent"]), suggest_name("x", ["vanilla"])
    (' (did you mean `vanilla`?)', '')
    """
    near = find_near_name(name, known)
    return "" if near is None else f" (did you mean `{near}`?)"
