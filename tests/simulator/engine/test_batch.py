"""What waves cannot give is told before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.registry import make_detector
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.engine.batch import make_waves
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.participants import require_batchable
from hallulab.simulator.options.groups import BatchService
from hallulab.simulator.records.experiment import Experiment
from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.kit.batch_api import serve_batch_api
from tests.simulator.command_line import CommandLine

HERE = "http://127.0.0.1:8000/v1"


@pytest.mark.parametrize(
    ("service", "fields", "complaint"),
    [
        ("api", {}, "--batch api: give the endpoint that has a batch API with --base-url."),
        ("api", {"base_url": "scripted://m/v1"}, "a scripted model (scripted://m/v1) has no batch API."),
        ("api", {"base_urls": [HERE, "http://127.0.0.1:8001/v1"]}, "a wave goes to one endpoint."),
        ("api", {"base_url": HERE, "endpoint_limits": {"requests": 3}}, "`endpoint_limits` are those of"),
        ("vllm", {"base_url": HERE}, f"--batch vllm runs the model here, and --base-url names {HERE}."),
        (
            "vllm",
            {"models": {"judge": {"model": "big", "base_url": HERE}}},
            f"and `models.judge.base_url` names {HERE}.",
        ),
        (
            "api",
            {
                "base_url": HERE,
                "chatbots": [
                    {
                        "name": "theirs",
                        "kind": "endpoint",
                        "options": {"base_url": HERE, "model": "b", "session": {"header": "X-Session-Id"}},
                    }
                ],
            },
            "--batch: waves are sent without `headers` and `query`, also that of a `session`.",
        ),
    ],
)
def test_an_experiment_that_asks_for_more_is_refused(
    service: BatchService, fields: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(UsageError) as error:
        make_waves(Experiment.model_validate({"model": "m", **fields}), service)
    assert complaint in str(error.value)


def test_without_the_option_there_are_no_waves() -> None:
    assert make_waves(Experiment(), None) is None


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"replay": Path("r.jsonl")}, "--batch and --replay exclude each other"),
        ({"workers": 2}, "--batch and --workers exclude each other"),
        ({"batch": "API"}, "--batch API: give vllm or api."),
    ],
)
def test_settings_that_contradict_waves_are_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        RunSettings(**{"batch": "api", **settings})


async def test_a_detector_that_asks_for_one_reply_at_a_time_is_refused() -> None:
    pool = ModelPool({"default": Endpoint("m", HERE)})
    context = DetectorContext(models=pool, model=None, seed=0, identity_thresholds={}, options={})
    try:
        require_batchable([make_detector(name, name, context) for name in ("metarag", "hhem")])
        with pytest.raises(UsageError, match="'refchecker' judges one reply at a time, so its questions"):
            require_batchable([make_detector("refchecker", "refchecker", context)])
    finally:
        await pool.close()


def test_an_endpoint_without_a_batch_api_is_told_and_nothing_is_written(
    hallulab: CommandLine, tmp_path: Path
) -> None:
    make_pack(tmp_path / "pack")
    with serve_batch_api() as api, words_for_vectors():
        api.refuses = 404
        run = ("run", "--scenario", tmp_path / "pack", "--model", "stub", "--base-url", api.url)
        ended = hallulab(*run, "--batch", "api", "--out", tmp_path / "run")
    assert ended.code == 2
    assert f"{api.url} has no batch API (status 404 at /batches). Leave out --batch" in ended.err
    assert not (tmp_path / "run").exists()
