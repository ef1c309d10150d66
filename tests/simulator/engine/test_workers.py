"""Workers write what one process writes, also where some die. The run is the recorded demo.

They are processes, and in the slow tier also actors of Ray, on this machine and on a cluster of two nodes.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from hallulab.agents.models.recording import Recording
from hallulab.scenarios.errors import OperationalError
from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.engine.executors import SingleEventTask, perform_single
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.run import run_experiment
from hallulab.simulator.engine.workers import WorkerExecutor
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.endpoint import completion, serve_stub
from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.demo import EXPERIMENT, RECORDING, replay
from tests.demo import MODEL as DEMO_MODEL
from tests.kit.kill_points import Lines, journal_lines
from tests.kit.worker_words import use_word_vectors
from tests.places import ROOT
from tests.simulator.command_line import CommandLine
from tests.simulator.engine.dying_workers import die_in, leave_once
from tests.simulator.engine.worker_places import KEYED, PLACES, WorkerPlace, open_place, read_keys

KEY = "sk-canary-0123456789"


@pytest.fixture(scope="module", params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[WorkerPlace]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("CANARY_KEY", KEY)  # a cluster has the environment in which it was started
        with open_place(request.param) as place:
            yield place


@pytest.fixture(scope="module")
def whole(demo_replay: RunFolder) -> dict[str, Lines]:
    """The journals of one process."""
    return journal_lines(demo_replay.path)


def test_two_workers_write_what_one_process_writes(
    place: WorkerPlace, whole: dict[str, Lines], tmp_path: Path
) -> None:
    assert journal_lines(replay(tmp_path, 2, ray=place.ray).path) == whole


@pytest.mark.parametrize("function", ["converse", pytest.param("run_detector", marks=pytest.mark.slow)])
def test_a_worker_that_dies_costs_one_more_try(
    place: WorkerPlace, whole: dict[str, Lines], tmp_path: Path, function: str
) -> None:
    prepare = partial(die_in, f"engine.executors.{function}", tmp_path / "died")
    assert journal_lines(replay(tmp_path / "run", 2, prepare, place.ray).path) == whole
    assert (tmp_path / "died").exists()


@pytest.fixture(scope="module")
def killing(place: WorkerPlace, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run in which every worker dies that converses with one chatbot, or judges another."""
    return replay(
        tmp_path_factory.mktemp("killing"), 2, partial(kill_at_two_places, place.lag_s), place.ray, limit=1
    )


def kill_at_two_places(lag_s: float) -> None:
    die_in("engine.executors.converse", only="chatbot='editor'")
    die_in("engine.executors.LocalExecutor._judge_turn", only="chatbot='agent'", after_s=lag_s)


@pytest.fixture
def held(killing: RunFolder) -> dict[str, Conversation]:
    """The conversations of `killing`, by chatbot."""
    return {one.chatbot: one for one in killing.read_conversations()}


def test_a_conversation_that_kills_workers_is_a_failure_and_takes_no_other_with_it(
    place: WorkerPlace, killing: RunFolder, held: dict[str, Conversation], whole: dict[str, Lines]
) -> None:
    errors = {chatbot: one.error for chatbot, one in held.items()}
    assert errors.pop("editor") == f"{place.died}, and so did the next one"
    assert errors == dict.fromkeys(("vanilla", "prompt-engineered", "fact-checker", "agent"))
    scored = [one.conversation for one in killing.read_journals().verdicts if one.outcome == "scored"]
    others = {one.id for one in held.values() if one.chatbot not in ("editor", "agent")}
    assert Counter(scored) == dict.fromkeys(others, 2 * 2)
    written = journal_lines(killing.path)["conversations.jsonl"]
    assert (written & whole["conversations.jsonl"]).total() == 4


def test_what_kills_every_worker_that_judges_is_a_failed_verdict(
    place: WorkerPlace, killing: RunFolder, held: dict[str, Conversation]
) -> None:
    reason = f"{place.died}, and so did the next one"
    verdicts = [one for one in killing.read_journals().verdicts if one.conversation == held["agent"].id]
    assert [(verdict.outcome, verdict.error) for verdict in verdicts] == [("failed", reason)] * 4


def test_what_killed_workers_is_made_when_the_run_goes_on(killing: RunFolder, tmp_path: Path) -> None:
    shutil.copytree(killing.path, tmp_path / "run")
    run = replay(tmp_path / "run", limit=1)
    assert [one.error for one in run.read_conversations()].count(None) == 5
    verdicts = run.read_journals().verdicts
    assert len(verdicts) == 5 * 2 * 2
    assert {one.outcome for one in verdicts} == {"scored"}


class EndingLine:
    """A worker that emits the event of its first task, and ends before it says that the task is done."""

    def __init__(self) -> None:
        self._messages = SimpleQueue[Any]()

    def send(self, message: Any) -> None:
        self._messages.put(message)

    def __iter__(self) -> Iterator[Any]:
        self._messages.get()  # the configuration
        yield ("ready",)
        _, number, _ = self._messages.get()
        yield ("event", number, "told")

    def explain_end(self) -> str:
        return "it ended"

    def kill(self) -> None:
        pass


