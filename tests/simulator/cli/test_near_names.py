"""An unknown name is refused with the one that was probably meant, wherever a name is looked up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import conversation, scored
from tests.simulator.command_line import CommandLine
from tests.simulator.viewer.serving import append

STUB = ("--base-url", "http://127.0.0.1:9/v1", "--model", "x", "--quiet")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("chatbot: [vanilla]", "line 1: chatbot: unknown key (did you mean `chatbots`?). Correct"),
        (
            "chatbots:\n- {name: a, kind: vanilla, option: {}}",
            "line 2: chatbots.0.option: unknown key (did you mean `options`?). Correct",
        ),
        ("until_decided: {margn: 1}", "until_decided.margn: unknown key (did you mean `margin`?). Correct"),
        ("chatbots:\n- {name: a, kind: vanila}", "no chatbot 'vanila' (did you mean `vanilla`?); there are"),
        ("detectors: [lexicl]", "there is no detector 'lexicl' (did you mean `lexical`?); there are"),
        (
            "chatbots:\n- {name: a, kind: vanilla, options: {max_tokns: 3}}",
            "there is no option `max_tokns` (did you mean `max_tokens`?); there are",
        ),
        ("manners: [ters]", "there is no manner 'ters' (did you mean `terse`?); there are"),
        ("roles: {users: x}", "unknown role 'users' (did you mean `user`?); there are"),
        ("models: {judge: {model: m}}\nroles: {user: juge}", "'juge' (did you mean `judge`?), which is not"),
        ("scenario: nagar-sewa", "no such scenario pack (did you mean `nagar-seva`?). Give"),
        (
            "personas: [agartala-which-comission]",
            "'agartala-which-comission' (did you mean `agartala-which-commission`?)",
        ),
    ],
)
def test_in_an_experiment_file(hallulab: CommandLine, tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text(f"{text}\n")
    ended = hallulab("run", "-c", file, *STUB, "--out", tmp_path / "run")
    assert (ended.code, ended.err.count("\n"), said in ended.err) == (2, 1, True), ended.err


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder with a reply that `lexical` judged."""
    found = tmp_path / "run"
    found.mkdir()
    append(found / "conversations.jsonl", [conversation("a", ["x says so.", "y"])])
    append(found / "verdicts.jsonl", [scored("a", 0, [(0, 1)]), scored("a", 1)])
    return found


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("import chats.csv --format opnai", "--format opnai: unknown (did you mean `openai`?). Give"),
        ("import chats.csv --map repl=answer", "--map repl: unknown (did you mean `reply`?). Map"),
        (
            "import chats.csv --format csv --map user=questions,reply=answer",
            "--map user=questions: there is no such name (did you mean `question`?) among question, answer.",
        ),
        ("export run --format sharegtp --out x", "--format sharegtp: unknown (did you mean `sharegpt`?)."),
        ("export run --format openai --without pasages --out x", "unknown (did you mean `passages`?)."),
        (
            "export run --format openai --detector dd --out x",
            "no verdicts of a detector 'dd' (did you mean `d`",
        ),
        ("bench ragtruthh", "no such labelled data (did you mean `ragtruth`?). Give"),
        ("make-data planted nagar-seva --kinds numbr --out x", "such kind (did you mean `number`?). Give"),
        ("make-data planted nagarseva --out x", "(did you mean `nagar-seva`?). The packs"),
        ("serve qwen2.5-coder-1.5", "no model 'qwen2.5-coder-1.5' (did you mean `qwen2.5-coder-1.5b`?)."),
    ],
)
def test_on_the_command_line(
    hallulab: CommandLine, run: Path, monkeypatch: pytest.MonkeyPatch, command: str, said: str
) -> None:
    (run.parent / "chats.csv").write_text("question,answer\nHow long?,Three minutes.\n")
    monkeypatch.chdir(run.parent)
    ended = hallulab(*command.split())
    assert (ended.code, said in ended.err) == (2, True), ended.err


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("rum",), "No such command 'rum'. Did you mean 'run'?"),
        (("run", "--chatbot", "vanilla"), "No such option: --chatbot (Possible options: --chatbots"),
        (("list", "detector"), "Invalid value for 'kind': 'detector' is not one of 'scenarios', "),
        (("make-data", "plant"), "No such command 'plant'. Did you mean 'planted'?"),
    ],
)
def test_commands_and_flags(hallulab: CommandLine, command: tuple[str, ...], said: str) -> None:
    ended = hallulab(*command)
    assert (ended.code, said in " ".join(ended.err.split())) == (2, True), ended.err
