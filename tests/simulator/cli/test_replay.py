"""The recorded run of the real 1.5B model: it replays to the byte and survives being killed at any time."""

from __future__ import annotations

import gzip
import multiprocessing
import random
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.build import read_report
from hallulab.simulator.report.write import write_reports
from tests.demo import EXPERIMENT, MODEL, RECORDING, replay
from tests.kit import forked_runs
from tests.kit.kill_points import InLine, journal_lines
from tests.simulator.bench.test_rows_recompute import assert_recomputes
from tests.simulator.command_line import CommandLine

CHATBOTS = {"vanilla", "prompt-engineered", "editor", "fact-checker", "agent"}
DETECTORS = {"halludetect", "metarag"}
COMMAND = ("run", "-c", str(EXPERIMENT), "--model", MODEL)


def test_every_chatbot_meets_every_detector(demo_replay: RunFolder) -> None:
    rows = read_report(demo_replay.report).rows
    pairs = {(row.chatbot, row.detector) for row in rows}
    assert pairs == {(chatbot, detector) for chatbot in CHATBOTS for detector in DETECTORS}
    assert all(row.turns >= 2 and row.coverage is not None for row in rows)


def test_every_number_of_the_rows_follows_from_the_journals(demo_replay: RunFolder) -> None:
    assert_recomputes(demo_replay.report, demo_replay.conversations, demo_replay.verdicts)


def test_it_replays_to_the_byte(demo_replay: RunFolder, tmp_path: Path) -> None:
    again = replay(tmp_path)
    write_reports(again)
    assert again.report.read_bytes() == demo_replay.report.read_bytes()


def test_every_call_is_replayed(demo_replay: RunFolder) -> None:
    calls = [
        call
        for conversation in demo_replay.read_conversations()
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
    ended = CommandLine(monkeypatch, capsys)(*COMMAND, "--replay", stale, "--out", run.path)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"error: the recording {stale} has no answer to this request: ")
    assert ended.err.count("\n") == 1
    assert not run.report.exists()
    assert all(conversation.error is None for conversation in run.read_conversations())
    assert all(verdict.error is None for verdict in run.read_journals().verdicts)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessPoolExecutor]:
    """A process to fork from: it has no thread of ours, and has done the run."""
    with forked_runs.driver() as process:
        process.submit(replay, tmp_path_factory.mktemp("driver")).result()
        yield process


def kill(folder: Path, before: Callable[[], object], seconds: float | None = None) -> int | None:
    """Replay in a process, kill it after `seconds` unless they are None, and return its exit code."""
    process = multiprocessing.get_context("fork").Process(target=_replay_after, args=(before, folder))
    process.start()
    process.join(seconds)
    if seconds is not None:
        process.kill()
        process.join()
    return process.exitcode


def _replay_after(before: Callable[[], object], folder: Path) -> None:
    before()
    replay(folder)


@pytest.mark.parametrize(("place", "share"), [(0.0, 0.5), (0.3, 0.0), (0.7, 0.99), (1.0, 0.5)])
def test_killed_in_a_line_it_goes_on_without_loss_or_double(
    demo_replay: RunFolder, driver: ProcessPoolExecutor, tmp_path: Path, place: float, share: float
) -> None:
    """The kill comes in the first line of the journals, in the last one, or between them."""
    whole = journal_lines(demo_replay.path)
    line = int(place * (sum(lines.total() for lines in whole.values()) - 1))
    before = InLine(line, share).end_there
    assert driver.submit(kill, tmp_path, before).result() == -signal.SIGKILL
    journals = set(tmp_path.glob("*.jsonl")) - {tmp_path / "turns.jsonl"}
    written = b"".join(path.read_bytes() for path in journals)
    assert written.count(b"\n") == line
    replay(tmp_path)
    assert journal_lines(tmp_path) == whole


@pytest.fixture(scope="module")
def seconds(driver: ProcessPoolExecutor, tmp_path_factory: pytest.TempPathFactory) -> float:
    """How long a run takes that nobody kills."""
    started = time.perf_counter()
    assert driver.submit(kill, tmp_path_factory.mktemp("timed"), bool).result() == 0
    return time.perf_counter() - started


@pytest.mark.slow
@pytest.mark.parametrize("point", range(20))
def test_killed_at_a_random_moment_it_goes_on_without_loss_or_double(
    demo_replay: RunFolder, driver: ProcessPoolExecutor, seconds: float, tmp_path: Path, point: int
) -> None:
    moment = random.Random(point).uniform(0.05, 1.0) * seconds
    driver.submit(kill, tmp_path, bool, moment).result()
    replay(tmp_path)
    assert journal_lines(tmp_path) == journal_lines(demo_replay.path)
