"""Large runs: the script that looks for lost and doubled lines finds them, and memory does not grow."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from benchmarks.orchestration import stub
from benchmarks.scale import made_run
from benchmarks.scale.made_run import make
from benchmarks.scale.memory import lost_and_doubled, simulated
from benchmarks.scale.speedup import speedup
from simulator.report.exporting import export_annotated
from simulator.report.reporting import write_reports
from simulator.runs.folder import RunFolder


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


def largest(folder: RunFolder) -> int:
    """Most bytes of Python objects while a folder is reported on and exported."""
    tracemalloc.start()
    write_reports(folder)
    export_annotated(folder, "lexical", folder.path / "export.jsonl")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_reports_and_exports_of_many_conversations_need_little_more_than_those_of_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("pages", "reporting"):
        monkeypatch.setattr(f"simulator.report.{module}.MOST", 20)
    monkeypatch.setattr("simulator.measure.statistics._CELLS", 10_000)
    make(30, tmp_path / "few")
    make(300, tmp_path / "many")
    largest(RunFolder(tmp_path / "few"))  # loads libraries
    few, many = (largest(RunFolder(tmp_path / name)) for name in ("few", "many"))
    assert many - few < 6_000_000  # as objects, the other 270 conversations take 30 MB


def test_a_run_against_the_stub_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with stub() as base_url:
        needed = simulated(base_url, 6, tmp_path / "run")
    assert lost_and_doubled(tmp_path / "run", 6) == (0, 0)
    assert needed["run"].megabytes < 1000


def test_the_same_run_is_timed_by_one_worker_and_by_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = speedup(tmp_path, 2)
    assert found.keys() == {"speedup_2_workers"}
    assert capsys.readouterr().out.startswith("2 users: one worker ")
    counts = [len(RunFolder(tmp_path / name).read_conversations()) for name in ("1", "2")]
    assert counts == [10, 10]
