"""The rows of a report: hallucinations per turn and token accuracy of each chatbot under each detector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.metrics.hallucinations import Row
from hallulab.simulator.metrics.metric import CsvTable, Metric, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.metrics.self_judging import explain_self_judging, explain_sign
from hallulab.simulator.show.columns import (
    CHATBOT,
    DETECTOR,
    GROUPED,
    PERCENT,
    TWO_DECIMALS,
    Column,
    build_decimal_format,
    group_rows,
    is_lacking,
)
from hallulab.simulator.show.document import GroupedTable, Part

HPT = "hallucinations over scored turns, all conversations together"
TOKACC = "share of the tokens of replies that are outside every flagged span, all conversations together"
_MEAN = "the same for each conversation, then the mean"
COLUMNS = (
    replace(CHATBOT, sign=explain_sign),
    DETECTOR,
    Column("Calls / reply", "calls_per_reply", "model calls of the chatbot a turn", build_decimal_format(1),
           short="Calls/\nreply"),
    Column("Tokens / reply", "tokens_per_reply",
           "tokens that the server read and wrote for the chatbot a turn, those out of its cache included; "
           "a dash where it did not tell", GROUPED),
    Column("HPT-1", "hpt_1", HPT, TWO_DECIMALS, beside="hpt_1_ci95", short="HPT-1"),
    Column("HPT-2", "hpt_2", _MEAN, TWO_DECIMALS, short="HPT-2"),
    Column("TokAcc-1 %", "tokacc_1", TOKACC, build_decimal_format(1, 100), beside="tokacc_1_ci95",
           short="TokAcc-1 %"),
    Column("TokAcc-2 %", "tokacc_2", _MEAN, build_decimal_format(1, 100), short="TokAcc\n-2 %"),
    Column("Chats with hallucination %", "hallucinated_chats",
           "share of the conversations with a scored turn that have a hallucination", PERCENT,
           short="Halluc.\nchats %"),
    Column("Coverage %", "coverage", "share of the turns that the detector scored and said where", PERCENT,
           short="Cov.\n%", warns=is_lacking),
    Column("Scored turns", "scored_turns", "these turns; all numbers are computed from them"),
    Column("of", "turns", "all turns of the chatbot's conversations"),
    Column("Personas", "personas", "with whom these conversations are; intervals resample these"),
)  # fmt: skip


class ResultSection(Frozen):
    """Fields of `report.json`."""

    rows: tuple[Row, ...]
    """Each chatbot under each detector."""


class ResultMetric(Metric):
    """Shows the rows. The page has them first, with the charts, so this is no section of its own."""

    SECTION = ResultSection
    TABLES = (("Results", COLUMNS),)
    ORDER = TERMINAL_ORDER = 10

    def merge(self, other: Self) -> None:
        """Add nothing: the rows are what every report counts."""

    def result(self, tallied: Tallied) -> ResultSection:
        """Return the rows."""
        return ResultSection(rows=tallied.rows)

    @classmethod
    def notes(cls, report: RunReport) -> Sequence[str]:
        """Explain the signs of chatbots that are judged by their own verifier or guard."""
        return explain_self_judging(report.rows)

    @classmethod
    def tables(cls, report: RunReport) -> Sequence[Part]:
        """Return the table."""
        groups = group_rows(report.rows, "detector", report.detectors)
        return (GroupedTable(COLUMNS, groups, by="detector"),)

    @classmethod
    def beside(cls, report: RunReport) -> CsvTable:
        """Return the rows themselves."""
        return CsvTable(COLUMNS, report.rows)
