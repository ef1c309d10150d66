"""Sweeps: one detector in many configurations (MetaRAG section 5, which tries 26 of 48 combinations).

Every configuration is repeated with rising seeds. The report has mean, standard deviation and coefficient of
variation (MetaRAG section 5.3), and the configurations that are worth their cost (section 5.4).
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from hallulab.scenarios.files.yaml_text import read_yaml
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.bench.evaluate import Evaluation, compute_costs
from hallulab.simulator.bench.levels import collect_items, group_numbers
from hallulab.simulator.metrics.hallucinations import compute_mean
from hallulab.simulator.metrics.spending import find_pareto_front
from hallulab.simulator.records.experiment import NAME, Component
from hallulab.simulator.statistics.detection import compute_auroc, compute_flag_scores
from hallulab.simulator.statistics.intervals import Rounded

SCHEMA = "docs/bench.md"

MOST_RUNS = 10_000
"""Largest number of configurations times repeats; their evaluations are in memory at once."""

LEADERS = 4
"""Configurations of each of MetaRAG's three leaderboards."""

_COSTS = ("tokens_per_reply", "p50_ms")
_MEASURED = ("f1", "precision", "recall", "accuracy", "auroc", *_COSTS)
Front = Literal["tokens", "latency", "precision_recall"]
_FRONTS: dict[Front, tuple[str, str]] = {
    "tokens": ("f1", "tokens_per_reply"),
    "latency": ("f1", "p50_ms"),
    "precision_recall": ("precision", "recall"),
}
"""Criteria of unbeaten configurations, besides coverage."""


