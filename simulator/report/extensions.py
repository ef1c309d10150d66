"""Find the metrics and charts of reports: those in their folder, and those of installed distributions."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache
from inspect import isabstract
from pkgutil import iter_modules
from types import ModuleType

from hallulab.scenarios.components import find_component, list_entry_points
from hallulab.scenarios.errors import UsageError
from hallulab.simulator import metrics
from hallulab.simulator.metrics.metric import Metric
from hallulab.simulator.report import charts
from hallulab.simulator.show.chart import Chart

METRICS, CHARTS = "hallulab.metrics", "hallulab.charts"
"""Groups of the entry points by which distributions offer metrics and charts."""


@cache
def load_metrics() -> tuple[type[Metric], ...]:
    """Return all metrics in the order of the page.

    Raises:
        UsageError: a distribution's metric cannot be imported, is none, or gives a field that another gives.
    """
    found = []
    owners: dict[str, str] = {}
    for name, one in _load("metric", metrics, METRICS):
        if not (isinstance(one, type) and issubclass(one, Metric)):
            raise UsageError(f"metric {name!r}: {one!r} is no subclass of Metric.")
        for field in one.SECTION.model_fields:
            if field in owners:
                raise UsageError(f"metric {name!r}: {owners[field]!r} gives report.json a `{field}`, too.")
            owners[field] = name
        found.append(one)
    return tuple(sorted(found, key=lambda metric: metric.ORDER))


@cache
def load_charts() -> tuple[type[Chart], ...]:
    """Return all charts in the order of the page.

    Raises:
        UsageError: a distribution's chart cannot be imported, or is none.
    """
    found = []
    for name, one in _load("chart", charts, CHARTS):
        if not (isinstance(one, type) and issubclass(one, Chart)):
            raise UsageError(f"chart {name!r}: {one!r} is no subclass of Chart.")
        found.append(one)
    return tuple(sorted(found, key=lambda chart: chart.ORDER))


def _load(what: str, package: ModuleType, group: str) -> Iterator[tuple[str, object]]:
    """Yield names and classes: those that our modules define, then the targets of entry points."""
    for found in iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{found.name}")
        for one in vars(module).values():
            own = isinstance(one, type) and one.__module__ == module.__name__
            if own and issubclass(one, Metric | Chart) and not isabstract(one):
                yield found.name, one
    for name in sorted(list_entry_points(group)):
        yield name, find_component(what, name, {}, group)
