"""Runs whose models are asked in waves hold the conversations that they hold one by one."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.agents.serving.fake_vllm import FakeVllm
from tests.kit import forked_runs
from tests.kit.batch_api import BatchApi, serve_batch_api
from tests.kit.kill_points import Lines, journal_lines
from tests.simulator.command_line import CommandLine

SIZES = [2, 2, 1, 4, 4, 4, 4, 3, 4, 5, 6, 3, 2, 4, 3, 1]
"""Requests of the waves of `command`."""


@pytest.fixture
def api() -> Iterator[BatchApi]:
    with serve_batch_api() as served, words_for_vectors():
        yield served


def command(folder: Path, *more: str) -> list[str]:
    """Arguments of `run`: two users talk with a chatbot of one step and one of several, both judged."""
    if not (folder / "pack").exists():
        make_pack(folder / "pack")
        (folder / "untimed.yaml").write_text("timed: false\nmanners: [plain]\n")
    return [
        *("run", "-c", str(folder / "untimed.yaml"), "--scenario", str(folder / "pack"), "--model", "stub"),
        *("--chatbots", "vanilla,fact-checker", "--detectors", "lexical,halludetect", "--count", "2"),
        *("--max-turns", "2", "--quiet", *more),
    ]


def lines(run: Path) -> dict[str, Lines]:
    """Lines of a run's journals, without who of those that asked the same was answered first."""
    return {
        name: Counter({_without_replayed(line): number for line, number in found.items()})
        for name, found in journal_lines(run).items()
    }


def _without_replayed(line: str) -> str:
    def without(value: Any) -> Any:
        if isinstance(value, list):
            return [without(item) for item in value]
        if isinstance(value, dict):
            return {key: without(item) for key, item in value.items() if key != "replayed"}
        return value

    return json.dumps(without(json.loads(line)), sort_keys=True)


def test_an_apis_batches_give_the_same_run(hallulab: CommandLine, api: BatchApi, tmp_path: Path) -> None:
    endpoint = ("--base-url", api.url)
    assert hallulab(*command(tmp_path, *endpoint, "--out", str(tmp_path / "one"))).code == 0
    probes, asked = 5, len(api.one_by_one)
    assert (
        hallulab(*command(tmp_path, *endpoint, "--out", str(tmp_path / "waves"), "--batch", "api")).code == 0
    )
    assert lines(tmp_path / "waves") == lines(tmp_path / "one")
    assert len(api.one_by_one) == asked + probes
    assert len(api.asked) == len(set(api.asked)) == asked - probes
    # Four users speak first; both chatbots share their first messages. No wave is split.

    assert [len(batch) for batch in api.batches] == SIZES


