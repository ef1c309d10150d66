"""The results of a run: `report.json`, whose fields are those of every report and those of its metrics."""

from __future__ import annotations

import json
from typing import Literal, TypeVar

from pydantic import Field

from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.metrics.hallucinations import Row
from hallulab.simulator.statistics.intervals import LEAST_FOR_INTERVAL

Section = TypeVar("Section", bound=Frozen)


class Intervals(Frozen):
    """Requirements of intervals."""

    least: int = LEAST_FOR_INTERVAL
    """Personas below which there is none."""

    @property
    def hint(self) -> str:
        """When there is none, in a sentence."""
        return (
            f"With fewer than {self.least} personas, or where all have the same number, there is no interval."
        )


class RunReport(Frozen):
    """Parts of every report. A whole one also has the fields of all metrics' sections, which it inherits."""

    layout: Literal[1] = Field(default=1, alias="schema")
    """Version of the layout; higher when a field changes its meaning or goes away."""
    intervals: Intervals = Intervals()
    """Requirements of intervals."""
    imported: bool = False
    """True if the conversations were imported or typed by a person: there is no simulated user to audit."""
    rows: tuple[Row, ...]
    """Each chatbot under each detector."""

    @property
    def chatbots(self) -> list[str]:
        """Names of the chatbots, in the order of the rows."""
        return list(dict.fromkeys(row.chatbot for row in self.rows))

    @property
    def detectors(self) -> list[str]:
        """Names of the detectors, likewise."""
        return list(dict.fromkeys(row.detector for row in self.rows))

    def by(self, detector: str) -> list[Row]:
        """Return the rows of a detector."""
        return [row for row in self.rows if row.detector == detector]

    def of(self, section: type[Section]) -> Section:
        """Return the report as the section of a metric, for its fields: `report.of(CostSection).ledger`."""
        assert isinstance(self, section), f"the report was made without {section.__name__}"
        return self

    def text(self) -> str:
        """Return the text of `report.json`."""
        values = self.model_dump(mode="json", by_alias=True)
        return json.dumps(values, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
