"""Run folders that are none, or broken, or another's: one sentence, the right exit code, nothing lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import conversation, journal
from tests.kit.run_folders import write_run
from tests.simulator.command_line import CodeAndError


def test_a_folder_that_is_no_run(code_and_error: CodeAndError, tmp_path: Path) -> None:
    code, said = code_and_error("report", tmp_path)
    assert code == 2
    assert said.startswith(f"error: {tmp_path} is no run folder: it has no conversations.jsonl.")


def test_a_path_that_is_no_run_is_told_with_the_next_step(
    code_and_error: CodeAndError, tmp_path: Path
) -> None:
    run = write_run(tmp_path / "prompts", [conversation("a", ["x"])]).path
    chats = tmp_path / "chats.jsonl"
    chats.touch()
    missing = tmp_path / "promts"
    for path, said in (
        (
            missing,
            f"it is not there (did you mean `prompts`?). Make one with `hallulab run --out {missing}`.",
        ),
        (chats, f"it is a file. Judge chats by `hallulab judge {chats}`."),
        (run / "conversations.jsonl", f"it is a file. Give the folder {run}."),
    ):
        assert code_and_error("report", path) == (2, f"error: {path} is no run folder: {said}\n")


def test_an_error_in_a_journal_is_told_as_text(code_and_error: CodeAndError, tmp_path: Path) -> None:
    failed = {"stop_reason": "error", "error": "chatbot vanilla: out of\n\x1b[31m order"}
    journal(tmp_path, failed)
    assert code_and_error("report", tmp_path) == (
        1,
        "error: no conversation got as far as a reply: 1 of 1 failed. Reason: out of �[31m order.\n",
    )


def test_a_journal_with_a_broken_line_is_left_as_it_is(code_and_error: CodeAndError, tmp_path: Path) -> None:
    journal = tmp_path / "conversations.jsonl"
    journal.write_text("{broken\n")
    code, said = code_and_error("report", tmp_path)
    assert code == 2
    assert said.startswith(f"error: {journal}, line 1: not valid JSON (")
    assert journal.read_text() == "{broken\n"


def test_a_run_folder_that_cannot_be_made(code_and_error: CodeAndError, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    out = tmp_path / "file" / "run"
    assert code_and_error("run", "--model", "qwen-9000", "--out", out) == (
        2,
        f"error: --out {out}: {tmp_path / 'file'} is no folder. Give another path.\n",
    )


def test_a_folder_of_another_experiment_is_refused_before_a_server_is_started(
    code_and_error: CodeAndError, tmp_path: Path
) -> None:
    replay = tmp_path / "other.jsonl"
    replay.write_text('{"kind":"other","key":"another","answer":1}\n')
    code_and_error(
        "run", "--no-judge", "--model", "m", "--limit", "1", "--replay", replay, "--out", tmp_path / "run"
    )
    code, said = code_and_error("run", "--model", "qwen-9000", "--limit", "1", "--out", tmp_path / "run")
    assert (code, said) == (
        2,
        f"error: {tmp_path / 'run'} holds another experiment (it differs in chatbot model, user model). "
        "Use --fresh to start it over, or another --out.\n",
    )


@pytest.mark.parametrize("saved", ["{}", "[]", "{", '{"identity": {}, "detectors": {}, "experiment": 1}'])
def test_an_experiment_file_that_is_none_is_refused(
    code_and_error: CodeAndError, tmp_path: Path, saved: str
) -> None:
    (tmp_path / "experiment.json").write_text(saved)
    (tmp_path / "conversations.jsonl").write_text("")
    code, said = code_and_error("detect", tmp_path, "--detectors", "lexical")
    assert code == 2
    assert said.startswith(f"error: {tmp_path / 'experiment.json'}: ")
    assert said.endswith("Restore it or use --fresh.\n")


@pytest.mark.parametrize(
    ("experiment", "complaint"),
    [
        ({"scenario": "s"}, "field `experiment`: no `chatbots`."),
        (
            {"scenario": "s", "chatbots": None},
            "field `experiment.chatbots`: must be a list, not nothing (null).",
        ),
        ({"scenario": "s", "chatbots": [{}]}, "field `experiment.chatbots.0.name`: field required."),
        ({"chatbots": ["vanilla"]}, "field `experiment`: no `scenario`."),
        (
            {"scenario": 5, "chatbots": ["vanilla"]},
            "field `experiment.scenario`: input should be a valid string.",
        ),
    ],
)
@pytest.mark.parametrize("command", ["report", "detect"])
def test_a_damaged_experiment_is_refused(
    code_and_error: CodeAndError, tmp_path: Path, command: str, experiment: dict[str, object], complaint: str
) -> None:
    saved = tmp_path / "experiment.json"
    saved.write_text(json.dumps({"identity": {}, "detectors": {}, "experiment": experiment}))
    write_run(tmp_path, [conversation("c", ["A."])])
    assert code_and_error(command, tmp_path) == (
        2,
        f"error: {saved}: {complaint} Restore it or use --fresh.\n",
    )


@pytest.mark.parametrize(
    ("lines", "config", "reason"),
    [
        ([], None, " is empty: there is nothing to judge yet."),
        (
            [{"scenario": "my-pack"}],
            None,
            ": its conversations are about scenario 'my-pack', which is no built-in pack. "
            "Restore the folder's experiment.json, or give a file with `scenario: PATH` by -c.",
        ),
        (
            [{"scenario": "my-pack"}],
            "scenario: pregnancy-medication\n",
            ": its conversations are about scenario 'my-pack', not 'pregnancy-medication' as -c says.",
        ),
        (
            [{"scenario": "b"}, {"scenario": "a"}],
            None,
            ": its conversations are about several scenarios (a, b). "
            "Put those of each into a folder of its own.",
        ),
        (
            [{"scenario": "pregnancy-medication", "chatbot": "my bot"}],
            None,
            ": a chatbot is called 'my bot'. Rename it: letters, digits, `.`, `_` and `-` make a name.",
        ),
    ],
)
def test_a_journal_alone_that_does_not_say_what_it_is_about(
    code_and_error: CodeAndError, tmp_path: Path, lines: list[dict[str, str]], config: str | None, reason: str
) -> None:
    path = journal(tmp_path, *lines)
    before = path.read_bytes()
    file = tmp_path / "experiment.yaml"
    file.write_text(config or "timeout: 5\n")
    assert code_and_error("detect", tmp_path, "--detectors", "lexical", "-c", file) == (
        2,
        f"error: {path}{reason}\n",
    )
    assert (path.read_bytes(), (tmp_path / "experiment.json").exists()) == (before, False)
