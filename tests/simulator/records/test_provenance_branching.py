"""Where conversations branch off from a finished run, and which folders are refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.engine.plan import Branching, find_branching
from hallulab.simulator.records.experiment_json import SavedExperiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.identity import require_same_experiment
from hallulab.simulator.records.provenance import Provenance, identify_makers
from tests.builders import conversation, scored
from tests.kit.run_folders import write_run
from tests.simulator.records.test_experiment_json import PACK, experiment


def held(
    folder: Path, *conversations: Conversation, verdicts: Sequence[Verdict] = (), chatbots: Sequence[str] = ()
) -> RunFolder:
    """A finished run; with experiment.json if `chatbots` are named."""
    run = write_run(folder, conversations, verdicts)
    if chatbots:
        saved = SavedExperiment(
            experiment=experiment(chatbots=list(chatbots)), identity={}, detectors={"d": "1"}
        )
        run.write_experiment(saved)
    return run


def found(branching: Branching) -> list[tuple[str, int]]:
    return [(one.id, turn.index) for one, turn in branching.prefixes.branches()]


def test_all_turns_of_the_first_chatbots_conversations(tmp_path: Path) -> None:
    run = held(
        tmp_path / "run",
        conversation("b", ["One."], "vanilla", "dev"),
        conversation("a", ["One.", "Two."], "vanilla", "asha"),
        conversation("c", ["One."], "editor", "asha"),
        chatbots=["vanilla", "editor"],
    )
    assert found(find_branching(run, None, None)) == [("a", 0), ("a", 1), ("b", 0)]
    assert found(find_branching(run, "editor", None)) == [("c", 0)]
    assert found(find_branching(run, None, {1, 7})) == [("a", 1)]


def test_without_experiment_json_the_first_is_the_first_by_name(tmp_path: Path) -> None:
    run = held(tmp_path / "run", conversation("a", ["x"], "vanilla"), conversation("b", ["x"], "editor"))
    assert find_branching(run, None, None).prefixes.chatbot == "editor"


def test_what_ran_freely_beside_it_is_copied(tmp_path: Path) -> None:
    """Not the persona that Vanilla never met, and no verdict of another version."""
    run = held(
        tmp_path / "run",
        conversation("a", ["x"], "vanilla", "asha"),
        conversation("b", ["x"], "editor", "asha"),
        conversation("c", ["x"], "editor", "dev"),
        verdicts=[scored("b", 0), scored("c", 0), scored("a", 0).model_copy(update={"version": "0"})],
        chatbots=["vanilla", "editor"],
    )
    free = find_branching(run, None, None).free
    assert [one.id for one in free.conversations] == ["a", "b"]
    assert [one.conversation for one in free.verdicts] == ["b"]


REFUSED = pytest.mark.parametrize(
    ("chatbot", "turns", "told"),
    [
        (
            None,
            {2, 3},
            "no conversation of vanilla has turn 2, 3. The longest has 2 turns; the first is turn 0.",
        ),
        ("agent", None, "has no reply of a chatbot 'agent'. It has those of editor, vanilla."),
    ],
)


@REFUSED
def test_a_turn_or_a_chatbot_that_nobody_has(
    tmp_path: Path, chatbot: str | None, turns: set[int] | None, told: str
) -> None:
    run = held(
        tmp_path / "run",
        conversation("a", ["x", "x"], "vanilla"),
        conversation("b", ["x"], "editor"),
        chatbots=["vanilla", "editor"],
    )
    with pytest.raises(UsageError, match=re.escape(told)):
        find_branching(run, chatbot, turns)


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no run folder: it has no conversations"):
        find_branching(RunFolder(tmp_path), None, None)


def test_a_run_without_a_reply(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no reply yet: there is nothing to branch off from"):
        find_branching(held(tmp_path / "run", conversation("a", [])), None, None)


def test_two_conversations_of_one_case_are_refused(tmp_path: Path) -> None:
    run = held(tmp_path / "run", conversation("a", ["x"]), conversation("b", ["x"]))
    with pytest.raises(UsageError, match="vanilla has two conversations with persona asha, seed 0"):
        find_branching(run, None, None)


@pytest.fixture
def branching(tmp_path: Path) -> Branching:
    return find_branching(held(tmp_path / "run", conversation("a", ["One.", "Two."])), None, None)


def entered(folder: Path, branching: Branching) -> RunFolder:
    run = RunFolder(folder)
    run.path.mkdir()
    asked = experiment()
    Provenance(
        asked,
        load_scenario(PACK),
        [],
        identify_makers(asked),
        branched_from=branching.saved(),
        prefixes=branching.identity,
    ).write(run, copied=branching.free)
    return run


def test_a_branched_run_names_the_run_and_holds_a_copy_of_it(tmp_path: Path, branching: Branching) -> None:
    run = entered(tmp_path / "out", branching)
    saved = run.read_experiment()
    assert saved is not None
    assert saved.branched_from == branching.saved()
    assert branching.saved().run == str(tmp_path / "run")
    assert [one.id for one in run.read_free_running().conversations] == ["a"]


def test_a_branched_run_is_no_run_to_branch_off_from(tmp_path: Path, branching: Branching) -> None:
    run = entered(tmp_path / "out", branching)
    run.conversations.write_text(conversation("b", ["x"]).model_dump_json() + "\n")
    with pytest.raises(
        UsageError, match=re.escape(f"branch off from {tmp_path / 'run'}. Branch off from that")
    ):
        find_branching(run, None, None)


def test_a_branched_run_may_grow(tmp_path: Path, branching: Branching) -> None:
    run = entered(tmp_path / "out", branching)
    both = held(
        tmp_path / "run", conversation("a", ["One.", "Two."]), conversation("b", ["One."], persona="dev")
    )
    require_same_experiment(run, experiment(), load_scenario(PACK), find_branching(both, None, {1}).identity)


def test_another_text_of_a_history_is_refused(tmp_path: Path, branching: Branching) -> None:
    run = entered(tmp_path / "out", branching)
    other = held(tmp_path / "run", conversation("a", ["One.", "Three."]))
    with pytest.raises(
        UsageError, match=r"differs in conversation with persona asha, seed 0\)\. Use --fresh"
    ):
        require_same_experiment(
            run, experiment(), load_scenario(PACK), find_branching(other, None, None).identity
        )


def test_branched_and_other_conversations_are_not_mixed(tmp_path: Path, branching: Branching) -> None:
    scenario = load_scenario(PACK)
    with pytest.raises(UsageError, match="holds conversations that branch off, and the two are not mixed"):
        require_same_experiment(entered(tmp_path / "out", branching), experiment(), scenario)
    plain = RunFolder(tmp_path / "plain")
    plain.path.mkdir()
    asked = experiment()
    Provenance(asked, scenario, [], identify_makers(asked)).write(plain)
    with pytest.raises(UsageError, match="holds conversations from their beginning, and the two are not"):
        require_same_experiment(plain, experiment(), scenario, branching.identity)


def test_starting_over_deletes_the_copies_too(tmp_path: Path, branching: Branching) -> None:
    run = entered(tmp_path / "out", branching)
    run.clear()
    assert list(run.path.iterdir()) == []


def test_the_run_itself_is_never_written_to(tmp_path: Path, branching: Branching) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "run")
    with pytest.raises(UsageError, match="this is the run to branch off from"):
        branching.require_other(RunFolder(tmp_path / "link"))
