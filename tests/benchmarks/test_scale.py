"""Large runs: the script that looks for lost and doubled lines finds them, and memory does not grow."""

from __future__ import annotations

import contextlib
import sys
import tracemalloc
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import pytest

from benchmarks.orchestration import stub
from benchmarks.scale import made_run
from benchmarks.scale.__main__ import compare_made, measure_made
from benchmarks.scale.cost import Needed, lost_and_doubled, simulated, speedup
from benchmarks.scale.events import count_events
from benchmarks.scale.made_run import make, shape_of
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.build import read_report
from hallulab.simulator.report.export import export_annotated
from hallulab.simulator.report.write import write_reports


def changed(folder: Path, name: str, *lines: int) -> None:
    """Make a journal of these lines of it."""
    path = folder / name
    held = path.read_text().splitlines(keepends=True)
    path.write_text("".join(held[line] for line in lines))


@pytest.mark.parametrize(
    ("conversations", "verdicts", "found"),
    [
        ((0, 1), range(18), (0, 0)),
        ((0, 1, 1), range(18), (0, 1)),
        ((0,), range(18), (10, 0)),
        ((0, 1), range(17), (1, 0)),
        ((0, 1), [0, *range(18)], (0, 1)),
    ],
)
def test_what_is_lost_or_doubled_is_counted(
    tmp_path: Path, conversations: list[int], verdicts: list[int], found: tuple[int, int]
) -> None:
    folder = tmp_path / "run"
    made_run.CHATBOTS = ("vanilla",)
    try:
        make(2, folder)
    finally:
        made_run.CHATBOTS = ("vanilla", "editor")
    changed(folder, "conversations.jsonl", *conversations)
    changed(folder, "verdicts.jsonl", *verdicts)
    assert lost_and_doubled(folder, 2, made_run.DETECTORS) == found


def write_all(folder: RunFolder) -> None:
    write_reports(folder)
    export_annotated(folder, "lexical", folder.path / "export.jsonl")


def largest(folder: RunFolder) -> int:
    """Most bytes of Python objects while a folder is reported on and exported."""
    tracemalloc.start()
    write_all(folder)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize(
    ("numbers", "more"),
    [
        ((22, 50), 1_400_000),  # as objects, the other 28 conversations take 2 MB; the page has 50 rows
        pytest.param((30, 300), 6_000_000, marks=pytest.mark.slow),  # and the other 270 20 MB
    ],
)
def test_reports_and_exports_of_many_conversations_need_little_more_than_those_of_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbers: tuple[int, int], more: int
) -> None:
    for module in ("reader", "write"):
        monkeypatch.setattr(f"hallulab.simulator.report.{module}.MOST", 20)
    monkeypatch.setattr("hallulab.simulator.statistics.differences._CELLS", 10_000)
    for number in numbers:
        make(number, tmp_path / str(number))
    write_all(RunFolder(tmp_path / str(numbers[0])))  # loads libraries
    few, many = (largest(RunFolder(tmp_path / str(number))) for number in numbers)
    assert many - few < more


def in_this_process(module: str, *arguments: str) -> Needed:
    """Run a module's `main` here, as `needed_by` does in a process of its own."""
    with (
        patch.object(sys, "argv", [module, *arguments]),
        patch("hallulab.agents.retrieval.knowledge.SentenceEmbedder"),  # so that another one does not stay
        contextlib.suppress(SystemExit),
    ):
        import_module(module).main()
    return Needed(megabytes=1, seconds=1.0, cpu_seconds=1.0)


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No processes are started, which import for seconds."""
    monkeypatch.setattr("benchmarks.scale.cost.needed_by", in_this_process)


@pytest.mark.usefixtures("one_process")
def test_a_run_against_the_stub_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with stub() as base_url:
        simulated(base_url, 6, tmp_path / "run")
    assert lost_and_doubled(tmp_path / "run", 6) == (0, 0)
    assert (tmp_path / "run" / "report.html").exists()


@pytest.mark.slow
def test_a_run_in_a_process_of_its_own_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with stub() as base_url:
        needed = simulated(base_url, 6, tmp_path / "run")
    assert lost_and_doubled(tmp_path / "run", 6) == (0, 0)
    assert needed["run"].megabytes < 1000


def test_speed_up_is_the_seconds_of_one_worker_over_those_of_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def needed(module: str, *arguments: str) -> Needed:
        asked.append((module, *arguments[1:]))
        seconds = 30.0 / int(arguments[1]) + {"process": 1.0, "ray": 2.0}[arguments[-1]]
        return Needed(megabytes=1, seconds=seconds, cpu_seconds=1.0)

    monkeypatch.setattr("benchmarks.scale.cost.needed_by", needed)
    assert speedup(tmp_path, 2) == {"speedup_2_workers": 1.94, "ray_to_workers": 0.94}
    assert capsys.readouterr().out == "2 users: one worker 31.0 s, two 16.0 s, two of Ray 17.0 s\n"
    assert asked == [
        ("benchmarks.scale.cost", workers, "2", str(tmp_path / f"{kind}{workers}"), kind)
        for workers, kind in (("1", "process"), ("2", "process"), ("2", "ray"))
    ]


def test_one_worker_meets_two_users_with_five_chatbots(tmp_path: Path) -> None:
    with stub() as base_url:
        in_this_process("benchmarks.scale.cost", base_url, "1", "2", str(tmp_path / "run"), "process")
    assert len(list(RunFolder(tmp_path / "run").read_conversations())) == 10


@pytest.mark.usefixtures("one_process")
def test_a_report_on_a_made_folder_of_any_shape_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.scale.__main__.needed_by", in_this_process)
    found = measure_made(tmp_path / "made", 12, shape_of(2, 1, 6), report_only=True)
    assert found == {
        "made": 12,
        "made_report_megabytes": 1,
        "made_report_seconds": 1.0,
        "made_report_cpu_seconds": 1.0,
    }
    assert "a folder of 12 conversations: report 1 MB" in capsys.readouterr().out
    rows = read_report(tmp_path / "made" / "report.json").rows
    assert [(row.chatbot, row.detector, row.personas, row.turns) for row in rows] == [
        ("editor", "lexical", 6, 12),
        ("vanilla", "lexical", 6, 12),
    ]


@pytest.mark.slow
def test_reports_of_one_journal_and_of_shards_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = compare_made(tmp_path, 300, shape_of(2, 1, 12))
    assert found == {"compared_files": 3, "differing_files": 0}
    assert "300 conversations in shards: report " in capsys.readouterr().out


@pytest.mark.slow
def test_the_same_run_is_timed_by_one_worker_and_by_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = speedup(tmp_path, 2)
    assert found.keys() == {"speedup_2_workers", "ray_to_workers"}
    assert capsys.readouterr().out.startswith("2 users: one worker ")
    runs = [RunFolder(tmp_path / name) for name in ("process1", "process2", "ray2")]
    assert [len(run.read_conversations()) for run in runs] == [10, 10, 10]


@pytest.mark.slow
def test_events_are_counted_by_a_pipe_and_by_ray() -> None:
    found = count_events(50)
    assert found.keys() == {"events_per_second_by_pipe", "events_per_second_by_ray"}
    assert min(found.values()) > 1
