"""How far the annotators of a run agree, on the turns that two of them labelled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from hallulab.scenarios.datasets.annotations import NAMED
from hallulab.scenarios.text.wording import NOTHING
from hallulab.scenarios.transcript import Count, Frozen
from hallulab.simulator.metrics.metric import CsvTable, TableMetric, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.show.columns import TWO_DECIMALS, Column
from hallulab.simulator.statistics.intervals import Rounded


class AgreeingPair(Frozen):
    """Two annotators under one guideline: a row of `annotators` in `report.json`."""

    annotator: str
    other: str
    guideline: str | None
    """Hash of the guideline; None: not known."""
    turns: Count
    same: Count
    """Those that both, or neither, call hallucinated."""
    kappa: Rounded | None
    """Cohen's kappa of that; None: all are called the same."""
    places: Count
    gamma: Rounded | None
    """Gamma of where they are and how severe; None: not defined."""
    no_gamma: str | None
    """Why not."""


def _name(annotator: str) -> str:
    return annotator.removeprefix(NAMED)


class AnnotatorAgreement(TableMetric[AgreeingPair]):
    """Compares every two annotators by their own labels; what settles a turn is not compared."""

    NAME, TITLE, LINK, ROW = "annotators", "Agreement of annotators", "annotators", AgreeingPair
    ORDER = TERMINAL_ORDER = 52
    COLUMNS = (
        Column("Annotator", "annotator", "one annotator", _name, kind="name", short="Annotator"),
        Column("Other", "other", "another, under the same guideline", _name, kind="text", short="Other"),
        Column("Guideline", "guideline", "hash of the guideline", lambda hash_of: hash_of or NOTHING,
               kind="text"),
        Column("Turns", "turns", "turns that both labelled", short="Turns"),
        Column("Same", "same", "those that both, or neither, call hallucinated", short="Same"),
        Column("Kappa", "kappa", "Cohen's kappa of that; 0: as by chance", TWO_DECIMALS, short="Kappa"),
        Column("Places", "places", "hallucinations by either in these turns", short="Places"),
        Column("Gamma", "gamma",
               "γ of where they are and how severe (Mathet and others 2015); 1: the same, 0: as by chance",
               TWO_DECIMALS, short="Gamma"),
    )  # fmt: skip

    def merge(self, other: Self) -> None:
        """Add nothing: annotations of all personas were read before."""

    def table(self, tallied: Tallied) -> Sequence[AgreeingPair]:
        """Return a row for every two annotators who labelled a turn under the same guideline."""
        return [
            AgreeingPair(
                annotator=pair.annotators[0],
                other=pair.annotators[1],
                guideline=pair.guideline,
                turns=pair.turns,
                same=pair.same,
                kappa=pair.kappa,
                places=pair.places.units,
                gamma=pair.places.gamma,
                no_gamma=pair.places.undefined,
            )
            for pair in self.run.annotations.pairs
        ]

    @classmethod
    def lines(cls, report: RunReport) -> Sequence[str]:
        """Say why there is no gamma."""
        return [
            f"No gamma of {_name(row.annotator)} and {_name(row.other)}: {row.no_gamma}."
            for row in cls.rows(report)
            if row.no_gamma is not None
        ]

    @classmethod
    def hints(cls, report: RunReport) -> Sequence[str]:
        """Say what is compared, and why there is no gamma."""
        about = "By the annotators' own labels alone; decisions on what they differ in are not compared."
        return (about, *cls.lines(report))

    @classmethod
    def csv(cls, report: RunReport) -> CsvTable | None:
        """Return the table; None unless two annotators labelled a turn, as in most runs."""
        return super().csv(report) if cls.rows(report) else None
