"""Components are made before a server is started, which then is for them; what is wrong is told before."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hallulab.agents.models.recording import Recording
from hallulab.agents.serving.server import ServedModel
from hallulab.detectors.registry import DETECTORS
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.simulator.engine.models import RunSettings, open_pool, serve_models
from hallulab.simulator.engine.run import run_experiment
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.scripted import ScriptedTransport, pool_through
from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.builders import conversation

URL = "http://127.0.0.1:9/v1"
QUIET = RunSettings(quiet=True)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models that servers are started for; in place of a server, a script answers."""
    names: list[str] = []

    @asynccontextmanager
    async def serve(model: str, **flags: Any) -> AsyncIterator[ServedModel]:
        names.append(model)
        yield ServedModel(base_url=URL, model=model, revision="r1", log=Path("log"))

    monkeypatch.setattr("hallulab.agents.serving.server.serve", serve)
    answering = ScriptedTransport(lambda _: "Yes", "m")
    monkeypatch.setattr("hallulab.simulator.engine.models.ModelPool", pool_through(answering))
    return names


async def test_models_have_an_address_once_their_server_is_up(started: list[str]) -> None:
    async with open_pool(Experiment(model="m"), Recording()) as pool:
        assert (pool.get().endpoint.base_url, started) == ("", [])
        async with serve_models(pool, QUIET) as revision:
            assert (pool.get().endpoint.base_url, revision, started) == (URL, "r1", ["m"])


@pytest.mark.parametrize(("needed", "base_url"), [(False, None), (True, URL)])
async def test_no_server_is_started_where_none_is_needed(
    started: list[str], needed: bool, base_url: str | None
) -> None:
    experiment = Experiment(model="m", base_url=base_url)
    async with open_pool(experiment, Recording()) as pool, serve_models(pool, QUIET, needed) as revision:
        assert (pool.get().endpoint.base_url, revision, started) == (base_url or "", None, [])


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"detectors": ["lexica"]}, "there is no detector 'lexica'"),
        ({"detectors": [{"name": "metarag", "options": {"verifiers": ["x"]}}]}, "no model named 'x'"),
        ({"chatbots": [{"name": "mine", "kind": "callable", "options": {"target": "x"}}]}, "target"),
        ({"models": {"j": {"model": "j", "api_key_env": "NO_KEY"}}}, "j needs an API key: set .* NO_KEY"),
    ],
)
async def test_what_is_wrong_is_told_before_a_server_is_started(
    started: list[str], tmp_path: Path, fields: dict[str, Any], error: str
) -> None:
    experiment = Experiment.model_validate({"model": "m", **fields})
    settings = RunSettings(quiet=True, record=tmp_path / "r.jsonl")
    with pytest.raises(UsageError, match=error):
        await run_experiment(experiment, RunFolder(tmp_path / "run"), settings, simulate=True)
    assert (started, os.listdir(tmp_path)) == ([], [])


@pytest.mark.parametrize(("messages", "asked"), [(", messages: [When?]", []), ("", ["m"])])
async def test_no_server_is_started_for_own_bots_and_scripted_users(
    started: list[str], tmp_path: Path, messages: str, asked: list[str]
) -> None:
    pack = make_pack(tmp_path / "pack")
    user = "{id: ann, name: Ann, grievance: g, goals: [Learn the time], manner: m, summary: s%s}"
    (pack / "personas.yaml").write_text(f"personas: [{user % messages}]\n")
    own = {"name": "b", "kind": "callable", "options": {"target": "tests.simulator.engine.test_run:say_noon"}}
    fields = {"model": "m", "scenario": str(pack), "chatbots": [own], "detectors": ["lexical"]}
    experiment = Experiment.model_validate(fields)
    with words_for_vectors():
        await run_experiment(experiment, RunFolder(tmp_path / "run"), QUIET, simulate=True)
    assert started == asked


def say_noon(dialogue: object) -> str:
    return "At noon."


async def test_a_detector_is_made_once(
    started: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    make = DETECTORS["direct-judge"]
    monkeypatch.setitem(DETECTORS, "judge", lambda name, context: names.append(name) or make(name, context))
    (tmp_path / "conversations.jsonl").write_text(conversation("c", []).model_dump_json() + "\n")
    fields = {
        "model": "m",
        "detectors": ["judge"],
        "scenario": "pregnancy-medication",
        "chatbots": ["vanilla"],
    }
    experiment = Experiment.model_validate(fields)
    await run_experiment(experiment, RunFolder(tmp_path), QUIET, simulate=False)
    assert (names, started) == (["judge"], ["m"])


async def test_a_server_is_not_waited_for_where_documents_cannot_be_embedded(
    started: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []

    @asynccontextmanager
    async def serve(model: str, **flags: Any) -> AsyncIterator[ServedModel]:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(model)
        yield ServedModel(base_url=URL, model=model, revision="r1", log=Path("log"))

    async def build_knowledge(*_: Any, **__: Any) -> None:
        raise OperationalError("no weights.")

    monkeypatch.setattr("hallulab.agents.serving.server.serve", serve)
    monkeypatch.setattr("hallulab.simulator.engine.run.build_knowledge", build_knowledge)
    with pytest.raises(OperationalError, match=r"no weights\."):
        await run_experiment(Experiment(model="m"), RunFolder(tmp_path / "run"), QUIET, simulate=True)
    assert ended == ["m"]
