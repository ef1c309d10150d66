"""Which lines of the journals count, and what is said of those that cannot be of one run."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import LineWriter
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journals import Journals
from tests.builders import conversation, scored, unscored
from tests.kit.run_folders import write_run


def read(folder: Path, conversations: list[Conversation], verdicts: list[Verdict]) -> Journals:
    """What a folder with these lines gives."""
    return write_run(folder, conversations, verdicts).read_journals()


def complaint(folder: Path, conversations: list[Conversation], verdicts: list[Verdict]) -> str:
    """What is said of such lines, without the folder's path."""
    with pytest.raises(UsageError) as caught:
        read(folder, conversations, verdicts)
    return str(caught.value).replace(f"{folder}/", "")


def test_the_first_verdict_that_did_not_fail_counts(tmp_path: Path) -> None:
    lines = [unscored("c", 0), scored("c", 0, [(0, 1)]), scored("c", 0), unscored("c", 0)]
    found = read(tmp_path, [conversation("c", ["A."])], lines)
    assert list(found.verdicts) == [scored("c", 0, [(0, 1)])]


def test_verdicts_on_a_try_that_failed_are_of_the_run(tmp_path: Path) -> None:
    failed = conversation("c", ["A."]).model_copy(update={"stop_reason": "error", "error": "oops"})
    again = conversation("c-try2", ["B."])
    found = read(tmp_path, [failed, again], [scored("c", 0), scored("c-try2", 0)])
    assert ([chat.id for chat in found.conversations], len(found.verdicts)) == (["c-try2"], 2)


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        (
            [scored("c", 0), scored("e", 0)],
            "line 2: field `conversation`: conversations.jsonl has no conversation 'e'. "
            "Restore it there, or delete the verdicts about it.",
        ),
        (
            [scored("c", 1)],
            "line 1: field `turn`: there is no turn 1 in conversation 'c', which has 1. "
            "Correct or delete the line.",
        ),
        (
            [scored("c", 0, [(0, 1), (1, 3)])],
            "line 1: field `spans.1`: a span [1, 3) outside the reply, which has 2 characters. "
            "Correct or delete the line.",
        ),
        (
            [scored("c", 0).model_copy(update={"word_scores": (0.5, 0.5)})],
            "line 1: field `word_scores`: 2 word scores for a reply of 1 words. Correct or delete the line.",
        ),
    ],
)
def test_a_verdict_on_what_is_not_there_is_refused(
    tmp_path: Path, verdicts: list[Verdict], said: str
) -> None:
    assert complaint(tmp_path, [conversation("c", ["A."])], verdicts) == f"verdicts.jsonl, {said}"


def test_a_conversation_that_stands_twice_is_refused(tmp_path: Path) -> None:
    twice = [conversation("c", ["A."]), conversation("d", ["B."]), conversation("c", ["C."])]
    assert complaint(tmp_path, twice, []) == (
        "conversations.jsonl, line 3: field `id`: an earlier line has the conversation 'c', too. "
        "Delete one of them."
    )


def test_what_a_run_writes_between_the_reading_of_two_journals_is_no_contradiction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hallulab.simulator.records import journal_lines

    run = RunFolder(tmp_path)
    read_placed_lines = journal_lines.read_placed_lines
    asked: list[str] = []

    def read_while_a_run_writes(path: Path) -> list[tuple[int, int, object]]:
        asked.append(path.name)
        lines = list(read_placed_lines(path))
        with LineWriter(run.conversations) as chats, LineWriter(run.verdicts) as judged:
            chats.append(conversation(path.name, ["A."]).model_dump_json())
            judged.append(scored(path.name, 0).model_dump_json())
        return lines

    monkeypatch.setattr(journal_lines, "read_placed_lines", read_while_a_run_writes)
    found = run.read_journals()
    assert [chat.id for chat in found.conversations] == ["verdicts.jsonl"]
