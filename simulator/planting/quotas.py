"""Quotas of a data set: shares of names as whole numbers of dialogues that add up."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from itertools import product
from typing import TypeVar

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.near_names import suggest_name

Name = TypeVar("Name", bound=Hashable)

_SLACKS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, math.inf)
"""How many times its even share a pair of names may get, tried in turn."""


def read_shares(
    flag: str, given: Sequence[str] | Mapping[str, float], known: Collection[str] | None = None
) -> dict[str, float]:
    """Return the share of each name: `terse=0.2`, `plain=0.8`, or names alone, which share evenly.

    Args:
        flag: where it was given, for errors.
        known: the names that there are; None: they are checked elsewhere.

    Raises:
        UsageError: a name is unknown or stands twice, or the shares are wrong.
    """
    parts = [(name, str(share)) for name, share in given.items()] if isinstance(given, Mapping) else []
    parts = parts or [
        (name.strip(), share.strip()) for name, _, share in (one.partition("=") for one in given)
    ]
    if not any(share for _, share in parts):
        parts = [(name, repr(1 / len(parts))) for name, _ in parts]
    shares: dict[str, float] = {}
    for name, text in parts:
        if known is not None and name not in known:
            near = suggest_name(name, known)
            raise UsageError(
                f"{flag} {name}: there is no such one{near}. Give some of: {', '.join(sorted(known))}."
            )
        try:
            share = float(text)
        except ValueError:
            share = math.nan
        if not 0 <= share <= 1 or name in shares:
            raise UsageError(
                f"{flag} {name}={text}: give each name once with its share, such as terse=0.2,plain=0.8, or "
                "names alone, which share evenly."
            )
        shares[name] = share
    if abs(sum(shares.values()) - 1) > 1e-6:
        raise UsageError(f"{flag}: the shares add up to {sum(shares.values()):g}. They must add up to 1.")
    return shares


def allot(shares: Mapping[Name, float], number: int) -> dict[Name, int]:
    """Return how many of a number each name gets, by largest remainder; the first of equal ones is first.

    >>> allot({"terse": 0.25, "plain": 0.75}, 10)
    {'terse': 3, 'plain': 7}
    """
    total = sum(shares.values())
    # Rounded, so that 0.29 of 100 is 29.
    exact = {name: round(share / total * number, 9) for name, share in shares.items()}
    counts = {name: math.floor(value) for name, value in exact.items()}
    by_remainder = sorted(exact, key=lambda name: counts[name] - exact[name])
    for name in by_remainder[: number - sum(counts.values())]:
        counts[name] += 1
    return counts


def cross(
    rows: Mapping[Name, int],
    columns: Mapping[str, int],
    allowed: Collection[tuple[Name, str]],
    *,
    exact_rows: bool,
) -> dict[tuple[Name, str], int] | None:
    """Return a table of numbers with these sums, as even as it can be; None if there is none.

    The table is an integral maximum flow from the rows to the columns. No pair gets more than its even share,
    then than 1.25 times that, and so on until the sums are met; then rows that need not be exact likewise.

    Args:
        rows: sum of each row.
        columns: sum of each column.
        allowed: the pairs that may be above 0.
        exact_rows: False if rows may have other sums where pairs that are not allowed leave no choice.

    >>> cross({"rail": 2, "air": 2}, {"answer": 3, "decline": 1},
    ...       [("rail", "answer"), ("rail", "decline"), ("air", "answer")], exact_rows=True)
    {('rail', 'answer'): 1, ('rail', 'decline'): 1, ('air', 'answer'): 2}
    """
    total = sum(columns.values())
    if exact_rows and sum(rows.values()) != total:
        return None
    rows = allot(rows, total) if any(rows.values()) else rows
    row_at = {row: 1 + place for place, row in enumerate(rows)}
    column_at = {column: 1 + len(rows) + place for place, column in enumerate(columns)}
    end = 1 + len(rows) + len(columns)
    pairs = [(row, column) for row in rows for column in columns if (row, column) in allowed]

    def limit(even: float, slack: float) -> int:
        return total if math.isinf(slack) else min(total, math.ceil(even * slack))

    for row_slack, slack in product((1.0,) if exact_rows else _SLACKS, _SLACKS):
        capacity = np.zeros((end + 1, end + 1), dtype=np.int32)
        for row, count in rows.items():
            capacity[0, row_at[row]] = limit(count, row_slack)
        for column, count in columns.items():
            capacity[column_at[column], end] = count
        for row, column in pairs:
            even = rows[row] * columns[column] / max(total, 1)
            capacity[row_at[row], column_at[column]] = limit(even, slack)
        found = maximum_flow(csr_array(capacity), 0, end)
        if found.flow_value == total:
            flow = found.flow.toarray()
            table = {(row, column): int(flow[row_at[row], column_at[column]]) for row, column in pairs}
            return {pair: count for pair, count in table.items() if count}
    return None
