"""The turns of a run that a detector scored, as far as a draw needs to know them."""

from __future__ import annotations

from hallulab.simulator.annotate.plan import ScoredTurn
from hallulab.simulator.metrics.annotations import Annotations
from hallulab.simulator.metrics.hallucinations import index_by_detector
from hallulab.simulator.records.journals import Journals


def collect_scored_turns(journals: Journals, detector: str, annotations: Annotations) -> list[ScoredTurn]:
    """Return the turns that a detector scored and localised, in the order of the conversations.

    Args:
        annotations: what annotators found.

    Raises:
        UsageError: a turn has two verdicts of the detector.
    """
    found: list[ScoredTurn] = []
    for conversation, verdicts in journals.judged(by_case=False):
        own = index_by_detector(verdicts).get(detector, {})
        for turn in conversation.turns:
            verdict = own.get(turn.index)
            if verdict is not None and verdict.spans is not None and verdict.localised:
                found.append(
                    ScoredTurn(
                        conversation.id,
                        turn.index,
                        conversation.chatbot,
                        len(verdict.spans),
                        verdict.score or 0.0,
                        annotations.counts.get((conversation.id, turn.index)),
                    )
                )
    return found
