"""Waves that a child process of vLLM answers."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2
import pytest

from hallulab.agents.machine.cache import silent
from hallulab.agents.models.redaction import make_redaction
from hallulab.agents.models.wave_files import Asked, Wave, WaveStore
from hallulab.agents.serving.run_batch import BATCH_URL, VllmRunner
from hallulab.scenarios.errors import OperationalError
from tests.agents.serving.fake_server import FAILS, fake_prepared
from tests.agents.serving.fake_vllm import FakeVllm

QUESTION = {"model": "stub", "messages": [{"role": "user", "content": "Why?"}]}


def written(folder: Path) -> tuple[WaveStore, Wave]:
    store = WaveStore(folder, fresh=False)
    return store, store.write("vllm", BATCH_URL, [Asked(f"{BATCH_URL}/chat/completions", QUESTION)])


async def test_a_wave_is_answered_without_a_server(tmp_path: Path) -> None:
    fake, runner = FakeVllm(tmp_path / "fake"), VllmRunner(60.0)
    store, wave = written(tmp_path / "batch")
    async with runner.serving(fake.prepared, (), silent) as served:
        assert served.base_url == BATCH_URL
        await runner.run(wave, "EMPTY")
    [(id, result)] = store.close(wave, make_redaction())
    assert fake.notes == [["batch", id]]
    assert result.status == 200
    assert result.body["choices"][0]["message"]["content"].startswith("Complaint ")


async def test_a_question_before_the_waves_starts_the_server_once_and_settling_ends_it(
    tmp_path: Path,
) -> None:
    fake, runner = FakeVllm(tmp_path / "fake"), VllmRunner(60.0)
    request = httpx2.Request("POST", f"{BATCH_URL}/chat/completions", json=QUESTION)
    async with runner.serving(fake.prepared, (), silent):
        first, second = await runner.ask(request), await runner.ask(request)
        await runner.settle()
        assert first.json() == second.json()
    assert [note[0] for note in fake.notes] == ["server", "question", "question"]


async def test_a_question_that_takes_longer_than_the_timeout_has_no_answer(tmp_path: Path) -> None:
    fake, runner = FakeVllm(tmp_path / "fake"), VllmRunner(0.0)
    request = httpx2.Request("POST", f"{BATCH_URL}/chat/completions", json=QUESTION)
    async with runner.serving(fake.prepared, (), silent):
        with pytest.raises(httpx2.ReadTimeout, match="no answer within 0 s"):
            await runner.ask(request)


async def test_which_model_it_is_starts_no_server(tmp_path: Path) -> None:
    fake, runner = FakeVllm(tmp_path / "fake"), VllmRunner(60.0)
    async with runner.serving(fake.prepared, (), silent):
        told = await runner.ask(httpx2.Request("GET", f"{BATCH_URL}/models"))
    assert told.json() == {"data": [{"id": "stub", "root": "toy"}]}
    assert fake.notes == []


async def test_a_process_that_fails_shows_the_end_of_its_log(tmp_path: Path) -> None:
    runner = VllmRunner(60.0)
    _, wave = written(tmp_path / "batch")
    async with runner.serving(fake_prepared(tmp_path, FAILS), (), silent):
        with pytest.raises(OperationalError) as error:
            await runner.run(wave, "EMPTY")
    assert str(error.value).startswith(
        "`vllm run-batch` ended with exit code 3 and no results. Its first error"
    )
    assert "line 39" in str(error.value)


async def test_a_wave_gets_the_servers_flags(tmp_path: Path) -> None:
    prepared = fake_prepared(tmp_path, "").model_copy(update={"cpu": True, "dtype": "float32"})
    served = prepared.command(1, ("--seed", "3"))
    batch = prepared.batch_command(Path("in"), Path("out"), ("--seed", "3"))
    assert batch[1:6] == ["-P", "-m", "vllm.entrypoints.launchers.run_batch", "--model", "toy"]
    assert batch[6:12] == ["--served-model-name", "toy", "-i", "in", "-o", "out"]
    ours = served[served.index("--structured-outputs-config") :]
    ours.remove("--disable-uvicorn-access-log")  # a server's own
    assert batch[12:] == ours
    assert json.loads(ours[1])["backend"] == "xgrammar"
