"""Measure detectors on labelled data: `hallulab bench`."""

from __future__ import annotations

import itertools
import shlex
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from hallulab.agents.progress import showing
from hallulab.detectors.base.protocol import Detector, TrainableDetector
from hallulab.scenarios.datasets import list_datasets, load_labelled
from hallulab.scenarios.datasets.annotations import ANNOTATIONS
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.atomic import write_together
from hallulab.scenarios.files.data_files import expand_home, is_file, is_folder
from hallulab.scenarios.files.yaml_text import read_value
from hallulab.scenarios.labelled import LabelledData, LabelledReply
from hallulab.scenarios.near_names import suggest_name
from hallulab.simulator.bench.baselines import FLAG_ALL, FLOOR, MAJORITY, compute_rater_agreement
from hallulab.simulator.bench.document import build_document
from hallulab.simulator.bench.planted import FILE as PLANTED
from hallulab.simulator.bench.planted import is_planted
from hallulab.simulator.bench.results import BenchData, Results, measure
from hallulab.simulator.bench.split import (
    CrossValidation,
    Split,
    choose_replies,
    split_into_folds,
    split_replies,
)
from hallulab.simulator.bench.sweep import Sweep, build_sweep_report, list_configurations, load_sweep
from hallulab.simulator.bench.tables import ROWS
from hallulab.simulator.engine.models import RunSettings, open_pool, open_recording, serve_models, warn_of
from hallulab.simulator.engine.participants import is_model_needed, make_detectors
from hallulab.simulator.engine.replies import ReplyJudge, ReplyWork
from hallulab.simulator.engine.worker_lines import configure_workers, start_workers
from hallulab.simulator.options.commands import BenchOptions, Gold
from hallulab.simulator.options.groups import to_path
from hallulab.simulator.records.experiment import Component, Experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.outputs import check_outputs
from hallulab.simulator.show.columns import format_csv
from hallulab.simulator.show.html import render_page

ANNOTATED = "gold"


async def run_bench(options: BenchOptions) -> Results:
    """Judge the data set with each detector, and count. Nothing is printed or written.

    Raises:
        UsageError: data, options, detectors or outputs are at fault.
        OperationalError: server or endpoint failed.
    """
    if options.folds is not None and options.train is not None:
        raise UsageError("--folds and --train exclude each other: folds are learnt from the data itself.")
    settings = RunSettings.from_options(options)
    options = _locate_annotated_run(options) if options.gold is not None else options
    options = replace(options, dataset=_locate_dataset(options.dataset), option=_read_options(options.option))
    _check_outputs(options)
    with showing("reading the labelled replies", options.quiet):
        data = _load_data(options, to_path(options.data))
        _check_fields(options.by, data)
        train = _load_training_data(options)
    sweep = None if options.sweep is None else load_sweep(Path(options.sweep))
    experiment = _read_experiment(options, sweep)
    async with (
        start_workers(settings, experiment, searches=False) as workers,
        open_pool(experiment, open_recording(settings)) as pool,
    ):
        with showing("loading the detectors", options.quiet):
            detectors = make_detectors(experiment, pool, {})
        for detector in detectors:
            _refuse_floors(detector.name, (FLAG_ALL, MAJORITY))
        splits = _split_data(data, train, detectors, options, experiment.seed)
        groups = set[str]().union(*(split.tested_groups for split in splits))
        measurable = [reply for reply in data if reply.group in groups]
        if not measurable:
            told = " ".join(("Give each a `label` or `spans` (docs/labelled-data.md).", *data.notes))
            raise UsageError(f"{options.dataset}: no labelled reply is left to judge. {told}")
        tested = choose_replies(measurable, options.limit, experiment.seed)
        validation = CrossValidation(splits, tested, experiment.measured_at_once, options.quiet)
        # Further repeats of a sweep leave out the floor.
        rounds = [experiment]
        for repeat in range(1, 1 if sweep is None else sweep.repeats):
            changed = {"seed": experiment.seed + repeat, "detectors": experiment.detectors[1:]}
            rounds.append(experiment.model_copy(update=changed))
        asks_model = is_model_needed(detectors)
        async with serve_models(pool, settings, asks_model):
            warn_of(detectors)
            juries: Sequence[Sequence[ReplyJudge] | None] = [None] * len(rounds)
            if workers is not None:
                # The first answer to a question counts for all workers, as it does in one process.
                work = ReplyWork(tuple(rounds))
                configure_workers(workers, settings, experiment, pool, work, asks_model, recorded=True)
                # Workers number the detectors through all rounds, as `ReplyWork` does.
                numbers = itertools.count()
                juries = [
                    [ReplyJudge(workers, next(numbers), workers.number) for _ in one.detectors]
                    for one in rounds
                ]
            made = [detectors, *(make_detectors(one, pool, {}) for one in rounds[1:])]
            found = [
                await validation.evaluate(judges, one.seed, seated)
                for judges, one, seated in zip(made, rounds, juries, strict=True)
            ]
    evaluations, runs = found[0], [found[0][1:], *found[1:]]
    described = _describe_data(options, data, splits, tested, experiment.seed, validation.not_trained)
    swept = None if sweep is None else build_sweep_report(sweep, runs)
    with showing("comparing the detectors", options.quiet):
        return measure(evaluations, described, swept, options.by)


