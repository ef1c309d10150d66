"""Pareto-optimal choices: those that are worth their cost."""

from __future__ import annotations

from collections.abc import Sequence


def find_pareto_front(choices: Sequence[Sequence[float | None]]) -> list[bool]:
    """Return which choices are Pareto-optimal: no other is at least as good in everything and better in one.

    >>> find_pareto_front([(0.9, -5), (0.8, -1), (0.8, -9)])
    [True, True, False]

    MetaRAG section 5.4 asks only that no other is strictly better at no higher cost. Then the dearer one of
    two equally good choices would be optimal, too.

    Args:
        choices: the same criteria for each, higher is better (a cost is given with a minus). A choice that
            lacks a number is never optimal.
    """
    known = [tuple(choice) for choice in choices if None not in choice]
    return [
        None not in choice
        and not any(
            other != tuple(choice) and all(a >= b for a, b in zip(other, choice, strict=True))  # type: ignore[operator]
            for other in known
        )
        for choice in choices
    ]
