"""Bots and detectors of others: whatever they raise is a failure of theirs, and stopping the run is none."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from hallulab.chatbots.protocol import Reply
from hallulab.chatbots.registry import find_chatbot, make_chatbot
from hallulab.detectors.base.protocol import Detector
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.json_text import LineWriter
from hallulab.scenarios.transcript import Judgement, Message
from hallulab.simulator.bench.evaluate import evaluate
from hallulab.simulator.records.folder import RunFolder
from tests.builders import labelled
from tests.chatbots.stage import stage
from tests.simulator.engine.cast import execute
from tests.simulator.engine.test_execution import Answerer, Judge, Listener, bot, cast, job


class Mine(BaseException):
    pass


class Unsayable(BaseException):
    def __str__(self) -> str:
        raise ValueError


RAISED = pytest.mark.parametrize(
    ("error", "told"),
    [
        (GeneratorExit(), "GeneratorExit"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (asyncio.CancelledError("no"), "CancelledError: no"),
        (Mine("out of\norder."), "Mine: out of order"),
        (Unsayable(), "Unsayable: its message raised ValueError"),
    ],
)


@RAISED
async def test_what_a_bot_raises_ends_its_conversation(
    folder: RunFolder, error: BaseException, told: str
) -> None:
    await execute(bot(Answerer(error)), [job("a"), job("b")], folder, Listener())
    held = folder.read_conversations()
    assert [(line.stop_reason, line.error) for line in held] == [("error", f"chatbot bot: {told}")] * 2


@RAISED
async def test_what_a_detector_raises_is_a_failed_verdict(
    folder: RunFolder, error: BaseException, told: str
) -> None:
    await execute(cast(Judge(error=error)), [job("a")], folder, Listener())
    assert [(line.outcome, line.error) for line in folder.read_journals().verdicts] == [("failed", told)] * 2
    found = await evaluate(Judge(error=error), [labelled(passages=())], 1)
    assert [(line.outcome, line.error) for line in found.judgements] == [("failed", told)]


class FromAThread(Detector):
    """A bot, or a detector, whose thread raises `GeneratorExit`."""

    name, version, threshold = "d", "1", 0.5

    async def reply(self, history: Sequence[Message]) -> Reply:
        return await self._fail()

    async def detect(self, view: object) -> Judgement:
        return await self._fail()

    async def _fail(self) -> Any:
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.01, future.set_exception, GeneratorExit("late"))
        return await future


async def test_what_comes_out_of_a_future_is_a_failure_too(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "bot")
    await execute(bot(FromAThread()), [job("a"), job("b")], folder, Listener())
    held = folder.read_conversations()
    assert [line.error for line in held] == ["chatbot bot: GeneratorExit: late"] * 2
    folder = RunFolder(tmp_path / "detector")
    await execute(cast(FromAThread()), [job("a")], folder, Listener())
    assert {line.error for line in folder.read_journals().verdicts} == {"GeneratorExit: late"}


@pytest.mark.parametrize("error", [SystemExit(3), Mine("no")])
def test_what_a_constructor_raises_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def construct(context: object) -> None:
        raise error

    monkeypatch.setattr("hallulab.scenarios.components.entry_points", lambda group: [point])
    point = EntryPoint("theirs", "tests.simulator.engine.test_foreign_code:construct", "hallulab.chatbots")
    monkeypatch.setattr("tests.simulator.engine.test_foreign_code.construct", construct, raising=False)
    with pytest.raises(UsageError, match=r"^chatbot 'theirs': its constructor raised \w+: (3|no)\.$"):
        make_chatbot("theirs", stage()[0])


def test_a_module_that_leaves_on_import_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "leaving_plugin.py").write_text("raise SystemExit(3)", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    point = EntryPoint("theirs", "leaving_plugin:Bot", "hallulab.chatbots")
    monkeypatch.setattr("hallulab.scenarios.components.entry_points", lambda group: [point])
    with pytest.raises(UsageError, match=r"cannot load its entry point leaving_plugin:Bot \(SystemExit: 3\)"):
        find_chatbot("theirs")


class Stubborn:
    """Answers, or fails, when it is cancelled."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error
        self.asked = asyncio.Event()

    async def reply(self, history: Sequence[Message]) -> Reply:
        self.asked.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if self.error is not None:
                raise self.error from None
        return Reply(text="I go on.")


@pytest.mark.parametrize("error", [None, RuntimeError("not so fast")])
async def test_a_run_that_is_stopped_starts_and_keeps_nothing_more(
    tmp_path: Path, error: Exception | None
) -> None:
    folder, stubborn = RunFolder(tmp_path), Stubborn(error)
    run = asyncio.create_task(execute(bot(stubborn), [job("a"), job("b")], folder, Listener()))
    await stubborn.asked.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    gc.collect()  # a coroutine that nobody awaited would be a warning, and that an error
    assert len(folder.read_conversations()) == 0


async def test_a_full_disk_stops_the_others_and_is_the_only_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: LineWriter, line: str) -> None:
        raise OperationalError("disk full")

    folder, stubborn = RunFolder(tmp_path), Stubborn(None)
    bots = iter((stubborn, Answerer()))
    people = cast(Judge(), build_chatbot=lambda chosen, seed, conversation: next(bots))
    monkeypatch.setattr(LineWriter, "append", full)
    with pytest.raises(OperationalError, match=r"^disk full$"):
        await execute(people, [job("a"), job("b")], folder, Listener())
    gc.collect()
