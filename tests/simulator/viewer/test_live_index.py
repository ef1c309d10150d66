"""The index of a conversation that a person holds: its line is replaced after each turn."""

from __future__ import annotations

import os
from pathlib import Path

from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_json import HeldLive, SavedExperiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.viewer.index import RunIndex
from tests.builders import conversation


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
