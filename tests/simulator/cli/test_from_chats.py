"""`hallulab init-scenario --from-chats`: personas of real chats."""

from __future__ import annotations

import json
import re
from pathlib import Path
from unittest.mock import patch

import pytest

from hallulab.agents.users.personas import MANNERS
from hallulab.scenarios.packs.pack_files import load_scenario
from tests.simulator.cli.pack_writer import ENDPOINT, WritePack, Writer
from tests.simulator.command_line import CommandLine

pytestmark = pytest.mark.usefixtures("words")


def chats(folder: Path, *users: str, reply: str = "It is 60 days late.") -> Path:
    path = folder / "chats.jsonl"
    said = [[("user", user), *([("assistant", reply)] if reply else [])] for user in users]
    lines = [{"messages": [{"role": role, "content": text} for role, text in one]} for one in said]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_each_chat_becomes_a_persona_and_what_fails_is_told(
    write_pack: WritePack, documents: Path, tmp_path: Path
) -> None:
    path = chats(tmp_path, "Is there a fee for thing3, 60 days late?", "silent", "I lost thing5!", "endless")
    with path.open("a") as file:
        file.write('{"messages": [{"role": "user", "content": "Hello?"}]}\n')
    pack = tmp_path / "pack"
    ended = write_pack("--from-chats", path)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[:9] == [
        f"{pack}: 2 of 5 personas",
        "goals by what the documents say: 1 answered, 1 in part, 1 not answered",
        "not there: 3",
        "  chats.jsonl, line 2: summary: the model wrote an empty summary.",
        "  chats.jsonl, line 4: model 'scripted' at http://127.0.0.1:9/v1 refused the request with status "
        "400: the prompt is too long",
        "  chats.jsonl, line 5: nobody replied, so there is nothing to summarize.",
        "to complete or correct: 1",
        "  chats.jsonl, line 1: left out, for the user did not tell it: 'She paid 77 cents'",
        "documents that nobody asks about: 10",
    ]
    first, second = load_scenario(pack).personas
    assert (first.id, first.grievance, first.facts, first.manner, first.summary) == (
        "chat-001",
        "She has thing3 on loan.",
        ("It was sixty days late",),
        MANNERS[2],
        "The user Is there a fee for thing3, 60 days late?",
    )
    assert first.goals == ("Learn what the fee for thing3 is", "Learn who pays the fee for thing3 abroad")
    assert (second.id, second.goals, second.facts) == (
        "chat-003",
        ("Learn what the fine for thing5 is, and who pays it abroad",),
        (),
    )
    assert second.manner in MANNERS
    assert first.name != second.name
    text = (pack / "personas.yaml").read_text()
    assert re.findall(r"^  # (.*)$", text, re.MULTILINE) == [
        "from chats.jsonl, line 1",
        "manner: the chat's",
        "goal 1: answered, from part-1/thing-3#0",
        "goal 2: not answered",
        "from chats.jsonl, line 3",
        "manner: drawn, for none of the known ones fits the chat",
        "goal 1: in part, from part-1/thing-5#1",
    ]


def test_what_only_the_assistant_told_is_no_fact_of_the_users_case(
    write_pack: WritePack, tmp_path: Path
) -> None:
    path = chats(tmp_path, "Is there a fee for thing3?", reply="It was 60 days late. You paid 77 cents.")
    pack = tmp_path / "pack"
    ended = write_pack("--from-chats", path)
    assert load_scenario(pack).personas[0].facts == ()
    assert "line 1: left out, for the user did not tell it: 'It was sixty days late'\n" in ended.out


def test_a_replay_gives_the_same_personas_from_a_file_in_another_format(
    hallulab: CommandLine, documents: Path, writer: Writer, tmp_path: Path
) -> None:
    path = tmp_path / "chats.csv"
    path.write_text("session_id,user,reply\nx,Is there a fee for thing3?,Yes.\ny,I lost thing5!,Oh.\n")
    recording = tmp_path / "r.jsonl"
    command = ("init-scenario", "--documents", documents, "--from-chats", path, *ENDPOINT)
    assert hallulab(*command, tmp_path / "a", "--record", recording).code == 0
    with patch.object(Writer, "__call__", side_effect=AssertionError):
        assert hallulab(*command, tmp_path / "b", "--replay", recording).code == 0
    text = (tmp_path / "a" / "personas.yaml").read_text()
    assert re.findall("from chats.*", text.partition("\n")[2]) == [
        "from chats.csv, line 2",
        "from chats.csv, line 3",
    ]
    assert (tmp_path / "b" / "personas.yaml").read_text() == text


def test_of_chats_the_first_so_many_are_read_and_a_cut_summary_is_told(
    hallulab: CommandLine, documents: Path, writer: Writer, tmp_path: Path
) -> None:
    writer.cut = True
    path = chats(tmp_path, "Is there a fee for thing5?", "silent")
    flags = ("--documents", documents, "--from-chats", path, "--personas", "1")
    ended = hallulab("init-scenario", tmp_path / "pack", *flags, *ENDPOINT)
    assert ended.out.splitlines()[:4] == [
        f"{tmp_path / 'pack'}: 1 of 1 personas",
        "goals by what the documents say: 0 answered, 1 in part, 0 not answered",
        "to complete or correct: 1",
        "  chats.jsonl, line 1: the summary was cut off at 320 tokens",
    ]


def test_where_no_chat_becomes_a_persona_nothing_is_written(
    hallulab: CommandLine, documents: Path, writer: Writer, tmp_path: Path
) -> None:
    path = chats(tmp_path, "silent")
    ended = hallulab(
        "init-scenario", tmp_path / "pack", "--documents", documents, "--from-chats", path, *ENDPOINT
    )
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == (
        "error: no persona passed its checks, so nothing was written. The last: chats.jsonl, line 1: "
        "summary: the model wrote an empty summary. Use a larger model.\n"
    )
    assert not (tmp_path / "pack").exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            '{"messages": []}\n{"messages": [{"role": "user"}]}\n',
            "chats.jsonl, line 2: messages.0.content: is miss",
        ),
        ('{"messages": []}\n{"messages"\n', "chats.jsonl, line 2: "),
        (
            '{"messages": []}\n',
            "chats.jsonl: no conversation in it has a reply, so there is nothing to summarize.",
        ),
        (
            "Hello.\n",
            "chats.jsonl, line 1: in no format that is known by its content: it is neither JSON nor a table",
        ),
    ],
)
def test_a_wrong_file_of_chats_is_one_sentence_before_a_model_is_asked(
    hallulab: CommandLine, documents: Path, tmp_path: Path, content: str, told: str
) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text(content)
    ended = hallulab("init-scenario", tmp_path / "pack", "--documents", documents, "--from-chats", path)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert told in ended.err
    assert not (tmp_path / "pack").exists()