class TellingTask(SingleEventTask):
    def fail(self, reason: str) -> Iterable[str]:
        raise AssertionError(reason)


async def test_a_task_whose_worker_dies_behind_its_only_event_is_done() -> None:
    async with WorkerExecutor(1, 1, EndingLine) as workers:
        workers.configure(None)
        assert await perform_single(workers, TellingTask()) == "told"


@pytest.mark.slow
def test_workers_that_cannot_begin_end_the_run_in_one_sentence(place: WorkerPlace, tmp_path: Path) -> None:
    with pytest.raises(OperationalError) as raised:
        replay(tmp_path, 2, partial(os._exit, 3), place.ray)
    assert str(raised.value) == (
        f"{place.left} before it could begin. If the memory was full, close other programs or lower "
        "--workers."
    )


@pytest.mark.slow  # it starts three processes, one after the other
def test_a_worker_that_ends_before_any_could_begin_is_replaced(
    place: WorkerPlace, whole: dict[str, Lines], tmp_path: Path
) -> None:
    prepare = partial(leave_once, tmp_path / "left")
    assert journal_lines(replay(tmp_path / "run", 2, prepare, place.ray).path) == whole
    assert (tmp_path / "left").exists()


@pytest.mark.slow
def test_a_stale_recording_ends_the_run_as_without_workers(
    place: WorkerPlace, hallulab: CommandLine, tmp_path: Path
) -> None:
    stale = tmp_path / "stale.jsonl"
    lines = Recording.replay(RECORDING).known().answers
    entries = [{"kind": kind, "key": key, "answer": answer} for (kind, key), answer in lines.items()]
    stale.write_text("".join(json.dumps(entry) + "\n" for entry in entries[: len(entries) // 2]))
    ended = hallulab(
        *("run", "-c", EXPERIMENT, "--model", DEMO_MODEL, "--workers", "2"),
        *("--replay", stale, "--out", tmp_path / "run", "--quiet"),
        *(() if place.ray is None else ("--ray", place.ray)),
    )
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"error: the recording {stale} has no answer to this request: ")


def test_no_workers_are_refused_before_anything_is_written(hallulab: CommandLine, tmp_path: Path) -> None:
    ended = hallulab("run", "--workers", "0", "--out", tmp_path / "run")
    assert ended.code == 2
    assert ended.err == "error: --workers 0: at least one process does the work.\n"
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_killed_with_its_workers_at_work_a_run_leaves_none_and_goes_on(
    whole: dict[str, Lines], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    command = [
        *(sys.executable, "-m", "hallulab", "run", "-c", str(EXPERIMENT)),
        *("--model", DEMO_MODEL, "--replay", str(RECORDING), "--workers", "2", "--quiet"),
        *("--concurrency", "1", "--out", str(run)),
    ]
    with subprocess.Popen(command, cwd=ROOT) as process:
        while not (run / "conversations.jsonl").exists() or not (run / "conversations.jsonl").read_bytes():
            time.sleep(0.01)
        workers = children_of(process.pid)
        loaded = [Path(f"/proc/{pid}/maps").read_text() for pid in workers]
        process.kill()
    assert len(workers) == 2
    deadline = time.monotonic() + 120
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline, "a worker outlived the run"
        time.sleep(0.05)
    # The import of each would stop a worker's conversations for a second or more.
    assert not [maps for maps in loaded if re.search("/(sklearn|scipy|pandas|torch|lancedb)/", maps)]
    assert journal_lines(run) != whole
    replay(run)
    assert journal_lines(run) == whole


def children_of(pid: int) -> list[int]:
    """The processes that a process started."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


@pytest.fixture
def endpoint() -> Iterator[str]:
    with serve_stub(completion) as url:
        yield url


def test_what_workers_record_replays_in_one_process(
    place: WorkerPlace, endpoint: str, tmp_path: Path
) -> None:
    """The driver holds the recording, and a key reaches neither it nor the journals."""
    pack = str(make_pack(tmp_path / "pack"))
    experiment = Experiment.model_validate({**KEYED, "scenario": pack, "base_url": endpoint})
    recording = tmp_path / "recording.jsonl"
    recorded, replayed = RunFolder(tmp_path / "recorded"), RunFolder(tmp_path / "replayed")
    settings = RunSettings(
        record=recording, quiet=True, workers=2, ray=place.ray, prepare_worker=use_word_vectors
    )
    with words_for_vectors():
        asyncio.run(run_experiment(experiment, recorded, settings, simulate=True))
        settings = RunSettings(replay=recording, quiet=True)
        asyncio.run(run_experiment(experiment, replayed, settings, simulate=True))
    keys = read_keys(recording)
    assert len(keys) == len(set(keys)) > 20
    assert said_in(recorded) == said_in(replayed)
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not [text for text in written if KEY.encode() in text]


def said_in(folder: RunFolder) -> dict[str, Any]:
    """What was said and found; who asked a shared question, and for how long, differs."""
    journals = folder.read_journals()
    said = {held.id: [(turn.user, turn.reply) for turn in held.turns] for held in journals.conversations}
    found = {
        (one.conversation, one.turn, one.detector): (one.outcome, one.score, one.flagged)
        for one in journals.verdicts
    }
    return {"said": said, "found": found}
