"""A pytest plugin: the fixture `hallulab_run`, for tests that hold a bot against a baseline.

pytest loads it where hallulab is installed. It imports nothing heavy before a test asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hallulab.results import Run


@pytest.fixture(scope="session")
def hallulab_run(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Run]:
    """Return what runs an experiment, as `hallulab.run` does, into a temporary folder unless `out` is given.

    `hallulab_run("experiment.yaml", replay="recording.jsonl.gz")` needs neither a server nor a network.
    Paths are relative to pytest's root folder. Other arguments are those of `hallulab.run`.
    """

    def run_experiment(experiment: Any, *, replay: str | Path | None = None, **options: Any) -> Run:
        from hallulab import api
        from hallulab.scenarios.errors import ReplayMiss

        root = request.config.rootpath
        if isinstance(experiment, str | Path):
            experiment = root / experiment
        given = {"quiet": True, "out": tmp_path_factory.mktemp("hallulab-run"), **options}
        given["out"] = root / given["out"]
        try:
            return api.run(experiment, replay=None if replay is None else root / replay, **given)
        except ReplayMiss as missing:
            missed = str(missing)
        pytest.fail(f"hallulab_run: {missed}", pytrace=False)

    return run_experiment
