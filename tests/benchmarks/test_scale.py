"""Large runs: the script that looks for lost and doubled lines finds them, and memory does not grow."""

from __future__ import annotations

import contextlib
import gc
import sys
import tracemalloc
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import pytest

from benchmarks.orchestration import stub
from benchmarks.scale import made_run
from benchmarks.scale.__main__ import Needed, lost_and_doubled, measure_made, simulated
from benchmarks.scale.made_run import Shape, make
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
    usual = gc.get_threshold()
    gc.set_threshold(700, 10, 10)  # a command of an earlier test collects so seldom that garbage counts too
    tracemalloc.start()
    write_all(folder)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    gc.set_threshold(*usual)
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
    for module in ("page_files", "write"):
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
    monkeypatch.setattr("benchmarks.scale.__main__.needed_by", in_this_process)


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


@pytest.mark.usefixtures("one_process")
def test_a_report_on_a_made_folder_of_any_shape_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = measure_made(tmp_path / "made", 12, Shape(turns=2, detectors=1, personas=6))
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
