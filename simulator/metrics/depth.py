"""Hallucinations per turn of each chatbot by how far into the conversation the turn is."""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.scenarios.transcript import Conversation, Frozen
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.metric import Flaws, RunFacts, TableMetric, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.show.charts import DepthPoint, draw_depths
from hallulab.simulator.show.columns import CHATBOT, DETECTOR, GROUPED, TWO_DECIMALS, Column
from hallulab.simulator.show.document import Figures, Paragraph, Section
from hallulab.simulator.statistics.intervals import Interval, Rounded, compute_interval, compute_ratio_of_sums
from hallulab.simulator.statistics.sums import PersonSums

BANDS = ((1, "1"), (2, "2"), (3, "3"), (4, "4"), (9, "5 to 9"))
"""Last turn of each band, and its name."""
LAST_BAND = "10 and later"
BAND_NAMES = (*(name for _, name in BANDS), LAST_BAND)


class DepthRate(Frozen):
    """Turns of a chatbot at one depth under a detector: a row of `depth` in `report.json`."""

    chatbot: str
    detector: str
    turn: str
    scored: int
    hpt: Rounded | None
    """None: no turn is scored."""
    hpt_ci95: Interval
    """Its 95% interval over personas; None: there are too few, or all have the same HPT-1."""


class Depths(TableMetric[DepthRate]):
    """Counts hallucinations by turn, of runs whose conversations have more than one."""

    NAME, TITLE, LINK, ROW = "depth", "Hallucinations per turn, by turn", "By turn", DepthRate
    ORDER = TERMINAL_ORDER = 15
    ON_TERMINAL = False
    FILE = "with rows"
    COLUMNS = (
        CHATBOT,
        DETECTOR,
        Column("Turn", "turn", "which turns, counted from 1", kind="text", short="Turn"),
        Column("Scored", "scored", "turns that the detector scored with places", GROUPED, short="Scored"),
        Column("HPT-1", "hpt", "hallucinations over these scored turns", TWO_DECIMALS, beside="hpt_ci95",
               short="HPT-1"),
    )  # fmt: skip

    COUNTS = ("_sums",)

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._sums = PersonSums(2)
        """Hallucinations and scored turns, by chatbot, detector and band."""

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count the turns of a conversation."""
        person = (conversation.scenario, conversation.persona)
        bands = {turn.index: name_band(conversation.depth(turn.index) + 1) for turn in conversation.turns}
        for detector in self.run.detectors:
            for turn, verdict in verdicts.get(detector, {}).items():
                if verdict.outcome == "scored" and verdict.localised and turn in bands:
                    key = (conversation.chatbot, detector, bands[turn])
                    self._sums.add(person, key, (len(verdict.spans or ()), 1))

    def table(self, tallied: Tallied) -> Sequence[DepthRate]:
        """Return a row for each band with scored turns; nothing where all turns are in one band."""
        found = set(self._sums.keys)
        used = {key[2] for key in found}
        bands = [name for name in BAND_NAMES if name in used]
        if len(bands) < 2:
            return []
        keys = [
            (chatbot, detector, band)
            for detector in self.run.detectors
            for chatbot in self.run.chatbots
            for band in bands
            if (chatbot, detector, band) in found
        ]
        return [
            DepthRate(
                chatbot=key[0],
                detector=key[1],
                turn=key[2],
                scored=sum(ratio.denominator for ratio in sample),
                hpt=compute_ratio_of_sums(sample),
                hpt_ci95=compute_interval(sample, "rate"),
            )
            for key in keys
            for sample in [self._sums.list_ratios(key)]
        ]

    @classmethod
    def section(cls, report: RunReport) -> Section | None:
        """Draw a chart a chatbot; nothing where no conversation has a second turn."""
        rows = cls.rows(report)
        if len({row.turn for row in rows}) < 2:
            return None
        points = [
            DepthPoint(row.chatbot, report.detectors.index(row.detector), row.turn, row.hpt, row.hpt_ci95)
            for row in rows
        ]
        figures = draw_depths(points, report.detectors)
        has_intervals = any(row.hpt_ci95 for row in rows)
        lines = "; line up and down: 95% interval over personas" if has_intervals else ""
        hint = (
            "HPT-1 of each chatbot by the number of the turn, in the colours of the detectors as above. Dot: "
            f"estimate{lines}. Conversations end at different turns, so later turns are of fewer "
            "conversations. report-depth.csv has the numbers."
        )
        return Section(cls.NAME, cls.TITLE, (Paragraph(hint), Figures(figures)), cls.LINK)


def name_band(turn: int) -> str:
    """Return the band of a turn, counted from 1.

    >>> name_band(4), name_band(7), name_band(10)
    ('4', '5 to 9', '10 and later')
    """
    return next((name for most, name in BANDS if turn <= most), LAST_BAND)
