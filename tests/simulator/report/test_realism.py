"""Users' messages of run folders, and how their comparison with people's is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.attacks.attack import AttackRecord, UserOrder, load_orders
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import LineWriter
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.transcript import Conversation, Turn
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_json import BranchedFrom, Imported, SavedExperiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.realism import place_bar, read_run_messages
from tests.builders import conversation

PACK = "consumer-grievance-india"
PERSONA = "agartala-which-commission"


def saved_run(folder: Path, held: list[Conversation], **fields: Any) -> RunFolder:
    run = RunFolder(folder)
    with LineWriter(run.conversations) as journal:
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


def test_a_conversation_that_failed_is_marked(tmp_path: Path) -> None:
    held = [conversation("a", ["No."]), conversation("b", ["No."], stop_reason="error", error="timed out")]
    assert [one.failed for one in read_run_messages(saved_run(tmp_path, held))] == [False, True]


def test_bars_of_a_bin_stand_beside_each_other() -> None:
    left, middle = place_bar(0.5, 0, 0, 4, 3), place_bar(0.5, 0, 1, 4, 3)
    assert left == (53.0, 95.0, 32.93, 85.0)
    assert middle[0] > left[0] + left[2]
