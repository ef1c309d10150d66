"""The recorded run of the real 1.5B model: it replays to the byte and survives being killed at any time."""

from __future__ import annotations

import asyncio
import gzip
import multiprocessing
import os
import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from simulator.experiment.build import Settings, execute_experiment
from simulator.experiment.config import load_experiment
from simulator.report.reporting import write_reports
from simulator.runs.folder import RunFolder
from tests.kill_points import journal_lines
from tests.places import ROOT
from tests.simulator.bench.test_rows_recompute import assert_recomputes
from tests.simulator.command_line import CommandLine

RECORDING = ROOT / "tests" / "recordings" / "demo.jsonl.gz"
CHATBOTS = {"vanilla", "prompt-engineered", "editor", "fact-checker", "agent"}
DETECTORS = {"halludetect", "metarag"}


def replay(folder: RunFolder) -> None:
    """The recorded run into a folder, going on where its journals end."""
    experiment = load_experiment(ROOT / "docs" / "demo.yaml", {"model": "qwen2.5-coder-1.5b"})
    asyncio.run(execute_experiment(experiment, folder, Settings(replay=RECORDING, quiet=True), simulate=True))


@dataclass(frozen=True)
class Whole:
    """The run when nothing disturbs it."""

    folder: RunFolder
    seconds: float


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = RunFolder(tmp_path_factory.mktemp("whole"))
    started = time.perf_counter()
    replay(folder)
    return Whole(folder, time.perf_counter() - started)


def test_every_chatbot_meets_every_detector(whole: Whole) -> None:
    report = write_reports(whole.folder)
    pairs = {(row.chatbot, row.detector) for row in report.rows}
    assert pairs == {(chatbot, detector) for chatbot in CHATBOTS for detector in DETECTORS}
    assert all(row.turns >= 2 and row.coverage is not None for row in report.rows)


def test_every_number_of_the_rows_follows_from_the_journals(whole: Whole) -> None:
    write_reports(whole.folder)
    assert_recomputes(whole.folder.report, whole.folder.conversations, whole.folder.verdicts)


def test_it_replays_to_the_byte(whole: Whole, tmp_path: Path) -> None:
    write_reports(whole.folder)
    again = RunFolder(tmp_path)
    replay(again)
    write_reports(again)
    assert again.report.read_bytes() == whole.folder.report.read_bytes()


def test_every_call_is_replayed(whole: Whole) -> None:
    calls = [
        call
        for conversation in whole.folder.read_conversations()
        for turn in conversation.turns
        for call in turn.calls
    ]
    assert calls
    assert all(call.replayed for call in calls)


def test_a_stale_recording_ends_the_command_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first half of the answers is there, so users, chatbots and detectors are under way."""
    lines = gzip.decompress(RECORDING.read_bytes()).decode().splitlines(keepends=True)
    stale = tmp_path / "stale.jsonl"
    stale.write_text("".join(lines[: len(lines) // 2]), encoding="utf-8")
    run = RunFolder(tmp_path / "run")
    config = ("-c", ROOT / "docs" / "demo.yaml", "--model", "qwen2.5-coder-1.5b")
    ended = CommandLine(monkeypatch, capsys)("run", *config, "--replay", stale, "--out", run.path)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"error: the recording {stale} has no answer to this request: ")
    assert ended.err.count("\n") == 1
    assert not run.report.exists()
    assert all(conversation.error is None for conversation in run.read_conversations())
    assert all(verdict.error is None for verdict in run.read_journals().verdicts)


@pytest.mark.parametrize("point", range(20))
def test_killed_at_a_random_moment_it_goes_on_without_loss_or_double(
    whole: Whole, tmp_path: Path, point: int
) -> None:
    folder = RunFolder(tmp_path)
    process = multiprocessing.get_context("fork").Process(target=replay, args=(folder,))
    process.start()
    time.sleep(random.Random(point).uniform(0.05, 1.0) * whole.seconds)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    replay(folder)
    assert journal_lines(folder.path) == journal_lines(whole.folder.path)
