"""Runs whose concurrency is found out."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.run import run_experiment
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.kit.busy_endpoint import busy_endpoint
from tests.kit.worker_words import use_word_vectors


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_run_loses_no_conversation_and_says_what_the_limit_came_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], workers: int
) -> None:
    with busy_endpoint(0.02, 9, most=9) as endpoint, words_for_vectors():
        values: dict[str, Any] = {
            "scenario": str(make_pack(tmp_path / "pack")),
            "chatbots": ["vanilla"],
            "count": 15,
            "max_turns": 2,
            "base_url": endpoint.url,
            "model": "stub",
            "concurrency": "auto",
        }
        folder = RunFolder(tmp_path / "run")
        settings = RunSettings(workers=workers, prepare_worker=use_word_vectors)
        experiment = Experiment.model_validate(values)
        asyncio.run(run_experiment(experiment, folder, settings, simulate=True, judge=False))
        assert endpoint.refused > 0 or workers > 1  # on a busy machine, two ask one after the other
    held = folder.read_conversations()
    assert len(held) == 15
    assert not [one.error for one in held if one.stop_reason == "error"]
    assert f"concurrency at {endpoint.url}: 20 → " in capsys.readouterr().err