def test_vllms_batches_give_the_same_run(
    hallulab: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = FakeVllm(tmp_path / "fake")
    monkeypatch.setattr("hallulab.agents.serving.server.prepare", lambda *_, **__: fake.prepared)
    monkeypatch.setattr("hallulab.agents.serving.prepare.prepare", lambda *_, **__: fake.prepared)
    short = [
        "--chatbots",
        "vanilla",
        "--detectors",
        "lexical",
        "--count",
        "1",
        "--min-turns",
        "1",
        "--max-turns",
        "1",
    ]
    with words_for_vectors():
        assert hallulab(*command(tmp_path, *short, "--out", str(tmp_path / "one"))).code == 0
        before = len(fake.notes)
        assert hallulab(*command(tmp_path, *short, "--out", str(tmp_path / "w"), "--batch", "vllm")).code == 0
    assert lines(tmp_path / "w") == lines(tmp_path / "one")
    happened = [note[0] for note in fake.notes[before:]]
    assert happened == ["server", *["question"] * 5, *["batch"] * (len(happened) - 6)]


def test_a_key_that_every_answer_repeats_is_in_no_file(
    hallulab: CommandLine, api: BatchApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = "canary-5f3a9c"
    monkeypatch.setenv("WAVES_TOKEN_OF_OURS", key)
    complaint = {"status_code": 401, "body": {"error": {"message": f"{key} is no key"}}}
    api.change = lambda asked, line: {**line, "response": complaint}
    asked = ("--base-url", api.url, "--api-key-env", "WAVES_TOKEN_OF_OURS", "--batch", "api")
    ended = hallulab(*command(tmp_path, *asked, "--out", str(tmp_path / "run")))
    assert key not in ended.out + ended.err
    texts = [file.read_text() for file in (tmp_path / "run").rglob("*") if file.is_file()]
    assert any("[key] is no key" in text for text in texts)
    assert not any(key in text for text in texts)


class Kill:
    """Ends the process by SIGKILL at a step of a wave.

    Args:
        place: `unsent`, `unnoted` (submitted, but its identifier was not written), `noted` or `answered`.
        wave: its number.
    """

    def __init__(self, place: str, wave: int) -> None:
        self._place, self._wave = place, wave

    def __call__(self) -> None:
        """Have this process end there."""
        from hallulab.agents.models.batch_api import ApiRunner
        from hallulab.agents.models.wave_files import Wave, WaveStore

        place, number = self._place, self._wave
        submit, note, close = ApiRunner._submit, Wave.note, WaveStore.close

        def end_at(name: str, wave: Wave) -> None:
            if (name, wave.number) == (place, number):
                os.kill(os.getpid(), signal.SIGKILL)

        async def submit_or_end(self: ApiRunner, client: Any, wave: Wave) -> str:
            end_at("unsent", wave)
            return await submit(self, client, wave)

        def note_or_end(self: Wave, batch: str | None = None) -> None:
            if batch is not None:
                end_at("unnoted", self)
            note(self, batch)
            if batch is not None:
                end_at("noted", self)

        def close_and_end(self: WaveStore, wave: Wave, redaction: Any) -> Iterator[Any]:
            found = list(close(self, wave, redaction))
            end_at("answered", wave)
            return iter(found)

        patch.object(ApiRunner, "_submit", submit_or_end).start()
        patch.object(Wave, "note", note_or_end).start()
        patch.object(WaveStore, "close", close_and_end).start()


PLACES = ("unsent", "unnoted", "noted", "answered")


def _run(made: list[str], run: Path) -> forked_runs.Ended:
    """Run a command in a process that is forked from one without threads: a search begins some."""
    from hallulab.agents.models import client, model  # noqa: F401 (each fork would import them)
    from hallulab.simulator.cli import main  # noqa: F401

    return forked_runs.run(made, run)


def _kill_and_resume(made: list[str], run: Path, kill: Kill) -> tuple[int | None, forked_runs.Ended]:
    """Kill a run and resume it; return how it ended each time."""
    process = forked_runs.start(made, run, kill)
    process.join()
    return process.exitcode, _run(made, run)


@dataclass(frozen=True)
class Resumed:
    """A run that was killed and went on."""

    killed: int | None
    """Its first exit code."""
    ended: forked_runs.Ended
    """How it ended then."""
    lines: dict[str, Lines]
    """Its journals."""
    batched: list[str]
    """Requests of all batches."""
    one_by_one: int
    """Other requests."""


class Killing:
    """Kills runs at an API that this process serves, in a process that has no thread of ours."""

    def __init__(self, folder: Path, api: BatchApi, driver: ProcessPoolExecutor) -> None:
        self._folder, self._api, self._driver = folder, api, driver
        self._made = command(folder, "--base-url", api.url, "--batch", "api")
        ended = driver.submit(_run, self._made, folder / "whole").result()
        assert ended.code == 0, ended.err
        self.whole = lines(folder / "whole")
        self.asked = sorted(api.asked)
        self.waves = len(api.batches)
        self.one_by_one = len(api.one_by_one)

    def __call__(self, place: str, wave: int) -> Resumed:
        """Kill a run at a step of a wave, and resume it."""
        self._api.forget()
        run = self._folder / f"{place}-{wave}"
        killed, ended = self._driver.submit(_kill_and_resume, self._made, run, Kill(place, wave)).result()
        return Resumed(killed, ended, lines(run), sorted(self._api.asked), len(self._api.one_by_one))


@pytest.fixture(scope="module")
def killing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killing]:
    with serve_batch_api() as api, forked_runs.driver() as driver:
        yield Killing(tmp_path_factory.mktemp("killed"), api, driver)


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_killed_in_a_wave_a_run_goes_on_and_asks_nothing_twice(killing: Killing, place: str) -> None:
    resumed = killing(place, 4)
    assert resumed.killed == -signal.SIGKILL
    assert resumed.ended.code == 0
    assert resumed.lines == killing.whole
    assert resumed.batched == killing.asked
    assert resumed.one_by_one == killing.one_by_one


@pytest.mark.slow
def test_killed_in_every_third_wave_a_run_goes_on_and_asks_nothing_twice(killing: Killing) -> None:
    steps = [(PLACES[wave % len(PLACES)], wave) for wave in range(2, killing.waves + 1, 3)]
    wrong = [
        (step, resumed.killed, resumed.ended)
        for step in steps
        for resumed in [killing(*step)]
        if (resumed.killed, resumed.lines, resumed.batched) != (-signal.SIGKILL, killing.whole, killing.asked)
    ]
    assert wrong == []
