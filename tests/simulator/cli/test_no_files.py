"""A pipe in the place of any file: commands and pages refuse it, and wait for nobody."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

from hallulab.scenarios.files import opening
from tests.builders import conversation, scored
from tests.simulator.command_line import Ended
from tests.simulator.viewer.asking import Asker
from tests.simulator.viewer.serving import append

Hallulab = Callable[..., Ended]


@pytest.fixture(autouse=True)
def waits_for_nobody() -> Iterator[None]:
    """Fail instead of waiting for ever."""

    def fail(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(120)  # CPU is no measure here: nothing is computed
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with every file that a run, its labels and its reports may have."""
    found = tmp_path_factory.mktemp("whole") / "run"
    append(found / "conversations.jsonl", [conversation("a", ["x says so.", "y"])])
    append(found / "verdicts.jsonl", [scored("a", 0, [(0, 1)]), scored("a", 1)])
    return found


FILES = (
    *(
        "conversations.jsonl",
        "verdicts.jsonl",
        "experiment.json",
        "annotations.jsonl",
        "annotation-marks.jsonl",
    ),
    *("to-annotate-1.yaml", "report.json", "report.csv", "report.html", "concentration.csv", "attacks.csv"),
    *(
        "report-depth.csv",
        "report-answered.csv",
        "report-blame.csv",
        "report-citations.csv",
        "report-pages",
        "turns.jsonl",
        "audit.jsonl",
        "batch",
    ),
    *("planted.jsonl", "free-conversations.jsonl", "free-verdicts.jsonl", "guideline-000000000000.md"),
    *("view-experiment.yaml", "view-run.log", "documents", "conversations-00.jsonl", "verdicts-00.jsonl"),
    "turns-00.jsonl",
)


QUICK = ("annotations.jsonl", "to-annotate-1.yaml", "experiment.json", "report.json")
"""Files of those that the quick tests replace."""

MOST = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in FILES]


def copy_with_pipe(whole: Path, run: Path, name: str) -> Path:
    """A copy of a run folder in which a file is a pipe."""
    shutil.copytree(whole, run)
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    return run


@pytest.mark.parametrize("name", MOST)
def test_a_pipe_in_a_run_folder_holds_up_no_command(
    hallulab: Hallulab, whole: Path, tmp_path: Path, name: str
) -> None:
    for command in (
        ("report",),
        ("export", "--format", "openai", "--out", tmp_path / "out.jsonl"),
        ("compare", whole),
        ("annotate", "--next", "1"),
        ("bench",),
        ("report", "--guards"),
        ("detect", "--detectors", "lexical"),
    ):
        run = copy_with_pipe(whole, tmp_path / "run", name)
        ended = hallulab(command[0], run, *command[1:])
        assert ended.code in (0, 1, 2, 3)
        assert "Traceback" not in ended.err
        shutil.rmtree(run)


@pytest.mark.parametrize("name", MOST)
def test_a_pipe_in_a_run_folder_holds_up_no_page(
    whole: Path, tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    copy_with_pipe(whole, tmp_path / "runs" / "run", name)
    asker = Asker([tmp_path / "runs"], tmp_path / "indices")
    assert asker.ask("GET", "/").status == 200
    for id in [one.id for one in asker.runs.list()]:
        for page in ("", "/live", "/conversations", "/conversations/a", "/labels", "/settle/a/0"):
            answer = asker.ask("GET", f"/runs/{id}{page}")
            assert answer.status in (200, 204, 404, 500)
            assert "Traceback" not in answer.body
        key = {"annotator": "Asha", "conversation": "a", "turn": 0, "kind": "unknown"}
        asker.post(f"/runs/{id}/marks", json.dumps(key).encode())
        asker.post(f"/runs/{id}/draw", b"{}")
        asker.post(f"/runs/{id}/resume", b"")
    assert capfd.readouterr() == ("", "")


PIPE = "is a pipe, no file"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("annotations.jsonl", "annotations.jsonl: cannot be read (it is a pipe, no file)"),
        ("verdicts.jsonl", "verdicts.jsonl: this is no file"),
        ("experiment.json", "experiment.json: this is no file"),
        ("report.json", "report.json: no program reads from this pipe"),
        ("conversations.jsonl", "it has no conversations.jsonl"),
    ],
)
def test_a_pipe_in_a_run_folder_is_not_passed_over(
    hallulab: Hallulab, whole: Path, tmp_path: Path, name: str, told: str
) -> None:
    ended = hallulab("report", copy_with_pipe(whole, tmp_path / "run", name))
    assert ended.code in (1, 2)
    assert told in ended.err


