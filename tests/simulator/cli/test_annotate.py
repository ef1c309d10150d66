"""`hallulab annotate`: a sheet is drawn, filled in and added, and the report says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from hallulab.simulator.metrics.corrected import CorrectedSection
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_json import ComponentVersions, SavedExperiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.write import report_of
from tests.builders import conversation
from tests.simulator.cli.two_bots import write_two_bots
from tests.simulator.command_line import CommandLine


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return write_two_bots(tmp_path / "run", "It is: Rs 500.\nPer year.", "Rs 500")


def read_sheet(run: RunFolder, number: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((run.path / f"to-annotate-{number}.yaml").read_text())
    return found


def fill_in(run: RunFolder, number: int = 1, **fields: Any) -> Path:
    """Every first turn has an error; nobody looks at the sheet's last turn. `fields` are of the sheet."""
    path = run.path / f"to-annotate-{number}.yaml"
    sheet = read_sheet(run, number)
    for turn in sheet["turns"][:-1]:
        fee = {"quote": "Rs 500", "severity": 4, "reason": "It is Rs 200."}
        turn["spans"] = [fee] if turn["turn"] == 0 else []
    path.write_text(yaml.safe_dump({**sheet, **fields}))
    return path


def read_lines(run: RunFolder) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run.annotations.read_text().splitlines()]


def test_a_sheet_is_drawn_filled_in_and_added_and_numbers_are_corrected(
    hallulab: CommandLine, run: RunFolder, tmp_path: Path
) -> None:
    guideline = tmp_path / "guideline.md"
    guideline.write_text("Count what the documents contradict.")
    drawn = hallulab("annotate", run.path, "--next", "16", "--guideline", guideline)
    assert (drawn.code, drawn.err) == (0, "")
    assert "a: 8 drawn; 0 of 16 turns annotated before" in drawn.out
    assert "with these labels, and" in " ".join(drawn.out.split())
    sheet = read_sheet(run)
    assert (sheet["annotator"], len(sheet["turns"])) == ("person", 16)
    assert (run.path / f"guideline-{sheet['guideline']}.md").read_text() == guideline.read_text()
    assert {turn["reply"] for turn in sheet["turns"]} == {"It is: Rs 500.\nPer year.", "No."}
    assert all(turn["spans"] is None and 0 < turn["propensity"] < 1 for turn in sheet["turns"])

    added = hallulab("annotate", run.path, "--add", fill_in(run))
    assert (added.code, added.err) == (0, "")
    assert "15 added to" in added.out
    assert "1 not filled in" in added.out
    [first, *_] = read_lines(run)
    assert first["propensity"] == sheet["turns"][0]["propensity"]
    assert (first["annotator"], first["guideline"], first["draw"]) == ("person", sheet["guideline"], 1)

    ended = hallulab("report", run.path)
    assert (ended.code, ended.err) == (0, "")
    said = " ".join(ended.out.split())
    assert f"Labelled: 15 turns by people (guideline {sheet['guideline']})." in said
    assert "hallulab drew turns to be annotated" in said
    assert "95% interval of HPT-1 for this run's 32 turns" in said
    report = json.loads(run.report.read_text())
    a, b, together = report["corrected"]
    assert (a["source"], b["source"], report["drawn_turns"]) == ("annotations", "annotations", 15)
    low, high = together["all_labelled_ci95"]
    assert low <= 0.5 <= high
    assert report["labelled_by"] == [
        {"annotator": "person", "guideline": sheet["guideline"], "turns": 15, "adjudicates": False}
    ]
    assert "15 turns by people" in run.page.read_text()


def test_adding_twice_adds_once_and_what_stood_there_stays(hallulab: CommandLine, run: RunFolder) -> None:
    before = '{"conversation": "a0", "turn": 0, "key": "k", "spans": [], "claims": true}\n'
    run.annotations.write_text(before)
    hallulab("annotate", run.path, "--next", "6")
    sheet = fill_in(run)
    assert "5 added" in hallulab("annotate", run.path, "--add", sheet).out
    assert "0 added" in hallulab("annotate", run.path, "--add", sheet).out
    assert run.annotations.read_text().startswith(before)
    assert len(read_lines(run)) == 6


def test_the_next_draw_is_of_the_turns_that_are_left(hallulab: CommandLine, run: RunFolder) -> None:
    hallulab("annotate", run.path, "--next", "10")
    hallulab("annotate", run.path, "--add", fill_in(run))
    assert hallulab("annotate", run.path, "--next", "40").code == 0
    places = {(line["conversation"], line["turn"]) for line in read_lines(run)}
    second = read_sheet(run, 2)["turns"]
    assert len(second) == 32 - len(places)
    assert not places & {(turn["conversation"], turn["turn"]) for turn in second}
    assert {(turn["draw"], turn["propensity"]) for turn in second} == {(2, 1.0)}


