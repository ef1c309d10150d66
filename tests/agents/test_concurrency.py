"""SIGTERM: a command ends at an `await` and goes on when started again. Works that go on side by side."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import threading
import time
import zlib
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from hallulab.agents.concurrency import run_side_by_side, run_until_stopped
from hallulab.scenarios.errors import OperationalError
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.scripted import ScriptedTransport
from hallulab.testing.tiny_pack import flags, make_pack, words_for_vectors
from tests.simulator.command_line import CommandLine, Ended


def send_sigterm() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0)  # Python looks for signals between two steps


class Endpoint(ScriptedTransport):
    """Answers, and sends this process SIGTERM while it works on a request."""

    def __init__(self, fatal: int | None = None) -> None:
        super().__init__(self._answer, "m")
        self._fatal = fatal

    def _answer(self, body: dict[str, Any]) -> str | dict[str, float]:
        if len(self.requests) == self._fatal:
            send_sigterm()
        if body.get("logprobs"):
            return {"Yes": 0.4, "No": 0.6}
        # By what is asked, not by how many asked before: so each run makes the same requests, however the
        # conversations overtake each other.
        heads = zlib.crc32(json.dumps(body, sort_keys=True).encode()) % 2
        return "How long does a kettle take to boil?" if heads else "It takes three minutes."


class Runs:
    """Starts the same small run again and again."""

    def __init__(self, command: CommandLine, folder: Path) -> None:
        self._command = command
        self._pack = make_pack(folder / "pack")
        self._out = folder / "run"
        self.folder = RunFolder(self._out)

    def __call__(self, endpoint: Endpoint) -> Ended:
        with patch("hallulab.agents.models.transport.make_network", lambda: endpoint):
            arguments = flags(self._pack, "--out", self._out, "--repeats", "3", detectors="direct-judge")
            return self._command(*arguments)


@pytest.fixture
def runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Iterator[Runs]:
    monkeypatch.setenv("HALLULAB_CACHE", str(tmp_path / "cache"))
    # What awaits comes to its end, however long a busy machine takes for that.
    monkeypatch.setattr("hallulab.agents.concurrency.GRACE_SECONDS", 60.0)
    handler = signal.getsignal(signal.SIGTERM)
    with words_for_vectors():
        yield Runs(CommandLine(monkeypatch, capsys), tmp_path)
    signal.signal(signal.SIGTERM, handler)


@pytest.mark.parametrize("every", [37, pytest.param(5, marks=pytest.mark.slow)])
def test_wherever_sigterm_comes_a_run_ends_with_one_sentence_and_goes_on_later(
    runs: Runs, every: int
) -> None:
    whole = Endpoint()
    assert runs(whole).code == 0
    wanted = sorted(runs.folder.read_conversations(), key=lambda held: held.id)
    for fatal in range(1, len(whole.requests) + 1, every):
        runs.folder.clear()
        ended = runs(Endpoint(fatal))
        gc.collect()  # a coroutine that nobody awaited would be a warning, and that an error
        assert (ended.code, ended.err) == (
            130,
            "interrupted: what was written is intact, start again to go on.\n",
        )
        kept = {held.id for held in runs.folder.read_conversations() if held.stop_reason != "error"}
        assert kept == {held.id for held in runs.folder.read_conversations()}
        assert runs(Endpoint()).code == 0
        assert [held.id for held in wanted] == sorted(held.id for held in runs.folder.read_conversations())


def test_what_is_awaited_gets_to_tidy_up() -> None:
    tidied = []

    async def work() -> None:
        send_sigterm()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            tidied.append(True)

    with pytest.raises(KeyboardInterrupt):
        run_until_stopped(work())
    assert tidied == [True]


def test_a_signal_before_the_loop_runs_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = asyncio.run

    def late(coroutine: Any) -> Any:
        send_sigterm()
        return begun(coroutine)

    monkeypatch.setattr("hallulab.agents.concurrency.asyncio.run", late)
    with pytest.raises(KeyboardInterrupt):
        run_until_stopped(asyncio.sleep(60))


async def get_a_second_signal() -> None:
    send_sigterm()
    send_sigterm()
    raise AssertionError("the second one ends it")


async def await_nothing() -> None:
    send_sigterm()
    while True:
        pass


async def fail_on_the_way_out() -> None:
    send_sigterm()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        raise ConnectionError("closed") from None


@pytest.mark.parametrize("work", [get_a_second_signal, await_nothing, fail_on_the_way_out])
def test_work_that_does_not_end_at_an_await_is_interrupted(
    work: Callable[[], Coroutine[Any, Any, None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hallulab.agents.concurrency.GRACE_SECONDS", 0.05)
    with pytest.raises(KeyboardInterrupt):
        run_until_stopped(work())


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGALRM)
    test_what_is_awaited_gets_to_tidy_up()
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGALRM)) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_without_a_signal_the_result_is_given() -> None:
    async def work() -> int:
        return 7

    assert run_until_stopped(work()) == 7


def test_works_go_on_at_the_same_time_and_return_in_order() -> None:
    both = threading.Barrier(2, timeout=120)

    def work(name: str) -> str:
        both.wait()
        return name

    both_done = run_side_by_side(lambda: work("environment"), lambda: work("weights"))
    assert both_done == ["environment", "weights"]


def test_the_first_error_is_raised_when_all_have_ended() -> None:
    ended = []

    def fails(reason: str) -> None:
        ended.append(reason)
        raise OperationalError(reason)

    with pytest.raises(OperationalError, match=r"^no network$"):
        run_side_by_side(lambda: ended.append("done"), lambda: fails("no network"), lambda: fails("no disk"))
    assert sorted(ended) == ["done", "no disk", "no network"]