@pytest.mark.parametrize(
    "command",
    [
        ("run", "--replay", "PIPE"),
        ("run", "--replay", "PIPE.gz"),
        ("run", "--record", "PIPE", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"),
        ("run", "--scenario", "PIPE"),
        ("import", "PIPE", "--out", "out"),
        ("import", "PIPE", "--format", "csv", "--out", "out"),
        ("import", "PIPE", "--format", "parquet", "--out", "out"),
        ("report", "RUN", "--annotations", "PIPE"),
        ("report", "RUN", "--planted", "PIPE"),
        ("annotate", "RUN", "--add", "PIPE"),
        ("annotate", "RUN", "--next", "1", "--guideline", "PIPE"),
        ("bench", "PIPE"),
        ("gate", "RUN", "--against", "PIPE"),
        ("compare", "PIPE", "RUN"),
        ("compare", "RUN", "PIPE"),
        ("view", "RUN", "--guideline", "PIPE"),
        ("report", "PIPE"),
        ("export", "PIPE", "--out", "out.jsonl"),
        ("detect", "PIPE"),
        ("init-scenario", "PIPE"),
    ],
    ids=" ".join,
)
def test_a_pipe_that_is_given_as_a_file_is_refused(
    hallulab: Hallulab, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("PIPE", "PIPE.gz"):
        os.mkfifo(name)
    ended = hallulab(*(whole if word == "RUN" else word for word in command))
    assert ended.code in (1, 2)
    assert ended.err.startswith("error: ")
    assert "PIPE" in ended.err


def test_a_pipe_of_settings_that_nobody_writes_to_is_given_up(
    hallulab: Hallulab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(opening, "PIPE_S", 0.01)
    os.mkfifo("PIPE")
    ended = hallulab("run", "-c", "PIPE")
    assert (ended.code, "no program writes to this pipe" in ended.err) == (2, True)


def test_a_guarded_policy_that_is_a_pipe_is_refused(
    hallulab: Hallulab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("PIPE")
    Path("e.yaml").write_text("chatbots: [{name: g, kind: guarded, options: {policy: PIPE}}]\nmodel: m\n")
    ended = hallulab("run", "-c", "e.yaml", "--base-url", "http://127.0.0.1:9/v1")
    assert (ended.code, PIPE in ended.err) == (2, True)


def test_a_run_folder_whose_policy_is_a_pipe_holds_up_no_page(
    whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "PIPE")
    run = tmp_path / "runs" / "run"
    shutil.copytree(whole, run)
    guarded = {"name": "g", "kind": "guarded", "options": {"policy": str(tmp_path / "PIPE")}}
    experiment = {"scenario": "pregnancy-medication", "chatbots": [guarded], "detectors": ["lexical"]}
    saved = {"schema": 1, "experiment": experiment, "identity": {}, "detectors": {"d": "1"}}
    (run / "experiment.json").write_text(json.dumps(saved))
    asker = Asker([tmp_path / "runs"], tmp_path / "indices")
    [shown] = asker.runs.list()
    for page in ("", "/live", "/conversations"):
        assert asker.ask("GET", f"/runs/{shown.id}{page}").status == 200
    assert "no page may start" in asker.post(f"/runs/{shown.id}/resume", b"").body
    assert capfd.readouterr() == ("", "")
