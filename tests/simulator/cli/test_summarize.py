"""`hallulab init-scenario --summarize`: a reference chat becomes the summary of a persona."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from hallulab.testing.scripted import PROBES, Script, ScriptedTransport, completion, last_user, pool_through
from tests.simulator.command_line import CommandLine

CHAT = "User: My fan broke.\nAssistant: When?\nUser: In May.\n"
SUMMARY = "The user had a broken fan. He told when."


class TwoModels(ScriptedTransport):
    """Serves `scripted` and `large`."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(200, json={"data": [{"id": "scripted"}, {"id": "large"}]}, request=request)
        return await super().handle_async_request(request)


def scripted(monkeypatch: pytest.MonkeyPatch, script: Script) -> ScriptedTransport:
    """Let the models of commands answer by a script."""
    transport = TwoModels(script)
    monkeypatch.setattr("hallulab.simulator.engine.models.ModelPool", pool_through(transport))
    return transport


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    path = tmp_path / "chat.txt"
    path.write_text(CHAT)
    return path


ENDPOINT = ("--base-url", "http://127.0.0.1:9/v1", "--model", "scripted")


def test_the_summary_is_all_that_stands_on_standard_output(
    hallulab: CommandLine, chat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = scripted(monkeypatch, lambda _: SUMMARY)
    ended = hallulab("init-scenario", "--summarize", chat, *ENDPOINT, "--scenario", "pregnancy-medication")
    assert (ended.code, ended.out, ended.err) == (0, f"{SUMMARY}\n", "")
    (request,) = transport.requests[PROBES:]
    assert last_user(request) == f"{CHAT}\nSummary of the user's side:"
    assert "an assistant for the use of medicines in pregnancy" in request["messages"][0]["content"]


def test_it_is_one_line_without_control_characters(
    hallulab: CommandLine, chat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(monkeypatch, lambda _: "The user\n\nhad a \x1b[31mfan.")
    assert hallulab("init-scenario", "--summarize", chat, *ENDPOINT).out == "The user had a �[31mfan.\n"


def test_a_summary_that_was_cut_off_is_said_to_be(
    hallulab: CommandLine, chat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = completion("The user had a")
    answer["choices"][0]["finish_reason"] = "length"
    scripted(monkeypatch, lambda _: httpx2.Response(200, json=answer))
    ended = hallulab("init-scenario", "--summarize", chat, *ENDPOINT)
    assert (ended.code, ended.out) == (0, "The user had a\n")
    assert ended.err == "the summary was cut off at 320 tokens: complete its end by hand\n"


def test_a_recorded_summary_is_replayed_without_a_model(
    hallulab: CommandLine, chat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = scripted(monkeypatch, lambda _: SUMMARY)
    recording = tmp_path / "recording.jsonl"
    hallulab("init-scenario", "--summarize", chat, *ENDPOINT, "--record", recording)
    ended = hallulab("init-scenario", "--summarize", chat, "--model", "scripted", "--replay", recording)
    assert (ended.code, ended.out, len(transport.requests)) == (0, f"{SUMMARY}\n", PROBES + 1)


def test_the_model_of_the_simulated_user_writes_it(
    hallulab: CommandLine, chat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = scripted(monkeypatch, lambda _: SUMMARY)
    config = tmp_path / "experiment.yaml"
    config.write_text("models: {large: {model: large}}\nroles: {user: large}\n")
    assert hallulab("init-scenario", "--summarize", chat, *ENDPOINT, "-c", config).code == 0
    assert [request["model"] for request in transport.requests[2 * PROBES :]] == ["large"]


def test_what_is_no_chat_is_said_before_a_server_is_started(hallulab: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "chat.txt"
    ended = hallulab("init-scenario", "--summarize", path, "--model", "qwen-9000")
    assert (ended.code, ended.err) == (
        2,
        f"error: {path}: cannot be read (No such file or directory). Correct the path.\n",
    )
    path.write_text("Alice: Hello\nBob: Hi\n")
    ended = hallulab("init-scenario", "--summarize", path, "--model", "qwen-9000")
    assert (ended.code, ended.err) == (
        2,
        f"error: reference chat {path}, line 1: the chat does not begin with `User:` or `Assistant:`.\n",
    )


def test_an_unknown_scenario_is_said_before_a_server_is_started(hallulab: CommandLine, chat: Path) -> None:
    ended = hallulab("init-scenario", "--summarize", chat, "--model", "qwen-9000", "--scenario", "consumer")
    assert ended.code == 2
    assert ended.err.startswith("error: consumer: no such scenario pack.")


def test_a_model_that_says_nothing_is_an_operational_error(
    hallulab: CommandLine, chat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(monkeypatch, lambda _: " ")
    ended = hallulab("init-scenario", "--summarize", chat, *ENDPOINT)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "error: summary: the model wrote an empty summary.\n"
