"""Signs that the model behind a printed-word reading is too small for it, by the verdicts alone.

The catalogue says of few models that they are small. Of any other model the answers tell. Two signs were
measured, with the default 1.5B model on ten replies, and with a strong general-purpose language model
(`tests/benchmarks/test_small_model_signs.py` counts them in both recordings):

| sign | 1.5B | strong model |
|---|---|---|
| MetaRAG says YES to a fact's synonym and to its opposite | 10 of 19 facts | 0 of 212 facts |
| HalluDetect's filter keeps an objection | 13 of 14 | 75 of 88 (`gold`), 92 of 191 (headline) |

On `gold` 84% of the replies are hallucinated, so a filter has little to remove there.

The share of sentences that the analysis lists is no sign: 14 of 21 with the 1.5B, 89 of 113 with the strong
model on `gold`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from hallulab.detectors.halludetect.strategies import PAPER_THRESHOLD
from hallulab.scenarios.transcript import Unit

Sign = Literal["agrees with opposites", "filters nothing"]

LEAST = {"agrees with opposites": 10, "filters nothing": 14}
"""Facts or objections from which a sign counts; the second are as many as were measured."""
SHARES = {"agrees with opposites": 0.2, "filters nothing": 0.9}
"""Shares from which a model's answers look like a small model's."""


@dataclass
class SignCount:
    """How often a sign was met."""

    met: int = 0
    seen: int = 0

    def is_small(self, sign: Sign) -> bool:
        """Return whether the answers look like those of a small model."""
        return self.seen >= LEAST[sign] and self.met >= SHARES[sign] * self.seen


def find_signs(units: Iterable[Unit]) -> Iterable[tuple[Sign, bool]]:
    """Yield each sign that a unit of a verdict by printed words can show, and whether it does."""
    for unit in units:
        if "refiner" in unit.details and unit.score is not None:
            yield "filters nothing", unit.score >= PAPER_THRESHOLD
        said = {key for key, value in unit.details.items() if key.endswith("P(YES)") and value == 1.0}
        printed = {key for key, value in unit.details.items() if " P(" in key}
        if printed and all(unit.details[key] == 1.0 for key in printed):
            both = all(any(key.startswith(kind) for key in said) for kind in ("synonym", "antonym"))
            yield "agrees with opposites", both
