"""Why judgements have no score, the most frequent reason first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hallulab.scenarios.text.wording import shorten_line
from hallulab.scenarios.transcript import Frozen, Judgement, Outcome

SHOWN = 5
"""Number of reasons shown for a detector."""


class Missing(Frozen):
    """A reason, and the number of judgements that are missing for it."""

    outcome: Outcome
    reason: str
    n: int


def count_reasons(judgements: Sequence[Judgement]) -> tuple[Missing, ...]:
    """Return the `SHOWN` most frequent reasons; of equally frequent ones, the first met."""
    counts = Counter(
        (judgement.outcome, shorten_line(judgement.error or ""))
        for judgement in judgements
        if judgement.outcome != "scored"
    )
    return tuple(
        Missing(outcome=outcome, reason=reason, n=n) for (outcome, reason), n in counts.most_common(SHOWN)
    )
