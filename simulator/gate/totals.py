"""Numbers of a chatbot under a detector over all its conversations, failures included."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hallulab.simulator.compare.summary import RunSummary
from hallulab.simulator.gate.result import GateCheck
from hallulab.simulator.gate.rules import GateRules
from hallulab.simulator.metrics.hallucinations import merge_branches

LineKey = tuple[str, str]


@dataclass(frozen=True)
class Totals:
    """Counts of a chatbot under a detector."""

    conversations: int
    failed: int
    """Those that ended with an error."""
    turns: int
    scored: int
    """Turns scored and localised."""
    hallucinations: int
    personas: int
    """Personas with such a turn."""

    @property
    def hpt_1(self) -> float | None:
        """Hallucinations a scored turn."""
        return self.hallucinations / self.scored if self.scored else None

    @property
    def coverage(self) -> float | None:
        """Scored turns over all turns and the replies that failed conversations lack."""
        asked = self.turns + self.failed
        return self.scored / asked if asked else None


def count_totals(run: RunSummary) -> dict[LineKey, Totals]:
    """Count each chatbot under each detector of a run."""
    return {
        (chatbot, detector): _count(run, chatbot, detector)
        for chatbot in run.chatbots
        for detector in run.detectors
    }


def _count(run: RunSummary, chatbot: str, detector: str) -> Totals:
    own = [one for one in run.conversations if one.chatbot == chatbot]
    tallies = merge_branches(one.tally(detector) for one in own)
    return Totals(
        conversations=len(own),
        failed=sum(one.failed for one in own),
        turns=sum(tally.turns for tally in tallies),
        scored=sum(tally.scored_turns for tally in tallies),
        hallucinations=sum(tally.hallucinations for tally in tallies),
        personas=len({tally.person for tally in tallies if tally.scored_turns}),
    )


def check_limits(totals: dict[LineKey, Totals], rules: GateRules) -> Iterator[GateCheck]:
    """Yield a check for each limit and each chatbot under each detector."""
    for (chatbot, detector), own in totals.items():
        if rules.max_hpt is not None:
            hpt = own.hpt_1
            yield GateCheck(
                rule="max-hpt",
                chatbot=chatbot,
                detector=detector,
                outcome="not comparable" if hpt is None else "failed" if hpt > rules.max_hpt else "passed",
                message=f"HPT-1 {'unknown, no turn is scored' if hpt is None else f'{hpt:.3g}'}; "
                f"at most {rules.max_hpt:g} is allowed",
            )
        if rules.min_coverage is not None:
            coverage = own.coverage or 0.0
            yield GateCheck(
                rule="min-coverage",
                chatbot=chatbot,
                detector=detector,
                outcome="failed" if coverage < rules.min_coverage else "passed",
                message=f"coverage {coverage:.1%}; at least {rules.min_coverage:.1%} is needed",
            )