def test_equal_seeds_draw_equal_turns(hallulab: CommandLine, run: RunFolder) -> None:
    sheets = []
    for seed in (1, 1, 2):
        hallulab("annotate", run.path, "--next", "8", "--seed", str(seed))
        path = run.path / "to-annotate-1.yaml"
        sheets.append(path.read_text())
        path.unlink()
    assert sheets[0] == sheets[1] != sheets[2]


def test_labels_of_a_model_are_said_to_be_its(hallulab: CommandLine, run: RunFolder) -> None:
    hallulab("annotate", run.path, "--next", "16", "--annotator", "model:m-7b")
    hallulab("annotate", run.path, "--add", fill_in(run))
    said = " ".join(hallulab("report", run.path).out.split())
    assert "Labelled: 15 turns by model m-7b, not by people." in said


def test_another_guideline_that_names_another_chatbot_is_warned_of(
    hallulab: CommandLine, run: RunFolder
) -> None:
    def note(bot: str, number: int, guideline: str, *, wrong: bool) -> str:
        spans = [{"quote": "Rs 500", "severity": 4}] if wrong else []
        line = {"conversation": f"{bot}{number}", "turn": 0, "key": f"{bot}{number}", "spans": spans}
        return json.dumps({**line, "guideline": guideline}) + "\n"

    strict = [note(bot, number, "strict", wrong=bot == "b") for bot in "ab" for number in range(6)]
    loose = [note(bot, number, "loose", wrong=bot == "a") for bot in "ab" for number in range(5)]
    run.annotations.write_text("".join([*strict, *loose]))
    said = " ".join(hallulab("report", run.path).out.split())
    assert (
        "Warning: by d, corrected, a has the lowest HPT-1; with other labels of the same turns, 10 turns by "
        "people (guideline loose), it would be b."
    ) in said
    assert json.loads(run.report.read_text())["other_winners"] == [
        {
            "detector": "d",
            "labels": {"annotator": "person", "guideline": "loose", "turns": 10, "adjudicates": False},
            "lowest": "a",
            "lowest_by_them": "b",
        }
    ]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((), "give either --next NUMBER or --add FILE"),
        (("--next", "2", "--detector", "e"), "--detector e: it did not judge"),
        (
            ("--next", "2", "--annotator", "me"),
            "'me' is no annotator; give `person`, `person:` and a name, or `model:` and its name.",
        ),
        (("--next", "2", "--guideline", "none.md"), "none.md: cannot be read"),
    ],
)
def test_wrong_options_are_refused(
    hallulab: CommandLine, run: RunFolder, flags: tuple[Any, ...], said: str
) -> None:
    ended = hallulab("annotate", run.path, *flags)
    assert ended.code == 2
    assert said in " ".join(ended.err.split())


def test_a_sheet_that_was_not_added_is_not_overwritten(hallulab: CommandLine, run: RunFolder) -> None:
    hallulab("annotate", run.path, "--next", "4")
    text = (run.path / "to-annotate-1.yaml").read_text()
    ended = hallulab("annotate", run.path, "--next", "8")
    assert ended.code == 2
    assert "Fill it in and add it" in " ".join(ended.err.split())
    assert (run.path / "to-annotate-1.yaml").read_text() == text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("quote: Rs 500", "quote: Rs 600", "the quotation 'Rs 600' does not stand in the reply"),
        ("conversation: ", "conversation: z", "has no turn"),
        ("severity: 4", "severity: 9", "less than or equal to 5"),
        ("annotator: person", "annotator: me", "'me' is no annotator"),
    ],
)
def test_a_wrong_sheet_is_refused_with_its_line_and_adds_nothing(
    hallulab: CommandLine, run: RunFolder, old: str, new: str, said: str
) -> None:
    hallulab("annotate", run.path, "--next", "16")
    path = fill_in(run)
    path.write_text(path.read_text().replace(old, new))
    ended = hallulab("annotate", run.path, "--add", path)
    assert ended.code == 2
    assert "to-annotate-1.yaml, line " in " ".join(ended.err.split())
    assert said in " ".join(ended.err.split())
    assert not run.annotations.exists()


