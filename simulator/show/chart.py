"""What a chart of a run's page is: a title, and an SVG element made from the report's rows.

A chart is one class in one file of `simulator/report/charts`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from hallulab.simulator.metrics.hallucinations import Row


class Chart(ABC):
    """Draws the rows of a report."""

    TITLE: ClassVar[str]
    """What is shown, and which end is good."""
    ORDER: ClassVar[int] = 100
    """Its place on the page: lower is earlier."""

    @classmethod
    def caption(cls, rows: Sequence[Row]) -> str:
        """Return what stands above the chart: the title, unless it depends on the rows."""
        return cls.TITLE

    @classmethod
    @abstractmethod
    def svg(cls, rows: Sequence[Row]) -> str:
        """Return an SVG element, as it shall stand on the page; empty: the chart is left out.

        Texts from elsewhere must be escaped. Colours come from the classes of the page's style sheet, because
        the page's security policy forbids inline styles.
        """