class Sweep(Frozen):
    """A sweep file."""

    detector: str = Field(pattern=NAME)
    grid: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(default_factory=dict, min_length=1)
    """Option → its values; every combination is tried."""
    configurations: list[Annotated[dict[str, Any], Field(min_length=1)]] = Field(
        default_factory=list, validate_default=True
    )
    """Further configurations: option → value, with the same options in each and in the grid."""
    options: dict[str, Any] = Field(default_factory=dict)
    repeats: int = Field(default=1, ge=1)
    """Runs of each configuration, with seeds seed, seed + 1, …"""

    @field_validator("configurations")
    @classmethod
    def _check_configurations(
        cls, listed: list[dict[str, Any]], info: ValidationInfo
    ) -> list[dict[str, Any]]:
        grid = info.data.get("grid")
        if not listed and grid == {}:
            raise ValueError("give `grid`, `configurations`, or both")
        names = set(grid or (listed[0] if listed else ()))
        for number, one in enumerate(listed, 1):
            if set(one) != names:
                raise ValueError(
                    f"number {number} sets {', '.join(one)}; all, and the grid, must set the same options"
                )
        return listed

    @field_validator("options")
    @classmethod
    def _check_fixed_options(cls, options: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        varied = {
            name for one in (info.data.get("grid", {}), *info.data.get("configurations", ())) for name in one
        }
        both = sorted(varied & options.keys())
        if both:
            raise ValueError(f"{both[0]} is varied, too; leave it out here or there")
        return options

    @model_validator(mode="after")
    def _check_number_of_runs(self) -> Self:
        combined = math.prod(map(len, self.grid.values())) if self.grid else 0
        runs = (combined + len(self.configurations)) * self.repeats
        if runs > MOST_RUNS:
            raise ValueError(f"these are {runs:,} runs, and one sweep has at most {MOST_RUNS:,}")
        return self

    @property
    def varied(self) -> tuple[str, ...]:
        """The options that differ between configurations."""
        return tuple(self.grid or self.configurations[0])


def load_sweep(path: Path) -> Sweep:
    """Read a sweep file.

    Raises:
        UsageError: it is missing or something in it is wrong; names file, line and remedy.
    """
    return read_yaml(path, SCHEMA, given=True).check(Sweep)


def list_configurations(sweep: Sweep) -> list[Component]:
    """Return every combination of the grid (the last option varies fastest), then the listed ones.

    Their names are the detector's kind and a number from 1.
    """
    grid = itertools.product(*sweep.grid.values()) if sweep.grid else ()
    chosen = [dict(zip(sweep.grid, values, strict=True)) for values in grid] + sweep.configurations
    width = len(str(len(chosen)))
    return [
        Component(
            name=f"{sweep.detector}-{number:0{width}}",
            kind=sweep.detector,
            options={**sweep.options, **options},
        )
        for number, options in enumerate(chosen, 1)
    ]


class SweepRow(Frozen):
    """A configuration: means over the repeats, and their standard deviations (n − 1, `_sd`)."""

    name: str
    config: dict[str, Any]
    repeats: int
    coverage: Rounded | None
    f1: Rounded | None
    f1_sd: Rounded | None
    f1_cv: Rounded | None
    precision: Rounded | None
    precision_sd: Rounded | None
    recall: Rounded | None
    recall_sd: Rounded | None
    accuracy: Rounded | None
    accuracy_sd: Rounded | None
    auroc: Rounded | None
    auroc_sd: Rounded | None
    tokens_per_reply: Rounded | None
    tokens_per_reply_sd: Rounded | None
    p50_ms: Rounded | None
    p50_ms_sd: Rounded | None
    pareto: tuple[Front, ...] = ()


class SweepReport(Frozen):
    """The results of a sweep."""

    file: Sweep
    rows: tuple[SweepRow, ...]

    @property
    def best_first(self) -> list[SweepRow]:
        """The rows, highest F1 first; those without one last."""
        return self.sort_by("f1")

    def sort_by(self, metric: Literal["f1", "precision", "recall"]) -> list[SweepRow]:
        """Return the rows, the highest first; those without a value last."""

        def get_value(row: SweepRow) -> float:
            value: float | None = getattr(row, metric)
            return -1.0 if value is None else value

        return sorted(self.rows, key=get_value, reverse=True)

    @property
    def leaders(self) -> dict[str, list[SweepRow]]:
        """The best four by F1, by precision and by recall (MetaRAG, table 2); none with four or fewer."""
        if len(self.rows) <= LEADERS:
            return {}
        return {
            "F1": self.sort_by("f1")[:LEADERS],
            "precision": self.sort_by("precision")[:LEADERS],
            "recall": self.sort_by("recall")[:LEADERS],
        }


def build_sweep_report(sweep: Sweep, runs: Sequence[Sequence[Evaluation]]) -> SweepReport:
    """Make the report, with a row a configuration.

    Args:
        runs: for each repeat, the evaluations of `list_configurations(sweep)`, in their order.
    """
    rows = [
        _build_row(component, sweep, evaluations)
        for component, evaluations in zip(list_configurations(sweep), zip(*runs, strict=True), strict=True)
    ]
    fronts = {name: _mark_front(rows, *fields) for name, fields in _FRONTS.items()}
    unbeaten = ([name for name in fronts if fronts[name][place]] for place in range(len(rows)))
    marked = (row.model_copy(update={"pareto": tuple(at)}) for row, at in zip(rows, unbeaten, strict=True))
    return SweepReport(file=sweep, rows=tuple(marked))


def _build_row(component: Component, sweep: Sweep, evaluations: Sequence[Evaluation]) -> SweepRow:
    measured = [_compute_numbers(evaluation) for evaluation in evaluations]
    values = {name: [one[name] for one in measured] for name in ("coverage", *_MEASURED)}
    means: dict[str, Any] = {name: _compute_mean(values[name]) for name in values}
    spreads: dict[str, Any] = {f"{name}_sd": _compute_deviation(values[name]) for name in _MEASURED}
    f1, spread = means["f1"], spreads["f1_sd"]
    return SweepRow(
        name=component.name,
        config={name: component.options[name] for name in sweep.varied},
        repeats=len(evaluations),
        f1_cv=spread / f1 if f1 and spread is not None else None,
        **means,
        **spreads,
    )


def _compute_numbers(evaluation: Evaluation) -> dict[str, float | None]:
    items = collect_items(evaluation, "response", group_numbers(evaluation.replies))
    times = _sum_seconds(evaluation)
    return {
        **compute_flag_scores(items.sample),
        "auroc": compute_auroc(items.sample),
        "coverage": len(items.sample.labels) / items.n if items.n else None,
        "tokens_per_reply": compute_costs(evaluation).tokens_per_reply,
        "p50_ms": statistics.median(times) * 1000 if times else None,
    }


def _sum_seconds(evaluation: Evaluation) -> list[float]:
    """Return the seconds of each scored reply's requests, added up; without requests, those of judging it.

    Configurations share equal requests. By the clock, the second one to ask would get the answer in no time.
    """
    clock = evaluation.latencies_s or (None,) * len(evaluation.judgements)
    found = [
        math.fsum(call.latency_s for call in judgement.calls) if judgement.calls else seconds
        for judgement, seconds in zip(evaluation.judgements, clock, strict=True)
        if judgement.outcome == "scored"
    ]
    return [seconds for seconds in found if seconds is not None]


def _compute_mean(values: Sequence[float | None]) -> float | None:
    """Return the mean; None if one repeat has no value, because a mean over the others would hide that."""
    known = [value for value in values if value is not None]
    return compute_mean(known) if len(known) == len(values) else None


def _compute_deviation(values: Sequence[float | None]) -> float | None:
    """Return the sample standard deviation (n − 1); None with fewer than two values, or a missing one."""
    known = [value for value in values if value is not None]
    return round(statistics.stdev(known), 6) if len(known) == len(values) > 1 else None


def _mark_front(rows: Sequence[SweepRow], *columns: str) -> list[bool]:
    """Return which rows are optimal by these columns (lower costs are better) and by coverage."""

    def get_criterion(row: SweepRow, column: str) -> float | None:
        value: float | None = getattr(row, column)
        return -value if value is not None and column in _COSTS else value

    return find_pareto_front(
        [tuple(get_criterion(row, name) for name in ("coverage", *columns)) for row in rows]
    )
