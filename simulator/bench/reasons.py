"""Why judgements have no score, most frequent reason first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from scenarios.transcript import Judgement

SHOWN = 5
"""Reasons told of a detector."""
LENGTH = 200
"""Characters told of a reason."""


def reasons(judgements: Sequence[Judgement]) -> list[dict[str, Any]]:
    """The `SHOWN` most frequent reasons (`outcome`, `reason`, `n` judgements); of equals, the first met."""
    counts = Counter(
        (judgement.outcome, _line(judgement.error or ""))
        for judgement in judgements
        if judgement.outcome != "scored"
    )
    return [
        {"outcome": outcome, "reason": reason, "n": n} for (outcome, reason), n in counts.most_common(SHOWN)
    ]


def _line(text: str) -> str:
    """One line that a terminal takes for nothing but text: a reason may hold what a model wrote."""
    line = "".join(char if char.isprintable() else "�" for char in " ".join(text.split()))
    return line if len(line) <= LENGTH else f"{line[: LENGTH - 1]}…"
