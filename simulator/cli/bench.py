"""Command `hallulab bench`: detectors against labelled data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from hallulab.agents.concurrency import run_until_stopped
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.cli.options import (
    Detectors,
    ModelOptions,
    RecordingOptions,
    expand_option_groups,
    split_names,
)
from hallulab.simulator.cli.run import build_settings, collect_flags


def _read_options(given: list[str]) -> dict[str, Any]:
    """Read the options of a data set by name; values are YAML.

    Raises:
        UsageError: one is not of the form NAME=VALUE, or its value is no YAML.
    """
    from hallulab.scenarios.files.yaml_text import read_value

    options: dict[str, Any] = {}
    for option in given:
        name, equals, value = option.partition("=")
        try:
            options[name] = read_value(value)
        except ValueError as error:
            raise UsageError(f"--option {name}: not valid YAML ({error}). Correct the value.") from error
        if not equals or not name:
            raise UsageError(f"--option {option}: give NAME=VALUE, such as --option implicit_true=false.")
    return options


@dataclass(frozen=True)
class DataOptions:
    """The data to measure on."""

    data: Annotated[Path | None, typer.Option(help="Folder that holds the data set's files.")] = None
    source: Annotated[
        str | None, typer.Option(help="Part of the data set, such as begin's wow, cmu and tc.")
    ] = None
    option: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE: an option of the data set; may be repeated.")
    ] = None
    by: Annotated[
        list[str] | None,
        typer.Option(help="Break the numbers down by this field of the replies' `meta`; may be repeated."),
    ] = None
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many replies.")] = None
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of training, of folds, of the choice that --limit makes, and of what detectors "
            "sample; by default the experiment file's, else 0."
        ),
    ] = None


@dataclass(frozen=True)
class LearningOptions:
    """What learning detectors learn from, and which options are tried."""

    train: Annotated[
        Path | None,
        typer.Option(
            help="Folder (of a JSONL data set: file) that detectors learn from; else they learn from one "
            "half of the groups, and all are measured on the other."
        ),
    ] = None
    folds: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Detectors that learn are trained this many times: each time on the groups outside a fold, "
            "which they then judge.",
        ),
    ] = None
    sweep: Annotated[
        Path | None, typer.Option(help="Sweep file (YAML): one detector in many configurations.")
    ] = None


@dataclass(frozen=True)
class ResultOptions:
    """Where the results go, besides the terminal."""

    as_json: Annotated[Path | None, typer.Option("--json", help="Write the numbers into this file.")] = None
    csv: Annotated[Path | None, typer.Option(help="Write the rows of all levels into this file.")] = None
    html: Annotated[Path | None, typer.Option(help="Write a page with curves into this file.")] = None


@expand_option_groups
def bench(
    context: typer.Context,
    dataset: Annotated[
        str, typer.Argument(help="A labelled data set (docs/labelled-data.md), or a JSONL file of yours.")
    ],
    measured: DataOptions,
    learning: LearningOptions,
    results: ResultOptions,
    models: ModelOptions,
    recording: RecordingOptions,
    detectors: Detectors = None,
) -> None:
    """Measure detectors on labelled data, next to the lexical floor.

    What stands after `--` is passed on to the model server.
    """
    from hallulab.simulator.bench.command import BenchSettings, run_bench

    chosen = BenchSettings(
        dataset=dataset,
        data=measured.data,
        source=measured.source,
        options=_read_options(measured.option or []),
        train=learning.train,
        folds=learning.folds,
        sweep=learning.sweep,
        detectors=split_names(detectors),
        by=tuple(measured.by or ()),
        limit=measured.limit,
        seed=measured.seed,
        config=models.config,
        flags=collect_flags(models),
        run=build_settings(context, recording),
        json_file=results.as_json,
        csv_file=results.csv,
        html_file=results.html,
    )
    run_until_stopped(run_bench(chosen))
