"""Why judgements have no score, most frequent reason first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from scenarios.text.wording import in_brief
from scenarios.transcript import Judgement

SHOWN = 5
"""Reasons told of a detector."""


def reasons(judgements: Sequence[Judgement]) -> list[dict[str, Any]]:
    """The `SHOWN` most frequent reasons (`outcome`, `reason`, `n` judgements); of equals, the first met."""
    counts = Counter(
        (judgement.outcome, in_brief(judgement.error or ""))
        for judgement in judgements
        if judgement.outcome != "scored"
    )
    return [
        {"outcome": outcome, "reason": reason, "n": n} for (outcome, reason), n in counts.most_common(SHOWN)
    ]
