"""The one number that is shown beside a detector's name for a reply, and what it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hallulab.scenarios.transcript import Verdict
from hallulab.simulator.records.experiment_json import SavedExperiment

MEANINGS = {
    "halludetect": "severity {} of 5",
    "lexical": "share of words that the evidence lacks {}",
    "metarag": "score {} of 1",
    "direct-judge": "unsupported with probability {}",
}
"""Kind of a detector → its score in words. Other scores are called so: the higher, the worse."""


@dataclass(frozen=True)
class LaneScore:
    """How one detector's score of a reply is read."""

    detector: str
    kind: str
    threshold: float | None
    """Score from which it flags a reply; None: not known."""

    def describe(self, verdict: Verdict) -> str:
        """Return the score with its meaning and the threshold that decided; empty where nothing was scored.

        The score alone is compared with the threshold. A reply that was flagged or passed against the
        detector's general threshold was judged by that of its topic, which the journal does not hold.

        >>> place = {"conversation": "c", "turn": 0, "detector": "h", "version": "1"}
        >>> flagged = Verdict(**place, outcome="scored", score=4.98, flagged=True)
        >>> LaneScore("h", "halludetect", 4.0).describe(flagged)
        'severity 4.98 of 5, threshold 4'
        >>> LaneScore("h", "halludetect", 5.0).describe(flagged)
        'severity 4.98 of 5, by a lower threshold than the general 5'
        """
        if verdict.score is None:
            return ""
        told = MEANINGS.get(self.kind, "score {}").format(f"{verdict.score:.3g}")
        if self.threshold is None:
            return told
        if verdict.flagged == (verdict.score >= self.threshold):
            return f"{told}, threshold {self.threshold:.3g}"
        other = "lower" if verdict.flagged else "higher"
        return f"{told}, by a {other} threshold than the general {self.threshold:.3g}"


def read_lane_scores(saved: Sequence[SavedExperiment], names: Sequence[str]) -> list[LaneScore]:
    """Return how detectors' scores are read, by the runs' `experiment.json`; the first that knows wins."""
    kinds: Mapping[str, str] = {
        one.name: one.kind for each in reversed(saved) for one in each.experiment.detectors
    }
    methods = {name: method for each in reversed(saved) for name, method in each.methods.items()}
    return [
        LaneScore(name, kinds.get(name, name), methods[name].threshold if name in methods else None)
        for name in names
    ]
