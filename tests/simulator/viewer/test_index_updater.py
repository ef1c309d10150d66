"""An index is brought up to date in steps, the rest in the background, while pages are asked for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_json import HeldLive, SavedExperiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.run_files import list_shards
from hallulab.simulator.viewer import index, index_updater
from hallulab.simulator.viewer.index import Counts, RunIndex
from hallulab.simulator.viewer.index_updater import IndexUpdater
from hallulab.simulator.viewer.runs import ShownRuns
from tests.builders import conversation, scored
from tests.simulator.viewer.serving import append, serving

CHATS = [conversation(str(number), ["x"]) for number in range(9)]
VERDICTS = [scored(chat.id, 0, [(0, 1)]) for chat in CHATS]


@pytest.fixture
def few_lines_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "LINES_A_STEP", 2)


def run_of(folder: Path) -> RunFolder:
    run = RunFolder(folder)
    append(run.conversations, CHATS)
    append(run.verdicts, VERDICTS)
    return run


def test_a_step_reads_a_part_and_says_how_far_it_is(tmp_path: Path, few_lines_a_step: None) -> None:
    found = RunIndex(run_of(tmp_path / "run"), tmp_path / "indices")
    assert found.measure_progress() == 0
    assert found.grow()
    assert found.count() == Counts(2, 2, 2, 2, 0)
    assert 0.2 < found.measure_progress() < 0.3


def test_the_rest_is_read_in_the_background(tmp_path: Path, few_lines_a_step: None) -> None:
    found = RunIndex(run_of(tmp_path / "run"), tmp_path / "indices")
    growing = IndexUpdater(found)
    growing.update()
    growing.wait()
    assert not growing.is_working
    assert growing.count() == Counts(9, 9, 9, 9, 0)
    assert found.measure_progress() == 1


def test_few_lines_are_read_at_once(tmp_path: Path) -> None:
    growing = IndexUpdater(RunIndex(run_of(tmp_path / "run"), tmp_path / "indices"))
    growing.update()
    assert not growing.is_working
    assert growing.count().conversations == 9


def test_shards_are_read_step_by_step(tmp_path: Path, few_lines_a_step: None) -> None:
    run = RunFolder(tmp_path / "run")
    for shard, chat in zip(list_shards(run.conversations), CHATS, strict=False):
        append(shard, [chat])
    found = RunIndex(run, tmp_path / "indices")
    assert [found.grow() for _ in range(5)] == [True, True, True, True, False]
    assert found.count().conversations == 9


def test_what_goes_wrong_in_the_background_is_told_at_the_next_request(
    tmp_path: Path, few_lines_a_step: None
) -> None:
    run = run_of(tmp_path / "run")
    growing = IndexUpdater(RunIndex(run, tmp_path / "indices"))
    run.experiment.write_text(json.dumps([]))
    growing.update(at_once=False)
    growing.wait()
    with pytest.raises(UsageError, match="not an object"):
        growing.update()


def test_counts_of_a_moment_ago_are_enough_while_lines_are_read(
    tmp_path: Path, few_lines_a_step: None
) -> None:
    found = RunIndex(run_of(tmp_path / "run"), tmp_path / "indices")
    found.grow()
    before = found.count()
    found.grow()
    assert found.count(lately=True) == before
    assert found.count().conversations == 4


def test_a_page_says_how_far_an_index_is(tmp_path: Path, few_lines_a_step: None) -> None:
    run = run_of(tmp_path / "run")
    with serving([run.path], tmp_path / "indices") as viewer:
        shown = viewer.runs.list()[0]
        shown.index.grow()
        with index_updater._ONE_AT_A_TIME:  # so that the background has no turn
            shown.updater.update(at_once=False)
            _, page = viewer.get(f"/runs/{shown.id}")
            assert "The index of this run is being built: 2" in page
            _, runs = viewer.get("/")
            assert "1 run is being read for the first time" in runs
        shown.updater.wait()
        _, page = viewer.get(f"/runs/{shown.id}")
        assert "<b>9</b> conversations" in page
        assert "HPT-1" in page


def test_a_run_in_shards_has_changed_when_a_shard_has(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    append(list_shards(run.conversations)[3], CHATS[:1])
    [shown] = ShownRuns([run.path], tmp_path / "indices").list()
    assert shown.changed.timestamp() == pytest.approx(list_shards(run.conversations)[3].stat().st_mtime)


def test_a_line_that_was_replaced_in_the_same_file_is_read_anew(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    run.path.mkdir()
    experiment = Experiment.model_validate({"scenario": "s", "chatbots": ["vanilla"]})
    saved = SavedExperiment(experiment=experiment, identity={}, detectors={}, live=HeldLive(at="a test"))
    run.write_experiment(saved)
    index = RunIndex(run, tmp_path / "indices")
    for second, replies in enumerate((["One."], ["One.", "Two."])):
        # A new file may get the number of a deleted one, as writing into the same file does.
        run.conversations.write_text(conversation("c", replies).model_dump_json() + "\n")
        os.utime(run.conversations, (second, second))
        index.grow()
        assert (index.count().turns, index.count().flaws) == (len(replies), 0)
