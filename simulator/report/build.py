"""Count a run once, make its report of all metrics, and read reports again."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache
from inspect import isabstract
from pathlib import Path
from pkgutil import iter_modules
from typing import Self, cast

from pydantic import ValidationError, create_model

from hallulab.scenarios.arguments import check_arguments
from hallulab.scenarios.components import find_component, list_entry_points
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import choose_main_error, explain_error, read_text
from hallulab.scenarios.files.json_text import parse_json
from hallulab.scenarios.transcript import Conversation, Frozen
from hallulab.simulator import metrics
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.metric import Flaws, Metric, RunFacts, Tallied
from hallulab.simulator.metrics.results import build_rows, mark_self_judged
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.metrics.run_sums import Counting
from hallulab.simulator.report.worst import WorstReplies
from hallulab.simulator.statistics.sums import Mergeable

METRICS = "hallulab.metrics"
"""Group of the entry points by which distributions offer metrics."""


@cache
def load_metrics() -> tuple[type[Metric], ...]:
    """Return all metrics in the order of the page: those of `simulator.metrics` and of distributions.

    Raises:
        UsageError: a distribution's metric cannot be imported, is none, or gives a field that another gives.
    """
    found = []
    owners: dict[str, str] = {}
    for name, one in _list_metrics():
        if not (isinstance(one, type) and issubclass(one, Metric)):
            raise UsageError(f"metric {name!r}: {one!r} is no subclass of Metric.")
        for field in one.SECTION.model_fields:
            if field in owners:
                raise UsageError(f"metric {name!r}: {owners[field]!r} gives report.json a `{field}`, too.")
            owners[field] = name
        found.append(one)
    return tuple(sorted(found, key=lambda metric: metric.ORDER))


def _list_metrics() -> Iterator[tuple[str, object]]:
    """Yield names and classes: those that our modules define, then the targets of entry points."""
    for found in iter_modules(metrics.__path__):
        module = importlib.import_module(f"{metrics.__name__}.{found.name}")
        for one in vars(module).values():
            own = isinstance(one, type) and one.__module__ == module.__name__
            if own and issubclass(one, Metric) and not isabstract(one):
                yield found.name, one
    for name in sorted(list_entry_points(METRICS)):
        yield name, find_component("metric", name, {}, METRICS)


class RunCounts(Mergeable):
    """Everything that a report counts.

    Raises:
        UsageError: a distribution offers a metric that cannot be loaded.
    """

    COUNTS = ("_counting", "worst", "scenarios", "models", "personas", "conversations", "turns")

    def __init__(self, run: RunFacts) -> None:
        self._run = run
        self._counting = Counting(run.chatbots, run.detectors)
        self._metrics = [metric(run) for metric in load_metrics()]
        self.worst = WorstReplies(run.detectors)
        self.scenarios: set[str] = set()
        self.models: set[str] = set()
        self.personas: set[str] = set()
        self.conversations = self.turns = 0

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count a conversation. Those with one persona come one after the other."""
        self._counting.add(conversation, verdicts, flawed=bool(flaws))
        self.worst.add(conversation, verdicts)
        for metric in self._metrics:
            metric.add(conversation, verdicts, flaws)
        self.scenarios.add(conversation.scenario)
        self.models.add(conversation.model)
        self.personas.add(conversation.persona)
        self.conversations += 1
        self.turns += len(conversation.turns)

    def merge(self, other: Self) -> None:
        """Add what was counted of other personas."""
        super().merge(other)
        for metric, more in zip(self._metrics, other._metrics, strict=True):
            metric.merge(more)

    def report(self) -> RunReport:
        """Compute the report of what was counted.

        Raises:
            UsageError: the journals have two configurations of the same thing.
        """
        sums = self._counting.sums()
        tallied = Tallied(sums, mark_self_judged(build_rows(sums.rows), self._run.claim_checks))
        fields = {name: value for metric in self._metrics for name, value in metric.result(tallied)}
        return load_report_model()(imported=self._run.imported, **fields)


def is_mergeable() -> bool:
    """Return whether all metrics can be counted in parts; those of other distributions may not."""
    return all(metric.is_mergeable() for metric in load_metrics())


@cache
def load_report_model() -> type[RunReport]:
    """Return what a whole report is: it inherits the fields of every metric's section."""
    sections = [metric.SECTION for metric in load_metrics()]
    bases: tuple[type[Frozen], ...] = (RunReport, *sections)
    return cast(type[RunReport], create_model("RunReport", __base__=bases))


@check_arguments
def read_report(path: str | Path) -> RunReport:
    """Read a `report.json`.

    Raises:
        UsageError: it cannot be read, or another version of hallulab wrote it.
    """
    try:
        return load_report_model().model_validate(parse_json(read_text(Path(path))))
    except ValidationError as error:
        first = choose_main_error(error)
        flaw = f"field `{'.'.join(map(str, first['loc']))}`: {explain_error(first)}"
    except ValueError as error:
        flaw = f"not valid JSON ({error})"
    raise UsageError(f"{path}: {flaw}. Recreate it with `hallulab report` on its run folder.")


def render_headlines(report: RunReport) -> list[str]:
    """Return what was found in the replies, where to look first, then whether that ranks the chatbots."""
    return [sentence for metric in load_metrics() for sentence in metric.headlines(report)]


def describe_omissions(report: RunReport) -> list[str]:
    """Return sentences on what the numbers leave out, and on chatbots judged by their own verifier."""
    return [sentence for metric in load_metrics() for sentence in metric.notes(report)]


def describe_models(report: RunReport) -> list[str]:
    """Return sentences on how the numbers were made."""
    return [sentence for metric in load_metrics() for sentence in metric.footnotes(report)]
