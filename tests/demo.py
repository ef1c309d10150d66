"""The recorded demo: a run of the real 1.5B model, replayed once for all tests that only read it."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from hallulab import run
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.run import run_experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.write import write_reports
from tests.fuzz.promises import keeping
from tests.places import RECORDINGS, ROOT

EXPERIMENT = ROOT / "examples" / "demo.yaml"
RECORDING = RECORDINGS / "demo.jsonl.gz"
MODEL = "qwen2.5-coder-1.5b"


def replay(
    path: Path,
    workers: int = 1,
    prepare_worker: Callable[[], None] | None = None,
    ray: str | None = None,
    **fields: Any,
) -> RunFolder:
    """Replay the demo into a folder, going on where its journals end.

    Args:
        path: the run folder.
        workers: see `RunSettings`, as for `prepare_worker` and `ray`.
        fields: fields of the experiment that differ.
    """
    folder = RunFolder(path)
    experiment = load_experiment(EXPERIMENT, {"model": MODEL, **fields})
    settings = RunSettings(
        replay=RECORDING, quiet=True, workers=workers, prepare_worker=prepare_worker, ray=ray
    )
    asyncio.run(run_experiment(experiment, folder, settings, simulate=True))
    return folder


def replay_headline(path: Path) -> RunFolder:
    """Replay the headline experiment into a folder, as `make replay-headline` does."""
    run(
        ROOT / "examples" / "headline.yaml",
        model=MODEL,
        replay=RECORDINGS / "headline.jsonl.gz",
        out=path,
        quiet=True,
    )
    return RunFolder(path)


@contextmanager
def shared_replay(base: Path) -> Iterator[RunFolder]:
    """The demo with its reports, which the first process makes that gets here. It must stay as it is.

    Args:
        base: the folder of this process's temporary files.
    """
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    run, part = shared / "demo", shared / "demo.part"
    with FileLock(shared / "demo.lock"), pytest.MonkeyPatch.context() as patched:
        patched.setenv("HALLULAB_CACHE", str(shared / "demo.cache"))
        if not run.exists():
            shutil.rmtree(part, ignore_errors=True)
            write_reports(replay(part))
            part.rename(run)
    with keeping(run):
        yield RunFolder(run)