def test_other_labels_of_the_same_annotator_are_refused(hallulab: CommandLine, run: RunFolder) -> None:
    hallulab("annotate", run.path, "--next", "16")
    path = fill_in(run)
    hallulab("annotate", run.path, "--add", path)
    lines = run.annotations.read_text()
    path.write_text(path.read_text().replace("severity: 4", "severity: 3"))
    ended = hallulab("annotate", run.path, "--add", path)
    assert (ended.code, run.annotations.read_text()) == (2, lines)
    assert "has other labels in annotations.jsonl" in " ".join(ended.err.split())


def test_where_all_is_annotated_nothing_is_drawn(hallulab: CommandLine, run: RunFolder) -> None:
    run.annotations.write_text(
        "".join(
            json.dumps({"conversation": f"{bot}{n}", "turn": turn, "key": f"{bot}{n}{turn}", "spans": []})
            + "\n"
            for bot in "ab"
            for n in range(8)
            for turn in range(2)
        )
    )
    ended = hallulab("annotate", run.path, "--next", "4")
    assert ended.code == 2
    assert "each turn that d scored is annotated already" in " ".join(ended.err.split())


def test_a_sheet_is_not_written_through_a_link_out_of_the_folder(
    hallulab: CommandLine, run: RunFolder, tmp_path: Path
) -> None:
    (run.path / "to-annotate-1.yaml").symlink_to(tmp_path / "elsewhere")
    ended = hallulab("annotate", run.path, "--next", "4")
    assert (ended.code, (tmp_path / "elsewhere").exists()) == (2, False)
    assert "leads out of the run folder" in " ".join(ended.err.split())


def fail_and_replace(run: RunFolder) -> None:
    """Conversation a0 failed, is labelled as drawn, and was replaced by its next try."""
    first, *others = run.conversations.read_text().splitlines()
    held = json.loads(first)
    failed = json.dumps({**held, "stop_reason": "error", "error": "late"})
    run.conversations.write_text("\n".join([failed, *others, json.dumps({**held, "id": "a0-try2"})]) + "\n")
    how = {"draw": 1, "stratum": 0, "propensity": 0.5}
    line = {"conversation": held["id"], "turn": 0, "key": "k", "spans": [], **how}
    run.annotations.write_text(json.dumps(line) + "\n")


def test_a_report_leaves_out_labels_of_a_conversation_that_was_replaced(
    hallulab: CommandLine, run: RunFolder
) -> None:
    fail_and_replace(run)
    ended = hallulab("report", run.path)
    assert ended.code == 0
    said = "Labels left out, because their conversations do not count any more: 1."
    assert said in " ".join(ended.out.split())
    assert json.loads(run.report.read_text())["left_out_labels"] == 1


def test_a_draw_has_another_number_than_one_whose_labels_are_left_out(
    hallulab: CommandLine, run: RunFolder
) -> None:
    fail_and_replace(run)
    (run.path / "to-annotate-1.yaml").write_text("turns: []\n")
    assert hallulab("annotate", run.path, "--next", "2").code == 0
    assert [turn["draw"] for turn in read_sheet(run, 2)["turns"]] == [2, 2]


def test_labels_of_an_older_chatbots_conversation_are_left_out(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    chats = [
        conversation(name, ["Yes."], version=version) for name, version in (("old", "u-1"), ("new", "u-2"))
    ]
    run.conversations.write_text("".join(f"{chat.model_dump_json()}\n" for chat in chats))
    run.annotations.write_text('{"conversation": "old", "turn": 0, "key": "k", "spans": []}\n')
    bots = {"scenario": "pregnancy-medication", "chatbots": ["vanilla"], "model": "m"}
    made_by = ComponentVersions(user="u", chatbots={"vanilla": "2"})
    experiment = Experiment.model_validate(bots)
    run.write_experiment(
        SavedExperiment(experiment=experiment, identity={}, detectors={}, seeds=(0,), made_by=made_by)
    )
    assert report_of(run, run.read_journals()).of(CorrectedSection).left_out_labels == 1


def test_a_sheets_turn_of_a_conversation_that_was_replaced_is_refused(
    hallulab: CommandLine, run: RunFolder
) -> None:
    fail_and_replace(run)
    run.annotations.unlink()
    path = run.path / "to-annotate-1.yaml"
    path.write_text("turns:\n- {conversation: a0, turn: 0, key: k, spans: []}\n")
    ended = hallulab("annotate", run.path, "--add", path)
    said = "conversation a0 does not count any more: its next try replaced it. Delete the turn here."
    assert (ended.code, said in " ".join(ended.err.split())) == (2, True)
