"""The log of guarded chatbots: a line a guarded reply, without its text and without keys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.guard_log import iterate_guard_lines, write_guard_log
from tests.builders import conversation
from tests.simulator.records.guarded import HANDED, PASSED, held


def log_of(folder: Path, *conversations: Conversation) -> Path:
    run = RunFolder(folder)
    run.conversations.write_text("".join(f"{one.model_dump_json()}\n" for one in conversations))
    write_guard_log(run)
    return run.audit


def test_each_guarded_reply_has_a_line_with_the_action_and_its_reason() -> None:
    lines = list(iterate_guard_lines([held("one", [PASSED, HANDED]), held("two", [PASSED])]))
    found = [(one.conversation, one.turn, one.action, one.escalated) for one in lines]
    assert found == [("one", 0, "passed", False), ("one", 1, "human", True), ("two", 0, "passed", False)]
    handed = lines[1]
    assert (handed.chatbot, handed.detector, handed.policy, handed.policy_digest) == (
        "guarded",
        "lexical",
        "mine",
        "abc",
    )
    assert (handed.topics, handed.sensitive, handed.threshold, handed.reason) == (
        {"pregnancy": "'pregnant' in the question"},
        True,
        0.3,
        "H = 0.90 reaches τ = 0.30",
    )
    [attempt] = handed.attempts
    assert (attempt.score, [span.text for span in attempt.spans or ()]) == (0.9, ["Safe"])


def test_the_file_has_a_json_object_a_line_and_no_text_of_a_reply(tmp_path: Path) -> None:
    log = log_of(tmp_path, held("one", [PASSED, HANDED]))
    assert [json.loads(line)["turn"] for line in log.read_text().splitlines()] == [0, 1]
    assert "Not tested." not in log.read_text()


def test_a_run_without_a_guard_has_no_log(tmp_path: Path) -> None:
    assert not log_of(tmp_path, conversation("plain", ["Hello."])).exists()


def test_keys_are_not_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-" + "a1B2" * 12
    monkeypatch.setenv("OPENAI_API_KEY", key)
    log = log_of(tmp_path, held("one", [HANDED.model_copy(update={"reason": f"it said {key}"})]))
    assert key not in log.read_text()
