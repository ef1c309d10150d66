"""What of a run failed, and why: the first headlines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from hallulab.scenarios.text.wording import format_count
from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.metrics.failures_counts import FailureCounts, RunFailures
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.metric import Flaws, Metric, RunFacts, Tallied
from hallulab.simulator.metrics.run_report import RunReport


class Failures(Metric):
    """Counts failed conversations, and replies without a score."""

    SECTION = RunFailures
    ORDER = 1

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._counts = FailureCounts()

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count a conversation and the verdicts on it."""
        self._counts.add(conversation, verdicts)

    def merge(self, other: Self) -> None:
        """Add the counts of other conversations."""
        self._counts.merge(other._counts)

    def result(self, tallied: Tallied) -> RunFailures:
        """Return what failed of all chatbots and detectors."""
        return self._counts.find(self.run.chatbots, self.run.detectors)

    @classmethod
    def headlines(cls, report: RunReport) -> Sequence[str]:
        """Say what failed, where it is much, before anything that was found."""
        return report.of(RunFailures).warnings

    @classmethod
    def notes(cls, report: RunReport) -> Sequence[str]:
        """Say of each chatbot what failed, however little it is."""
        return [
            f"{one.chatbot}: {one.failed} of {format_count(one.conversations, 'conversation')} failed: "
            f"{one.reason or one.first_error}"
            for one in report.of(RunFailures).failures
        ]