def write_results(options: BenchOptions, results: Results) -> None:
    """Write the files that the options name: numbers, rows, and the page.

    Raises:
        OperationalError: one cannot be written.
    """
    report = results.report
    texts: dict[Path, str] = {}
    if options.json_file is not None:
        texts[Path(options.json_file)] = report.text()
    if options.csv is not None:
        texts[Path(options.csv)] = format_csv(ROWS, report.rows)
    if options.html is not None:
        texts[Path(options.html)] = render_page(build_document(results))
    if texts:
        write_together(texts)


def _read_options(given: Sequence[str] | Mapping[str, Any]) -> Mapping[str, Any]:
    """Read the options of a data set by name; the values of `NAME=VALUE` are YAML."""
    if isinstance(given, Mapping):
        return given
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


def _load_data(options: BenchOptions, folder: Path | None) -> LabelledData:
    assert isinstance(options.option, Mapping)
    return load_labelled(options.dataset, folder, options.source, options.option)


def _check_fields(fields: Sequence[str], data: LabelledData) -> None:
    """Raise UsageError if no reply has one of the fields in its `meta`."""
    known = sorted({name for reply in data for name in reply.meta})
    for field in fields:
        if field not in known:
            there = f"Give one of: {', '.join(known)}." if known else "These replies have no `meta`."
            near = suggest_name(field, known)
            raise UsageError(f"--by {field}: no reply has this field in its `meta`{near}. {there}")


def _locate_annotated_run(options: BenchOptions) -> BenchOptions:
    """Return the options with the data set of annotated runs in the place of a run folder."""
    name, flag = options.dataset, f"--gold {options.gold}"
    if options.gold not in get_args(Gold):
        raise UsageError(f"{flag}: give one of: {', '.join(get_args(Gold))}.")
    if name in list_datasets():
        raise UsageError(
            f"{flag}: {name} is a data set's name. Give a run folder (./{name}, if it has that name)."
        )
    if options.data is not None:
        raise UsageError(f"--data {options.data}: with {flag}, the run folder holds all. Leave --data out.")
    folder = expand_home(name)
    if not is_folder(folder):
        raise UsageError(f"{flag}: {name} is no folder. Give a run folder.")
    if not is_file(folder / ANNOTATIONS):
        quoted = shlex.quote(str(folder))
        raise UsageError(
            f"{flag}: {folder} has no {ANNOTATIONS}. Label turns first: `hallulab view {quoted}`, or "
            f"`hallulab annotate {quoted} --next 20`."
        )
    return replace(options, dataset=ANNOTATED, data=folder)


def _locate_dataset(dataset: str) -> str:
    """Return the file of a folder of planted errors, or what was given."""
    if dataset in list_datasets():
        return dataset
    folder = expand_home(dataset)
    if not is_folder(folder):
        return dataset
    if is_file(folder / PLANTED):
        return str(folder / PLANTED)
    if is_file(folder / ANNOTATIONS):
        raise UsageError(f"{dataset}: this is an annotated run. Give --gold annotations to measure on it.")
    return dataset


