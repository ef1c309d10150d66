"""The report of a run in shards equals the one made in one pass."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import psutil
import pytest

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.simulator.metrics.corrected import CorrectedSection
from hallulab.simulator.metrics.metric import Metric
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journal_files import LARGEST
from hallulab.simulator.records.journals import Journals
from hallulab.simulator.records.run_files import list_shards
from hallulab.simulator.report import shards as counting
from hallulab.simulator.report.build import load_metrics, read_report
from hallulab.simulator.report.shards import Counted, ShardTask, count_part
from hallulab.simulator.report.write import write_reports
from tests.builders import conversation
from tests.simulator.command_line import CommandLine
from tests.simulator.sharded import make_run


def make_both(folder: Path, seeds: int = 4) -> tuple[RunFolder, RunFolder]:
    """The same run of 18 conversations for each seed in one journal, and in shards."""
    one, shards = (make_run(folder / str(kind), seeds, in_shards=kind) for kind in (False, True))
    return one, shards


def count_here(given: Iterable[ShardTask]) -> list[Counted]:
    """Count each in this process."""
    return [*map(count_part, given)]


def read_numbers(run: RunFolder) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in run.derived if file.is_file() and file != run.page}


def test_numbers_are_those_of_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_count_each", count_here)
    one, shards = make_both(tmp_path)
    assert write_reports(one) == write_reports(shards)
    numbers = read_numbers(one)
    assert numbers == read_numbers(shards)
    assert numbers.keys() == {"report.json", "report.csv", "concentration.csv"}
    rows = read_report(shards.report).rows
    assert [(row.conversations, row.personas) for row in rows] == [(36, 9)] * 4
    assert all(row.hpt_1_ci95 for row in rows)


@pytest.mark.slow
def test_numbers_of_several_processes_are_those_of_one_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, shards = make_both(tmp_path, 20)
    write_reports(one)
    write_reports(shards)
    assert read_numbers(one) == read_numbers(shards)


@pytest.mark.slow
def test_damage_is_reported_by_the_process_that_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = make_both(tmp_path)
    path = list_shards(run.conversations)[3]
    path.write_text("{}\n")
    with pytest.raises(UsageError) as refused:
        write_reports(run)
    assert str(refused.value).startswith(f"{path}, line 1: ")


@pytest.mark.slow
def test_a_process_that_dies_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, run = make_both(tmp_path)
    monkeypatch.setattr("hallulab.simulator.engine.worker_lines._BEGIN", "import sys; sys.exit(3)")
    with pytest.raises(OperationalError) as refused:
        write_reports(run)
    assert str(refused.value) == (
        "the worker process ended (exit code 3) before it could begin. If the memory was full, close other "
        "programs or lower --workers."
    )


def test_the_page_shows_whole_cases_of_a_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_count_each", count_here)
    monkeypatch.setattr(counting, "SHOWN", 7)
    one, shards = make_both(tmp_path)
    write_reports(shards)
    [page] = shards.pages.iterdir()
    assert page.read_text().count('"stop":"max_turns"') == 8
    assert "A sample is shown: 8 of the 72 conversations are on pages of their own" in shards.page.read_text()
    monkeypatch.setattr("hallulab.simulator.report.write.LARGEST", 10)
    monkeypatch.setattr("hallulab.simulator.report.write.MOST", 10)
    write_reports(one)
    assert (one.pages / page.name).read_bytes() == page.read_bytes()


def test_a_metric_that_does_not_merge_is_counted_in_one_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> list[Counted]:
        raise AssertionError

    monkeypatch.setattr(counting, "_count_each", refuse)
    monkeypatch.setattr(load_metrics()[0], "merge", Metric.merge)
    monkeypatch.setattr(load_metrics()[0], "COUNTS", ())
    one, shards = make_both(tmp_path)
    assert write_reports(one) == write_reports(shards)


def test_a_run_in_shards_without_a_reply_is_reported_after_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hallulab: CommandLine
) -> None:
    monkeypatch.setattr(counting, "_count_each", count_here)
    run = RunFolder(tmp_path)
    with run.open_journals(Journals([], []), LARGEST + 1) as journals:
        journals.add_conversation(conversation("c", [], stop_reason="error", error="It broke."))
    ended = hallulab("report", run.path)
    assert (ended.code, run.page.is_file()) == (1, True)
    assert "no conversation got as far as a reply: 1 of 1 failed. Reason: It broke." in ended.err


def test_an_empty_run_in_shards_has_nothing_to_report_on(tmp_path: Path, hallulab: CommandLine) -> None:
    run = RunFolder(tmp_path)
    run.open_journals(Journals([], []), LARGEST + 1).__exit__(None, None, None)
    ended = hallulab("report", run.path)
    assert (ended.code, run.page.exists()) == (2, False)
    assert "there is nothing to report on yet" in ended.err


def test_annotations_correct_a_run_in_shards_as_one_in_one_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "_count_each", count_here)
    reports = []
    for run in make_both(tmp_path):
        lines = [
            {"conversation": f"{bot}-p{number}-0", "turn": 0, "key": f"{bot}{number}", "spans": [], **more}
            for bot in ("vanilla", "agent")
            for number in range(9)
            for more in ({"propensity": 1 / (number + 1), "stratum": number % 2}, {"annotator": "model:m"})
        ]
        run.annotations.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        reports.append(write_reports(run))
    assert reports[0] == reports[1]
    assert {row.annotated for row in reports[0].of(CorrectedSection).corrected} == {9, 18}


@pytest.mark.slow
def test_no_process_outlives_the_one_that_asks(tmp_path: Path) -> None:
    run = make_run(tmp_path, 60, in_shards=True)
    words = [sys.executable, "-m", "hallulab", "report", str(run.path)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as report:
        asking = psutil.Process(report.pid)
        while not (counting := asking.children()):
            assert report.poll() is None
            time.sleep(0.05)
        report.kill()
    gone, alive = psutil.wait_procs(counting, timeout=10)
    assert (len(gone), alive) == (len(counting), [])
