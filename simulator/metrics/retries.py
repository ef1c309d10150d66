"""Hallucinations per turn of conversations held anew after a failure, beside those of first tries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Self

from hallulab.scenarios.transcript import Conversation, Frozen
from hallulab.simulator.metrics.hallucinations import ByDetector, count_verdicts
from hallulab.simulator.metrics.metric import CsvTable, Flaws, RunFacts, TableMetric, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.records.journals import derive_first_try
from hallulab.simulator.show.columns import CHATBOT, DETECTOR, TWO_DECIMALS, Column
from hallulab.simulator.statistics.intervals import Interval, Ratio, compute_intervals, compute_ratio_of_sums
from hallulab.simulator.statistics.sums import PersonSums


class Retried(Frozen):
    """A chatbot under a detector, with first tries and retries apart: a row of `retries` in `report.json`."""

    chatbot: str
    detector: str
    first_tries: int
    """Conversations that count and were held once."""
    first_hpt: float | None
    """HPT-1 of these; None: no turn of them is scored."""
    first_hpt_ci95: Interval
    """Its 95% interval over personas; None: there are too few, or all have the same HPT-1."""
    retries: int
    """Conversations that count and were held anew after a failure."""
    retried_hpt: float | None
    """HPT-1 of these, likewise."""
    retried_hpt_ci95: Interval
    """Its 95% interval, likewise."""


class Retries(TableMetric[Retried]):
    """Compares conversations that were held anew with the other ones, of chatbots that have such."""

    NAME, TITLE, LINK, ROW = "retries", "Retried conversations", "retries", Retried
    ORDER = TERMINAL_ORDER = 81
    COLUMNS = (
        CHATBOT,
        DETECTOR,
        Column("First tries", "first_tries", "conversations that were held once", short="First\ntries"),
        Column("HPT-1, first tries", "first_hpt", "hallucinations over scored turns of these", TWO_DECIMALS,
               beside="first_hpt_ci95", short="HPT-1"),
        Column("Retried", "retries", "conversations that were held anew after a failure", short="Retried"),
        Column("HPT-1, retried", "retried_hpt", "hallucinations over scored turns of these", TWO_DECIMALS,
               beside="retried_hpt_ci95", short="HPT-1"),
    )  # fmt: skip

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._conversations: Counter[tuple[str, bool]] = Counter()
        """(Chatbot, whether it is a retry) → conversations."""
        self._sums = PersonSums(2)
        """Hallucinations and scored turns, by chatbot, detector and whether it is a retry."""

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count a conversation among the first tries or the retries of its chatbot."""
        retried = derive_first_try(conversation.id) != conversation.id
        self._conversations[conversation.chatbot, retried] += 1
        person = (conversation.scenario, conversation.persona)
        for detector in self.run.detectors:
            found = count_verdicts(conversation, verdicts.get(detector, {}))
            if found.scored_turns:
                key = (conversation.chatbot, detector, retried)
                self._sums.add(person, key, (found.hallucinations, found.scored_turns))

    def merge(self, other: Self) -> None:
        """Add the conversations of other personas."""
        self._conversations.update(other._conversations)
        self._sums.merge(other._sums)

    def table(self, tallied: Tallied) -> Sequence[Retried]:
        """Return a row for each detector of each chatbot that has retries."""
        chatbots = [name for name in self.run.chatbots if self._conversations[name, True]]
        keys = [(chatbot, detector) for chatbot in chatbots for detector in self.run.detectors]
        samples = [self._list_ratios(*key, retried) for key in keys for retried in (False, True)]
        ci95 = compute_intervals(samples)
        return [
            Retried(
                chatbot=chatbot,
                detector=detector,
                first_tries=self._conversations[chatbot, False],
                first_hpt=compute_ratio_of_sums(samples[2 * at]),
                first_hpt_ci95=ci95[2 * at],
                retries=self._conversations[chatbot, True],
                retried_hpt=compute_ratio_of_sums(samples[2 * at + 1]),
                retried_hpt_ci95=ci95[2 * at + 1],
            )
            for at, (chatbot, detector) in enumerate(keys)
        ]

    def _list_ratios(self, chatbot: str, detector: str, retried: bool) -> list[Ratio]:
        """Return hallucinations over scored turns of each persona."""
        return [Ratio(*numbers) for _, numbers in self._sums.items((chatbot, detector, retried))]

    @classmethod
    def hints(cls, report: RunReport) -> Sequence[str]:
        """Say what a difference means."""
        return (
            "A retried conversation was held anew because its first try failed. Both kinds count in all "
            "other numbers. If failures depend on what is said, the two differ.",
        )

    @classmethod
    def csv(cls, report: RunReport) -> CsvTable | None:
        """Return the table; None without retries, as in most runs."""
        return super().csv(report) if cls.rows(report) else None
