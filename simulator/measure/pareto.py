"""Which of several choices are worth their cost."""

from __future__ import annotations

from collections.abc import Sequence


def pareto_front(quality: Sequence[float | None], costs: Sequence[float | None]) -> list[bool]:
    """Whether each choice is Pareto-optimal: none other is at least as good and as cheap, and better in one.

    MetaRAG section 5.4 asks only that none is strictly better at no higher cost; then of two equally good
    choices the dearer one would be optimal, too. A choice without one of the numbers is never optimal.
    """
    known = [(q, c) for q, c in zip(quality, costs, strict=True) if q is not None and c is not None]
    return [
        q is not None
        and c is not None
        and not any(other[0] >= q and other[1] <= c and other != (q, c) for other in known)
        for q, c in zip(quality, costs, strict=True)
    ]
