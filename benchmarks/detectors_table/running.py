"""Measure all detectors on all data sets, in several processes.

This is not in the command's module, which started processes must not import.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from benchmarks.detectors_table.measuring import Line, TableArguments, asks, measure_one
from benchmarks.detectors_table.samples import Described, described
from hallulab.agents.machine.progress import bars
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.experiment.config import Experiment
from hallulab.simulator.experiment.models import ensure_model

_LONGEST = "combined"
"""Begun first, because it learns longest."""


class TableReport(Frozen):
    """All numbers: the content of `--json`."""

    model: str | None
    data: tuple[Described, ...]
    lines: tuple[Line, ...]


def table(
    asked: TableArguments,
    datasets: Sequence[str],
    detectors: Sequence[str],
    workers: int,
    quiet: bool = False,
) -> TableReport:
    """Measure every detector on every data set.

    Args:
        workers: processes that measure; 1: this process does.

    Raises:
        UsageError: see `measure_one`; or a model must be asked, and there is no address.
        OperationalError: likewise.
    """
    if asked.record and asked.base_url is None:
        for name in detectors:
            if asyncio.run(asks(name, asked)):
                raise UsageError(f"--record: {name} asks a model. Say where it is served with --base-url.")
    data = tuple(described(name, asked.data, asked.limit) for name in datasets)
    jobs = [(dataset, detector) for dataset in datasets for detector in detectors]
    found = {}
    with bars(quiet) as shown:
        task = shown.add_task("measuring", total=len(jobs))
        for line in _measured(sorted(jobs, key=lambda job: job[1] != _LONGEST), asked, workers):
            found[line.dataset, line.detector] = line
            shown.advance(task)
    model = ensure_model(Experiment(model=asked.model)).model
    return TableReport(model=model, data=data, lines=tuple(found[job] for job in jobs))


def _measured(jobs: Sequence[tuple[str, str]], asked: TableArguments, workers: int) -> Iterator[Line]:
    """Yield the lines as they get ready."""
    if workers == 1:
        yield from (measure_one(dataset, detector, asked) for dataset, detector in jobs)
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=_one_thread) as pool:
        try:
            for done in as_completed(pool.submit(measure_one, *job, asked) for job in jobs):
                yield done.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _one_thread() -> None:
    """Keep OpenMP from starting a thread for each core in each process: they would wait for each other."""
    os.environ["OMP_NUM_THREADS"] = "1"
