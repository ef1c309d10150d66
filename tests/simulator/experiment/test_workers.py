"""Worker processes write what one process writes, also where some die. The run is the recorded demo."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agents.models.recording import Recording
from benchmarks.stub_endpoint import MODEL, completion
from scenarios.errors import OperationalError
from simulator.experiment.build import Settings, execute_experiment
from simulator.experiment.config import Experiment, load_experiment
from simulator.runs.folder import RunFolder
from tests.fuzz.tiny_run import make_pack, words_for_vectors, words_for_vectors_from_now_on
from tests.kill_points import Lines, journal_lines
from tests.places import ROOT
from tests.served import served
from tests.simulator.command_line import CommandLine
from tests.simulator.experiment.dying_workers import die_in

RECORDING = ROOT / "tests" / "recordings" / "demo.jsonl.gz"


def replay(path: Path, workers: int, prepare: Callable[[], None] | None = None, **fields: Any) -> RunFolder:
    """The recorded run into a folder, going on where its journals end."""
    folder = RunFolder(path)
    experiment = load_experiment(ROOT / "docs" / "demo.yaml", {"model": "qwen2.5-coder-1.5b", **fields})
    settings = Settings(replay=RECORDING, quiet=True, workers=workers, prepare_worker=prepare)
    asyncio.run(execute_experiment(experiment, folder, settings, simulate=True))
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Lines]:
    """The journals of one process."""
    return journal_lines(replay(tmp_path_factory.mktemp("whole"), 1).path)


def test_two_workers_write_what_one_process_writes(whole: dict[str, Lines], tmp_path: Path) -> None:
    assert journal_lines(replay(tmp_path, 2).path) == whole


@pytest.mark.parametrize("place", ["converse", "run_detector"])
def test_a_worker_that_dies_costs_one_more_try(whole: dict[str, Lines], tmp_path: Path, place: str) -> None:
    prepare = partial(die_in, place, tmp_path / "died")
    assert journal_lines(replay(tmp_path / "run", 2, prepare).path) == whole
    assert (tmp_path / "died").exists()


REASON = "the worker process ended (SIGKILL), and so did the next one"


def test_a_conversation_that_kills_workers_is_a_failure_and_takes_no_other_with_it(
    whole: dict[str, Lines], tmp_path: Path
) -> None:
    folder = replay(tmp_path, 2, partial(die_in, "converse", only="chatbot='editor'"), limit=1)
    held = {one.chatbot: one.error for one in folder.read_conversations()}
    assert held.pop("editor") == REASON
    assert held == dict.fromkeys(("vanilla", "prompt-engineered", "fact-checker", "agent"))
    assert len(folder.read_journals().verdicts) == 4 * 2 * 2
    replay(tmp_path, 1, limit=1)
    assert [one.error for one in folder.read_conversations()].count(None) == 5
    assert len(folder.read_journals().verdicts) == 5 * 2 * 2


def test_what_kills_every_worker_that_judges_is_a_failed_verdict(tmp_path: Path) -> None:
    prepare = partial(die_in, "run_detector")
    journals = replay(tmp_path, 2, prepare, limit=1, chatbots=["vanilla"]).read_journals()
    [held] = journals.conversations
    assert held.error is None
    assert [(verdict.outcome, verdict.error) for verdict in journals.verdicts] == [("failed", REASON)] * 4


def test_workers_that_cannot_begin_end_the_run_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(OperationalError) as raised:
        replay(tmp_path, 2, partial(os._exit, 3))
    assert str(raised.value) == (
        "the worker process ended (exit code 3) before it could begin. Lower --workers, or leave it out."
    )


def test_a_stale_recording_ends_the_run_as_without_workers(hallulab: CommandLine, tmp_path: Path) -> None:
    stale = tmp_path / "stale.jsonl"
    lines = Recording.replay(RECORDING).known().answers
    entries = [{"kind": kind, "key": key, "answer": answer} for (kind, key), answer in lines.items()]
    stale.write_text("".join(json.dumps(entry) + "\n" for entry in entries[: len(entries) // 2]))
    ended = hallulab(
        *("run", "-c", ROOT / "docs" / "demo.yaml", "--model", "qwen2.5-coder-1.5b", "--workers", "2"),
        *("--replay", stale, "--out", tmp_path / "run", "--quiet"),
    )
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"error: the recording {stale} has no answer to this request: ")


def test_no_workers_are_refused_before_anything_is_written(hallulab: CommandLine, tmp_path: Path) -> None:
    ended = hallulab("run", "--workers", "0", "--out", tmp_path / "run")
    assert ended.code == 2
    assert ended.err == "error: --workers 0: at least one process does the work.\n"
    assert not (tmp_path / "run").exists()


def test_killed_with_its_workers_at_work_a_run_leaves_none_and_goes_on(
    whole: dict[str, Lines], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    command = [
        *(sys.executable, "-m", "hallulab.entry_point", "run", "-c", str(ROOT / "docs" / "demo.yaml")),
        *("--model", "qwen2.5-coder-1.5b", "--replay", str(RECORDING), "--workers", "2", "--quiet"),
        *("--concurrency", "1", "--out", str(run)),
    ]
    with subprocess.Popen(command, cwd=ROOT) as process:
        while not (run / "conversations.jsonl").exists() or not (run / "conversations.jsonl").read_bytes():
            time.sleep(0.01)
        workers = children_of(process.pid)
        process.kill()
    assert len(workers) == 2
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline, "a worker outlived the run"
        time.sleep(0.05)
    assert journal_lines(run) != whole
    replay(run, 1)
    assert journal_lines(run) == whole


def children_of(pid: int) -> list[int]:
    """The processes that a process started."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


@pytest.fixture
def endpoint() -> Iterator[str]:
    with served(completion) as url:
        yield url


def test_what_workers_record_replays_in_one_process(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver holds the recording, and a key reaches neither it nor the journals."""
    monkeypatch.setenv("CANARY_KEY", "sk-canary-0123456789")
    experiment = Experiment.model_validate(
        {
            "scenario": str(make_pack(tmp_path / "pack")),
            "model": MODEL,
            "base_url": endpoint,
            "api_key_env": "CANARY_KEY",
            "chatbots": ["vanilla", "agent"],
            "detectors": ["halludetect", "lexical"],
            "repeats": 3,
            "max_turns": 2,
            "min_turns": 2,
        }
    )
    recording = tmp_path / "recording.jsonl"
    recorded, replayed = RunFolder(tmp_path / "recorded"), RunFolder(tmp_path / "replayed")
    settings = Settings(record=recording, quiet=True, workers=2, prepare_worker=words_for_vectors_from_now_on)
    with words_for_vectors():
        asyncio.run(execute_experiment(experiment, recorded, settings, simulate=True))
        settings = Settings(replay=recording, quiet=True)
        asyncio.run(execute_experiment(experiment, replayed, settings, simulate=True))
    keys = [(entry["kind"], entry["key"]) for entry in map(json.loads, recording.read_text().splitlines())]
    assert len(keys) == len(set(keys)) > 20
    assert said_in(recorded) == said_in(replayed)
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not [text for text in written if b"canary-0123456789" in text]


def said_in(folder: RunFolder) -> dict[str, Any]:
    """What was said and found; who asked a shared question, and for how long, differs."""
    journals = folder.read_journals()
    said = {held.id: [(turn.user, turn.reply) for turn in held.turns] for held in journals.conversations}
    found = {
        (one.conversation, one.turn, one.detector): (one.outcome, one.score, one.flagged)
        for one in journals.verdicts
    }
    return {"said": said, "found": found}
