"""Measure waves: `python -m benchmarks.waves [USERS …]`.

So many users meet the five chatbots, two turns each, and the default detectors judge, once in waves and once
one by one, each in a process of its own. A stub batch API answers, so nothing but the runner takes time.
Printed are conversations, waves, requests, largest memory and seconds; the last line is a JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.scale.cost import needed_by
from benchmarks.scale.driver import embed_without_model
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.run import run_experiment
from hallulab.simulator.options.groups import BatchService
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.folder import RunFolder
from tests.kit.batch_api import serve_batch_api

CHATBOTS = 5
SIZES = (20, 100)
"""Users of each measurement, if none are given."""


def measured(users: int, folder: Path) -> dict[str, Any]:
    """Hold the conversations of so many users both ways; return what each took."""
    found: dict[str, Any] = {"conversations": CHATBOTS * users}
    with serve_batch_api() as api:
        for name, service in {"waves": "api", "one_by_one": "none"}.items():
            needed = needed_by("benchmarks.waves", api.url, service, str(users), str(folder / name))
            found |= {f"{name}_mb": needed.megabytes, f"{name}_s": needed.seconds}
        found |= {"waves": len(api.batches), "requests": len(api.asked)}
    return found


def hold(base_url: str, service: BatchService | None, users: int, folder: Path) -> None:
    """Hold the conversations."""
    embed_without_model()
    values: dict[str, Any] = {"base_url": base_url, "model": "stub", "count": users, "max_turns": 2}
    settings = RunSettings(quiet=True, batch=service)
    wanted = Experiment.model_validate(values)
    asyncio.run(run_experiment(wanted, RunFolder(folder), settings, simulate=True))


def main() -> None:
    """Run it."""
    given = sys.argv[1:]
    if len(given) == 4:
        hold(given[0], "api" if given[1] == "api" else None, int(given[2]), Path(given[3]))
        return
    rows = []
    for users in [int(text) for text in given] or SIZES:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measured(users, Path(folder)))
        print(rows[-1], flush=True)
    print(json.dumps({"waves": rows}))


if __name__ == "__main__":
    main()
