"""Options of detectors that judge by features."""

from __future__ import annotations

from pydantic import Field

from hallulab.detectors.features.features import Attribution
from hallulab.scenarios.transcript import Frozen


class RuleOptions(Frozen):
    """Options of the four methods without training, and of `combined`."""

    threshold: float | None = Field(default=None, ge=0.0, le=1.0)
    """Score from which a reply is flagged; None: the one that was tuned."""
    attribution: Attribution = "tfidf"
    """The score by which a sentence is attributed to a chunk; TF-IDF is the paper's best (Table 9)."""
    model: str | None = None
    """File of a model trained elsewhere; None: the model in the package."""