def _check_outputs(options: BenchOptions) -> None:
    """Raise UsageError where an output cannot be written, or would overwrite an input or another output."""
    own = None if options.dataset in list_datasets() else expand_home(options.dataset)
    inputs = (options.data, options.train, options.config, options.sweep, options.replay, options.record)
    outputs = {"--json": options.json_file, "--csv": options.csv, "--html": options.html}
    check_outputs({flag: to_path(path) for flag, path in outputs.items()}, (own, *map(to_path, inputs)))


def _read_experiment(options: BenchOptions, sweep: Sweep | None) -> Experiment:
    """Read the experiment. Its detectors are the floor and those asked for."""
    if sweep is not None and options.detectors is not None:
        raise UsageError("--detectors and --sweep exclude each other: the sweep file names its detector.")
    fields = {**options.collect_model_fields(), "detectors": options.detectors, "seed": options.seed}
    experiment = load_experiment(options.config_path, fields)
    for chosen in experiment.detectors:
        if chosen.name != FLOOR or chosen.kind != FLOOR:
            _refuse_floors(chosen.name, (FLAG_ALL, MAJORITY, FLOOR))
    if sweep is not None:
        swept = tuple(list_configurations(sweep))
        return _add_floor(experiment.model_copy(update={"detectors": swept}))
    return _add_floor(experiment)


def _refuse_floors(name: str, floors: Sequence[str]) -> None:
    if name in floors:
        raise UsageError(
            f"{name} is the name of a floor that every table has. Give the detector another `name`."
        )


def _load_training_data(options: BenchOptions) -> LabelledData | None:
    if options.train is None:
        return None
    if options.dataset in list_datasets():
        train = _load_data(options, Path(options.train))
    else:
        train = load_labelled(str(options.train))
    if not train:
        raise UsageError(f"--train {options.train}: there is no labelled reply to learn from.")
    return train


def _split_data(
    data: LabelledData,
    train: LabelledData | None,
    detectors: Sequence[Detector],
    options: BenchOptions,
    seed: int,
) -> list[Split]:
    """Cut the data into training and test parts: one split, or one a fold."""
    learning = any(isinstance(detector, TrainableDetector) for detector in detectors)
    for flag, given in (("--folds", options.folds), ("--train", options.train)):
        if given is not None and not learning:
            raise UsageError(
                f"{flag} {given}: no detector here learns. Leave {flag} out, or name one that does."
            )
    if options.folds is not None and data:
        return split_into_folds(data, options.folds, seed)
    if train is not None:
        return [Split(tuple(train), tuple(data), f"learnt from {options.train}")]
    if not learning or not data or is_planted(data):
        return [Split((), tuple(data), "all replies")]
    return [split_replies(data, seed)]


def _describe_data(
    options: BenchOptions,
    data: LabelledData,
    splits: Sequence[Split],
    tested: Sequence[LabelledReply],
    seed: int,
    not_trained: Mapping[str, str],
) -> BenchData:
    sizes = [len(split.train) for split in splits]
    groups = [{reply.group for reply in tested} & split.tested_groups for split in splits]
    learnt = [{reply.group for reply in split.train} for split in splits]
    return BenchData(
        dataset=options.dataset,
        replies=len(data),
        left_out=dict(data.left_out),
        notes=data.notes,
        split=splits[0].how,
        folds=len(splits) if options.folds is not None else None,
        trained_on=round(statistics.fmean(sizes)),
        tested_on=len(tested),
        groups_in_both=sum(len(known & here) for known, here in zip(learnt, groups, strict=True)),
        raters=compute_rater_agreement(tested),
        seed=seed,
        not_trained=dict(not_trained),
    )


def _add_floor(experiment: Experiment) -> Experiment:
    """Return the experiment with the floor first, and without detectors that nobody asked for."""
    chosen = experiment.detectors if "detectors" in experiment.model_fields_set else ()
    floor = next((one for one in chosen if one.name == FLOOR), Component(name=FLOOR, kind=FLOOR))
    others = (one for one in chosen if one.name != FLOOR)
    return experiment.model_copy(update={"detectors": (floor, *others)})
