"""Each phase of a command that may take long has its line within two seconds, by a clock of the test."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hallulab.agents import progress
from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.simulator.cli.test_commands import saved_run
from tests.simulator.command_line import CommandLine
from tests.simulator.limited_endpoint import ignoring, limited_endpoint

Slow = Callable[[str, str], None]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    """Lets a function of a module take 1.6 seconds of the clock, after which the log looks at it."""
    now = [0.0]
    shown: list[progress.LoggedProgress] = []

    class Watched(progress.LoggedProgress):
        def __init__(self, *columns: Any, **options: Any) -> None:
            super().__init__(*columns, **options, get_time=lambda: now[0])
            shown.append(self)

    monkeypatch.setattr(progress, "LoggedProgress", Watched)
    monkeypatch.setattr(progress, "FIRST_LINE_AFTER", 1.5)
    monkeypatch.setattr(progress, "BEAT", 1000.0)

    def slow_down(module: str, path: str) -> None:
        owner: Any = importlib.import_module(module)
        *parents, name = path.split(".")
        for parent in parents:
            owner = getattr(owner, parent)
        own = getattr(owner, name)

        def late(*arguments: Any, **options: Any) -> Any:
            now[0] += 1.6
            for one in shown:
                one.print_when_due()
            return own(*arguments, **options)

        monkeypatch.setattr(owner, name, late)

    return slow_down


def find_lines(error: str) -> list[str]:
    return [" ".join(line.split()) for line in error.splitlines()]


JUDGING = "hallulab.simulator.engine.run"


@pytest.mark.parametrize(
    ("module", "function", "line"),
    [
        (JUDGING, "build_run", "loading chatbots and detectors 0:00:01"),
        (JUDGING, "_read_journals", "reading the journals 0:00:01"),
        ("hallulab.simulator.report.write", "write_reports", "writing the report 0:00:01"),
        ("hallulab.simulator.engine.executors", "LocalExecutor._judge_turn", "judging turns 0/1 0:00:01"),
    ],
)
def test_judging(
    hallulab: CommandLine, tmp_path: Path, slow: Slow, module: str, function: str, line: str
) -> None:
    run = saved_run(tmp_path / "run")
    slow(module, function)
    ended = hallulab("detect", run.path, "--detectors", "lexical")
    assert ended.code == 0
    assert line in find_lines(ended.err)


@pytest.mark.parametrize(
    ("module", "function", "line"),
    [
        ("hallulab.simulator.records.importing", "_read_folder", "reading the documents 0:00:01"),
        ("hallulab.simulator.records.importing", "KnowledgeBase.build", "getting ready 0:00:01"),
        ("hallulab.simulator.records.importing", "_write", "importing replies 0:00:01"),
    ],
)
def test_importing(
    hallulab: CommandLine, tmp_path: Path, slow: Slow, module: str, function: str, line: str
) -> None:
    chat = [{"role": "user", "content": "How hot?"}, {"role": "assistant", "content": "100 degrees."}]
    (tmp_path / "chats.jsonl").write_text(json.dumps({"messages": chat}) + "\n")
    documents = make_pack(tmp_path / "pack") / "documents"
    slow(module, function)
    with words_for_vectors():
        ended = hallulab(
            "import", tmp_path / "chats.jsonl", "--documents", documents, "--out", tmp_path / "run"
        )
    assert ended.code == 0
    assert line in find_lines(ended.err)


@pytest.mark.parametrize(
    ("function", "line"),
    [
        ("_load_data", "reading the labelled replies 0:00:01"),
        ("make_detectors", "loading the detectors 0:00:01"),
        ("measure", "comparing the detectors 0:00:01"),
    ],
)
def test_measuring_detectors(
    hallulab: CommandLine, tmp_path: Path, slow: Slow, function: str, line: str
) -> None:
    reply = {"id": "a", "question": "q", "passages": [{"id": "p", "document": "p", "text": "It is 5."}]}
    lines = [{**reply, "id": name, "reply": f"It is {name}.", "label": name == "6"} for name in "56"]
    (tmp_path / "data.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    slow("hallulab.simulator.bench.command", function)
    ended = hallulab("bench", tmp_path / "data.jsonl", "--detectors", "lexical")
    assert ended.code == 0
    assert line in find_lines(ended.err)


@pytest.mark.parametrize(
    ("function", "line"),
    [("load_material", "reading the replies 0:00:01"), ("make_detectors", "loading the detectors 0:00:01")],
)
def test_calibrating(hallulab: CommandLine, slow: Slow, own_cache: None, function: str, line: str) -> None:
    slow("hallulab.simulator.calibration.fit", function)
    ended = hallulab("calibrate", "consumer-grievance-india", "--detectors", "lexical", "--count", "20")
    assert line in find_lines(ended.err)


def test_simulating_and_asking(hallulab: CommandLine, tmp_path: Path, slow: Slow) -> None:
    slow("hallulab.agents.models.model", "ModelPool.check")
    slow("hallulab.simulator.engine.executors", "converse")
    with words_for_vectors(), limited_endpoint(ignoring()) as url:
        ended = hallulab(
            *("run", "--scenario", make_pack(tmp_path / "pack"), "--model", "stub", "--base-url", url),
            *("--chatbots", "vanilla", "--detectors", "lexical", "--min-turns", "1", "--max-turns", "2"),
            *("--out", tmp_path / "run"),
        )
    assert ended.code == 0
    lines = find_lines(ended.err)
    assert "1 conversation, about 7 requests" in lines
    assert "asking the models whether they answer 0:00:01" in lines
    assert "simulating turns 0/2 0:00:01" in lines
