"""The audit log: a chain that shows what was edited, removed or moved, and how a run goes on with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.records.audit_log import FIRST, AuditLog, BrokenChain, read_chain, require_in_journal
from tests.builders import call, conversation
from tests.simulator.records.guarded import HANDED, PASSED, held

FIRST_CHAT, SECOND_CHAT = held("one", [PASSED, HANDED]), held("two", [PASSED])


def written(path: Path, *conversations: Conversation) -> Path:
    with closing(AuditLog(path, read_chain(path))) as log:
        for one in conversations:
            log.add(one)
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return written(tmp_path / "audit.jsonl", FIRST_CHAT, SECOND_CHAT)


def test_each_guarded_reply_has_a_line_with_what_was_done_and_why(log: Path) -> None:
    chain = read_chain(log)
    told = [(one.conversation, one.turn, one.action, one.escalated) for one in chain.entries]
    assert told == [("one", 0, "passed", False), ("one", 1, "human", True), ("two", 0, "passed", False)]
    handed = chain.entries[1]
    assert (handed.topics, handed.threshold, handed.attempts[0].score) == (
        {"pregnancy": "'pregnant' in the question"},
        0.3,
        0.9,
    )
    assert (handed.policy, handed.policy_digest, handed.reason) == (
        "mine",
        "abc",
        "H = 0.90 reaches τ = 0.30",
    )
    assert [span.text for span in handed.attempts[0].spans or ()] == ["Safe"]


def test_each_line_holds_the_hash_of_the_line_before(log: Path) -> None:
    chain = read_chain(log)
    assert [one.sequence for one in chain.entries] == [0, 1, 2]
    assert [one.previous for one in chain.entries] == [FIRST, *(one.hash for one in chain.entries[:2])]


def test_the_log_has_no_text_of_a_reply(log: Path) -> None:
    assert "Not tested." not in log.read_text()


def test_a_run_without_a_guard_has_no_log(tmp_path: Path) -> None:
    assert not written(tmp_path / "audit.jsonl", conversation("plain", ["Hello."])).exists()


def test_a_chain_goes_on_after_a_restart_and_writes_nothing_twice(tmp_path: Path, log: Path) -> None:
    again = tmp_path / "again.jsonl"
    written(again, FIRST_CHAT)
    written(again, FIRST_CHAT, SECOND_CHAT)
    assert [one.conversation for one in read_chain(again).entries] == ["one", "one", "two"]


def lines_of(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    path.write_text("".join(change(path.read_text().splitlines(keepends=True))))


def rewritten(line: str, **fields: object) -> str:
    return json.dumps({**json.loads(line), **fields}, ensure_ascii=False) + "\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda lines: [lines[0], rewritten(lines[1], action="passed"), lines[2]],
            "line 2: the line was edited after it was written: its hash does not fit.",
        ),
        (
            lambda lines: [lines[0], rewritten(lines[1], reason="nothing"), lines[2]],
            "line 2: the line was edited after it was written: its hash does not fit.",
        ),
        (
            lambda lines: [lines[0], lines[2]],
            "line 2: the line does not follow the one before it: it is number 2 where 1 is expected, so a "
            "line was removed, added or moved.",
        ),
        (
            lambda lines: [lines[1], lines[0], lines[2]],
            "line 1: the line does not follow the one before it: it is number 1 where 0 is expected, so a "
            "line was removed, added or moved.",
        ),
        (
            lambda lines: [*lines, lines[2]],
            "line 4: the line does not follow the one before it: it is number 2 where 3 is expected, so a "
            "line was removed, added or moved.",
        ),
    ],
    ids=["edited", "another-field", "removed", "moved", "repeated"],
)
def test_a_changed_log_names_the_first_line_that_does_not_fit(
    log: Path, change: Callable[[list[str]], list[str]], message: str
) -> None:
    lines_of(log, change)
    with pytest.raises(BrokenChain) as caught:
        read_chain(log)
    assert str(caught.value) == f"{log}, {message}"


def test_every_single_character_counts(log: Path) -> None:
    text = log.read_text()
    for at in range(0, len(text), 7):
        other = "a" if text[at] != "a" else "b"
        log.write_text(text[:at] + other + text[at + 1 :])
        with pytest.raises((BrokenChain, UsageError)):
            read_chain(log)


def test_lines_cut_off_at_the_end_are_missed_by_the_journal_only(log: Path) -> None:
    lines_of(log, lambda lines: lines[:2])
    chain = read_chain(log)
    with pytest.raises(BrokenChain, match="turn 0 of conversation two is missing: lines were removed"):
        require_in_journal(chain, [FIRST_CHAT, SECOND_CHAT])


def test_an_edited_journal_differs_from_the_log(log: Path) -> None:
    edited = held("one", [PASSED, PASSED])
    with pytest.raises(
        BrokenChain, match="line 2: it differs from turn 1 of conversation one in the journal"
    ):
        require_in_journal(read_chain(log), [edited, SECOND_CHAT])


def test_a_whole_log_fits_its_journal(log: Path) -> None:
    require_in_journal(read_chain(log), [FIRST_CHAT, SECOND_CHAT])


def test_another_file_is_no_audit_log(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_text('{"a": 1}\n')
    with pytest.raises(UsageError, match="line 1: this is no line of an audit log"):
        read_chain(path)


def test_a_replayed_reply_has_no_time_so_that_two_replays_write_the_same(tmp_path: Path) -> None:
    replayed = call("user.message").model_copy(update={"replayed": True})
    one = written(tmp_path / "one.jsonl", held("one", [HANDED], [replayed]))
    two = written(tmp_path / "two.jsonl", held("one", [HANDED], [replayed]))
    assert one.read_bytes() == two.read_bytes()
    assert read_chain(one).entries[0].at is None


def test_keys_are_not_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-" + "a1B2" * 12
    monkeypatch.setenv("OPENAI_API_KEY", key)
    told = HANDED.model_copy(update={"reason": f"it said {key}"})
    log = written(tmp_path / "audit.jsonl", held("one", [told]))
    assert key not in log.read_text()
    require_in_journal(read_chain(log), [held("one", [told])])
