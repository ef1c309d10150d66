"""People's messages from files, and the users' messages of run folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.attacks.attack import AttackRecord, UserOrder, load_orders
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.transcript import Conversation, Turn
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_json import BranchedFrom, Imported, SavedExperiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.realism import read_reference, read_run_messages
from tests.builders import conversation

PACK = "consumer-grievance-india"
PERSONA = "agartala-which-commission"


def saved_run(folder: Path, held: list[Conversation], **fields: Any) -> RunFolder:
    run = RunFolder(folder)
    with run.open_conversations() as journal:
        for one in held:
            journal.append(one.model_dump_json())
    asked = Experiment(scenario=PACK, chatbots=["vanilla"])  # type: ignore[arg-type]
    run.write_experiment(SavedExperiment(experiment=asked, identity={}, detectors={}, **fields))
    return run


def test_messages_have_their_user_and_the_personas_facts(tmp_path: Path) -> None:
    persona = next(one for one in load_scenario(PACK).personas if one.id == PERSONA)
    run = saved_run(tmp_path, [conversation("a", ["No.", "Yes."], persona=PERSONA, seed=3)])
    (found,) = read_run_messages(run)
    assert (found.user, found.texts) == (("s", PERSONA, 3), ("Hi there", "Hi there"))
    assert found.facts == persona.facts != ()


def test_imported_conversations_have_a_user_each(tmp_path: Path) -> None:
    held = [conversation("a", ["No."]), conversation("b", ["Yes."])]
    run = saved_run(tmp_path, held, imported=Imported(file="x", format="csv"))
    assert [one.user[1] for one in read_run_messages(run)] == ["a", "b"]


def test_orders_that_an_attack_put_in_are_not_counted(tmp_path: Path) -> None:
    order = load_orders()[0]
    turn = Turn(index=0, user=UserOrder(turn=0, order=order).after("Who pays?"), reply="No.")
    planted = AttackRecord(documents=1, orders=(order,), by_users=True)
    run = saved_run(tmp_path, [conversation("a", [], turns=(turn,))], planted=planted)
    assert read_run_messages(run)[0].texts == ("Who pays?",)


def test_a_run_that_branches_off_is_refused(tmp_path: Path) -> None:
    source = BranchedFrom(run="runs/demo", chatbot="vanilla", digest="0")
    run = saved_run(tmp_path, [conversation("a", ["No."])], branched_from=source)
    with pytest.raises(UsageError, match=r"users' messages are those of runs/demo\. Measure that run"):
        read_run_messages(run)


def written(folder: Path, *lines: Any) -> Path:
    path = folder / "people.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_our_own_file_has_the_conversations_of_mtrag_un() -> None:
    found = read_reference(None)
    assert (len(found), sum(len(one.texts) for one in found)) == (265, 1103)
    assert len({one.user for one in found}) == 265


def test_lines_with_user_turns(tmp_path: Path) -> None:
    path = written(tmp_path, {"user_turns": ["Hi", " ", "Bye"], "collection": "x"}, {"user_turns": []})
    assert [one.texts for one in read_reference(path)] == [("Hi", "Bye"), ()]


def test_a_file_that_import_reads(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "Who pays?"}, {"role": "assistant", "content": "The bank."}]
    assert [one.texts for one in read_reference(written(tmp_path, {"messages": said}))] == [("Who pays?",)]


def test_an_empty_file_has_no_messages(tmp_path: Path) -> None:
    assert read_reference(written(tmp_path)) == []


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ({"user_turns": "Hi"}, "user_turns: must be a list"),
        ({"user_turns": [1]}, "user_turns.0: must be text"),
        ({"turns": ["Hi"]}, "user_turns: this key is missing"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: Any, complaint: str) -> None:
    path = written(tmp_path, {"user_turns": ["Hi"]}, line)
    with pytest.raises(UsageError) as error:
        read_reference(path)
    assert f"{path}, line 2: {complaint}" in str(error.value)


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, {"user_turns": ["Hi"]})
    path.write_text(path.read_text() + "nothing\n")
    with pytest.raises(UsageError, match="line 2: not valid JSON"):
        read_reference(path)
