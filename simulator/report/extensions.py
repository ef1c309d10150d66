"""Find the charts of reports, in their folder, and the metrics, also those of installed distributions."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache
from inspect import isabstract
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from hallulab.scenarios.components import find_component, list_entry_points
from hallulab.scenarios.errors import UsageError
from hallulab.simulator import metrics
from hallulab.simulator.metrics.metric import Metric
from hallulab.simulator.report import charts
from hallulab.simulator.show.chart import Chart

METRICS = "hallulab.metrics"
"""Group of the entry points by which distributions offer metrics."""


@cache
def load_metrics() -> tuple[type[Metric], ...]:
    """Return all metrics in the order of the page.

    Raises:
        UsageError: a distribution's metric cannot be imported, is none, or gives a field that another gives.
    """
    offered: list[tuple[str, Any]] = [
        (name, find_component("metric", name, {}, METRICS)) for name in sorted(list_entry_points(METRICS))
    ]
    found = []
    owners: dict[str, str] = {}
    for name, one in (*_find_classes(metrics, Metric), *offered):
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
    """Return all charts in the order of the page."""
    return tuple(sorted((one for _, one in _find_classes(charts, Chart)), key=lambda chart: chart.ORDER))


def _find_classes(package: ModuleType, base: type[Any]) -> Iterator[tuple[str, type[Any]]]:
    """Yield the concrete subclasses of `base` that modules of a package define, with the module's name."""
    for found in iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{found.name}")
        for one in vars(module).values():
            own = isinstance(one, type) and one.__module__ == module.__name__
            if own and issubclass(one, base) and not isabstract(one):
                yield found.name, one
