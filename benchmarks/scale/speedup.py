"""How much faster two worker processes are than one: `python -m benchmarks.scale.speedup URL N USERS DIR`.

So many users meet the five chatbots, two turns each, and the default detectors judge, by N workers. Its
seconds are those of the whole process, to which its imports and the start of its workers belong.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from benchmarks.orchestration import stub
from benchmarks.scale.driver import words_for_vectors
from benchmarks.scale.memory import needed_by
from hallulab.simulator.experiment.config import Experiment
from hallulab.simulator.experiment.models import RunSettings
from hallulab.simulator.experiment.run import run_experiment
from hallulab.simulator.runs.folder import RunFolder

ANSWER_S = 0.2
"""How long each answer of the stub endpoint takes."""


def speedup(directory: Path, users: int) -> dict[str, float]:
    """Return how much faster two workers are than one, with `Experiment.concurrency` in each."""
    with stub(ANSWER_S) as base_url:
        seconds = {
            workers: _seconds(base_url, workers, users, directory / str(workers)) for workers in (1, 2)
        }
    print(f"{users} users: one worker {seconds[1]:.1f} s, two {seconds[2]:.1f} s", flush=True)
    return {"speedup_2_workers": round(seconds[1] / seconds[2], 2)}


def _seconds(base_url: str, workers: int, users: int, folder: Path) -> float:
    return needed_by("benchmarks.scale.speedup", base_url, str(workers), str(users), str(folder)).seconds


def main() -> None:
    """Run it."""
    base_url, workers, users, folder = sys.argv[1:]
    values: dict[str, Any] = {"base_url": base_url, "model": "stub", "count": int(users), "max_turns": 2}
    settings = RunSettings(quiet=True, workers=int(workers), prepare_worker=words_for_vectors)
    words_for_vectors()
    wanted = Experiment.model_validate(values)
    asyncio.run(run_experiment(wanted, RunFolder(Path(folder)), settings, simulate=True))


if __name__ == "__main__":
    main()
