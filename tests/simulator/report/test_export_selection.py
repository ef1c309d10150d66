"""Which conversations of a run are exported, what of them, and what is counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hallulab.scenarios.chats.formats import list_written_formats
from hallulab.scenarios.datasets.loader import LoadRequest
from hallulab.scenarios.datasets.ragtruth import load_ragtruth
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Turn
from hallulab.simulator.options.groups import ExportSelection
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_json import Imported, SavedExperiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.export import export_chats
from hallulab.simulator.report.selection import SelectionCounts
from tests.builders import conversation, scored, unscored
from tests.kit.run_folders import write_run
from tests.simulator.report.exported import ALL, chat, half_judged


def test_spans_steps_and_passages_are_left_out(tmp_path: Path) -> None:
    run = write_run(tmp_path, [chat("a", "It is 500.")], [scored("a", 0, [(6, 9)])])
    wanted = ExportSelection(without=frozenset({"passages", "steps", "spans"}))
    export_chats(run, "openai", wanted, tmp_path / "plain.jsonl")
    assert json.loads((tmp_path / "plain.jsonl").read_text()) == {
        "messages": [
            {"role": "user", "content": "Question 0?"},
            {"role": "assistant", "content": "It is 500."},
        ]
    }
    export_chats(run, "openai", ExportSelection(), tmp_path / "whole.jsonl")
    (turn,) = json.loads(json.loads((tmp_path / "whole.jsonl").read_text())["hallulab"])["turns"]
    assert turn["spans"] == [{"detector": "d", "start": 6, "end": 9, "text": "x"}]


def test_what_is_not_wanted_is_counted(tmp_path: Path) -> None:
    chats = [chat(name, f"It is {name}.", f"Call {name}.") for name in "abcd"]
    chats += [chat("e", "Short.")]
    clean = [scored(name, turn) for name in "ad" for turn in (0, 1)]
    # A failed turn and a missing one are not clean.
    verdicts = [*clean, scored("b", 0), unscored("b", 1), scored("c", 0)]
    run = write_run(tmp_path, chats, verdicts)
    wanted = ExportSelection(clean_by="d", min_turns=2)
    assert export_chats(run, "openai", wanted, tmp_path / "x") == SelectionCounts(
        written=2, too_short=1, not_clean=2
    )


def test_conversations_with_flaws_of_the_user_are_left_out(tmp_path: Path) -> None:
    said = "I would like to know what the fee for my complaint is, please."
    same = [Turn(index=index, user=said, reply=f"Reply {index}.") for index in range(3)]
    run = write_run(tmp_path, [chat("a", "Yes.", "No."), conversation("b", [], turns=same)])
    assert export_chats(run, "csv", ExportSelection(audited=True), tmp_path / "x") == SelectionCounts(
        written=1, flawed=1
    )


def test_imported_chats_have_no_user_to_audit(tmp_path: Path) -> None:
    run = write_run(tmp_path, [chat("a", "Yes.")])
    about = Imported(file="x", format="csv")
    asked = Experiment(scenario="imported", chatbots=["vanilla"])  # type: ignore[arg-type]
    run.write_experiment(SavedExperiment(experiment=asked, identity={}, detectors={}, imported=about))
    with pytest.raises(UsageError, match="no simulated user to audit"):
        export_chats(run, "csv", ExportSelection(audited=True), tmp_path / "x")


def nearly_alike(folder: Path) -> RunFolder:
    """Three conversations, of which the second is nearly the first."""
    words = [f"word{number}" for number in range(60)]
    other = [*words[:-1], "another"]
    chats = [chat("a", " ".join(words)), chat("b", " ".join(other)), chat("c", " ".join(reversed(words)))]
    return write_run(folder, chats)


@pytest.mark.parametrize(
    ("format", "counts"),
    [
        *((format, SelectionCounts(written=2, near_duplicates=1)) for format in ("openai", "sharegpt", "hf")),
        *((format, SelectionCounts(written=3)) for format in ("csv", "parquet", "jsonl", "ragtruth")),
    ],
)
def test_near_duplicates_are_dropped_and_counted_in_formats_for_training_alone(
    tmp_path: Path, format: str, counts: SelectionCounts
) -> None:
    run = nearly_alike(tmp_path)
    assert export_chats(run, format, ExportSelection(), tmp_path / "x") == counts
    assert export_chats(run, format, ALL, tmp_path / "all") == SelectionCounts(written=3)


def test_a_reply_that_a_detector_failed_on_is_exported_as_not_judged_and_not_as_clean(tmp_path: Path) -> None:
    found = export_chats(half_judged(tmp_path), "jsonl", ExportSelection(), tmp_path / "x")
    assert found == SelectionCounts(written=1, not_judged=2)
    spans = json.loads((tmp_path / "x").read_text())["spans"]
    assert [one if one is None else len(one) for one in spans] == [0, None, 1, None]


def test_spans_of_one_detector_do_not_depend_on_the_others(tmp_path: Path) -> None:
    export_chats(half_judged(tmp_path), "openai", ExportSelection(detector="d"), tmp_path / "x")
    turns = json.loads(json.loads((tmp_path / "x").read_text())["hallulab"])["turns"]
    assert [turn["spans"] if not turn["spans"] else "flagged" for turn in turns] == [[], [], "flagged", None]


def test_ragtruth_does_not_call_a_reply_good_that_was_not_judged(tmp_path: Path) -> None:
    export_chats(half_judged(tmp_path), "ragtruth", ExportSelection(), tmp_path / "x")
    found = load_ragtruth(LoadRequest("ragtruth", tmp_path / "x"))
    assert [(one.reply, one.label) for one in found] == [("It is 1.", False), ("It is 3.", True)]
    assert found.left_out == {"not judged": 2}


def test_nothing_is_written_where_nothing_is_left(tmp_path: Path) -> None:
    run = write_run(tmp_path, [chat("a", "Yes.")])
    for format in list_written_formats():
        with pytest.raises(UsageError, match=r"has no such conversation \(1 too short\)"):
            export_chats(run, format, ExportSelection(min_turns=9), tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["conversations.jsonl"]


def test_an_unknown_detector_is_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path, [chat("a", "Yes.")])
    with pytest.raises(UsageError, match=r"no verdicts of a detector 'x'.*correct --clean-by"):
        export_chats(run, "csv", ExportSelection(clean_by="x"), tmp_path / "out")
