"""`hallulab init-scenario`: personas from documents, and the summary of a chat."""

from __future__ import annotations

import re
from pathlib import Path
from shlex import quote
from unittest.mock import patch

import httpx2
import pytest

from hallulab.agents.users.questions import UNSAID
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.testing.scripted import PROBES, Script, ScriptedTransport, completion, last_user, pool_through
from hallulab.testing.tiny_pack import HashedWords
from tests.kit.serving_models import ServingModels
from tests.places import ROOT
from tests.simulator.cli.pack_writer import ABOUT, ENDPOINT, WritePack, Writer
from tests.simulator.command_line import CommandLine

pytestmark = pytest.mark.usefixtures("words")


def test_twelve_documents_become_twelve_personas_whose_goals_are_checked(
    hallulab: CommandLine, documents: Path, writer: Writer, tmp_path: Path
) -> None:
    pack = tmp_path / "My Pack!"
    ended = hallulab("init-scenario", pack, "--documents", documents, "--personas", "12", *ENDPOINT)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        f"{pack}: 12 of 12 personas, 12 topics",
        "goals by what the documents say: 17 answered, 5 in part, 2 not answered; "
        "every one passed its checks",
        "read and correct scenario.yaml and personas.yaml, then "
        f"`hallulab run --scenario {quote(str(pack))}`",
    ]
    scenario = load_scenario(pack)
    assert (scenario.name, scenario.title, len(scenario.documents)) == ("my-pack", "Town �[31mlibrary", 12)
    assert [one.name for one in scenario.specialists] == ["desk", "drafter"]
    assert len({persona.name for persona in scenario.personas}) == 12
    goals = [goal for persona in scenario.personas for goal in persona.goals]
    assert len(goals) == len(set(goals)) == 24
    assert sum("abroad" in goal for goal in goals) == 7
    assert len(writer.asked) == 17 + 2 * 5 + 2 * 2
    text = (pack / "personas.yaml").read_text()
    assert (
        len(re.findall(r"# goal [12]: (?:answered|in part|not answered), from part-\d/thing-\d+#\d", text))
        == 24
    )


def test_a_run_on_them_ends_with_a_report(
    hallulab: CommandLine, documents: Path, writer: Writer, tmp_path: Path
) -> None:
    pack, run = tmp_path / "pack", tmp_path / "run"
    assert hallulab("init-scenario", pack, "--documents", documents, "--personas", "2", *ENDPOINT).code == 0
    flags = ("--scenario", pack, "--chatbots", "vanilla", "--detectors", "lexical", "--max-turns", "2")
    ended = hallulab("run", *flags, *ENDPOINT, "--out", run)
    assert (ended.code, ended.err) == (0, "")
    assert "vanilla" in ended.out
    assert (run / "report.html").is_file()


def test_the_same_seed_gives_the_same_files_and_a_replay_needs_no_model(
    hallulab: CommandLine, documents: Path, writer: Writer, tmp_path: Path
) -> None:
    recording = tmp_path / "r.jsonl"
    command = ("init-scenario", "--documents", documents, "--personas", "5", "--seed", "3", *ENDPOINT)
    assert hallulab(*command, tmp_path / "a", "--record", recording).code == 0
    with patch.object(Writer, "__call__", side_effect=AssertionError):
        assert hallulab(*command, tmp_path / "b", "--replay", recording).code == 0
    for name in ("personas.yaml", "documents/part-0/thing-0.md"):
        assert (tmp_path / "a" / name).read_text() == (tmp_path / "b" / name).read_text()


def test_goals_that_fail_a_check_are_written_again_from_other_passages(
    write_pack: WritePack, documents: Path, writer: Writer, tmp_path: Path
) -> None:
    writer.goals = [
        {"said": "Learn nothing", "not_said": "Who pays abroad?"},
        {"said": "Learn what unheard words cost", "not_said": "Learn who pays abroad"},
    ]
    ended = write_pack("--personas", "1", "--goals", "100/0/0")
    assert ended.code == 0
    told = ended.out.splitlines()
    assert told[:2] == [
        f"{tmp_path / 'pack'}: 1 of 1 personas, 1 topics",
        "goals by what the documents say: 2 answered, 0 in part, 0 not answered; every one passed its checks",
    ]
    assert told[2] == "written again: 2"
    assert re.match(
        r"  'Learn what unheard words cost': a search for it does not find part-\d/thing-\d+$", told[3]
    )
    assert told[4] == "  goals: the model wrote no goal: 'nothing'"
    assert told[5] == "documents that nobody asks about: 10"


def test_where_no_goal_passes_nothing_is_written(
    hallulab: CommandLine, documents: Path, writer: Writer, tmp_path: Path
) -> None:
    writer.told = {"said": 0.2, "not said": 0.1}
    command = ("--documents", documents, "--personas", "1", *ENDPOINT)
    ended = hallulab("init-scenario", tmp_path / "new" / "pack", *command)
    assert (ended.code, ended.out) == (1, "")
    assert "no goal passed its checks. Use a larger model" in ended.err
    assert not (tmp_path / "new").exists()


def test_where_the_model_does_not_describe_the_documents_nothing_is_written(
    hallulab: CommandLine, documents: Path, writer: Writer, tmp_path: Path
) -> None:
    writer.about = {**ABOUT, "domain": " "}
    command = ("--documents", documents, "--personas", "1", *ENDPOINT)
    ended = hallulab("init-scenario", tmp_path / "new" / "pack", *command)
    assert (ended.code, ended.out) == (1, "")
    assert "did not describe the documents: about: the model left something empty. Use a larger" in ended.err
    assert not (tmp_path / "new").exists()


def test_where_the_documents_tell_what_the_model_thinks_they_do_not_it_is_a_thing_that_few_tell(
    hallulab: CommandLine, documents: Path, writer: Writer, tmp_path: Path
) -> None:
    writer.told["not said"] = 0.9
    command = ("--documents", documents, "--personas", "1", "--goals", "0/0/100", *ENDPOINT)
    writer.few = 0.1
    ended = hallulab("init-scenario", tmp_path / "pack", *command)
    assert ended.out.splitlines()[1].startswith(
        "goals by what the documents say: 0 answered, 0 in part, 2 not"
    )
    [persona] = load_scenario(tmp_path / "pack").personas
    assert set(persona.goals) <= set(UNSAID)
    text = (tmp_path / "pack" / "personas.yaml").read_text()
    ours = r"answered, from part-\d/thing-\d+#\d; taken from hallulab's own list, not written by the model\n"
    assert len(re.findall(rf"# goal [12]: not {ours}", text)) == 2
    # One look for each goal: what the model thought of is not tried with a second passage.
    assert "written again: 2\n" in ended.out


def test_of_a_goal_that_is_answered_in_part_the_half_from_our_list_is_told(
    write_pack: WritePack, writer: Writer, tmp_path: Path
) -> None:
    writer.told["not said"], writer.few = 0.9, 0.1
    assert write_pack("--personas", "1", "--goals", "50/50/0").code == 0
    first, second = re.findall(r"# goal [12]: (.*)", (tmp_path / "pack" / "personas.yaml").read_text())
    assert re.fullmatch(r"answered, from part-\d/thing-\d+#\d", first)
    ours = (
        r"in part, from part-\d/thing-\d+#\d; its second half is taken from hallulab's own list, not .* model"
    )
    assert re.fullmatch(ours, second)


@pytest.fixture
def one_fee(documents: Path) -> Path:
    """One document, whose two passages are about the same."""
    left, *others = documents.rglob("*.md")
    for path in others:
        path.unlink()
    left.write_text(left.read_text().replace("fine", "fee"))
    return documents


def test_the_goals_of_a_persona_differ_where_both_are_from_our_list(
    hallulab: CommandLine, one_fee: Path, writer: Writer, tmp_path: Path
) -> None:
    writer.told["not said"], writer.few = 0.9, 0.1
    command = ("--documents", one_fee, "--personas", "1", "--goals", "0/0/100", *ENDPOINT)
    assert hallulab("init-scenario", tmp_path / "pack", *command).code == 0
    first, second = load_scenario(tmp_path / "pack").personas[0].goals
    assert first != second


def test_a_goal_that_the_persona_has_already_is_refused(
    hallulab: CommandLine, one_fee: Path, writer: Writer, tmp_path: Path
) -> None:
    command = ("--documents", one_fee, "--personas", "1", "--goals", "100/0/0", *ENDPOINT)
    ended = hallulab("init-scenario", tmp_path / "pack", *command)
    assert (ended.code, ended.out) == (1, "")
    assert "no goal passed its checks." in ended.err


def test_a_goal_that_the_documents_tell_after_all_is_one_that_they_answer_and_this_is_said(
    write_pack: WritePack, documents: Path, writer: Writer
) -> None:
    writer.told["not said"] = 0.9
    ended = write_pack("--personas", "1", "--goals", "50/50/0")
    told = ended.out.splitlines()
    assert told[0].endswith("1 of 1 personas, 1 topics")
    assert told[1].startswith("goals by what the documents say: 2 answered, 0 in part, 0 not answered")
    assert "answered although they were to be otherwise: 1" in told
    assert re.search(r"  \w+ \w+: 'Learn what the fee for thing\d+ is' was to be in part\n", ended.out)


def test_a_persona_that_wants_what_another_wants_is_written_again_and_then_left_out(
    write_pack: WritePack, documents: Path, tmp_path: Path
) -> None:
    for path in list(documents.rglob("*.md"))[1:]:
        path.unlink()
    ended = write_pack("--personas", "2", "--goals", "100/0/0")
    assert ended.code == 0
    assert ended.out.splitlines()[0] == f"{tmp_path / 'pack'}: 1 of 2 personas, 1 topics"
    assert re.search(r"\nnot there: 1\n  \w+ \w+: wants what another persona wants\.\n", ended.out)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--from-chats", "{docs}"), "--from-chats goes with --documents only"),
        (
            ("--documents", "{docs}", "--from-chats", "x.jsonl", "--goals", "70/20/10"),
            "--goals 70/20/10: with --from-chats, the goals are those of the chats. Leave it out.",
        ),
        (("--personas", "3"), "--personas goes with --documents only"),
        (("--base-url", "http://x"), "--base-url goes with --documents only"),
        (("--", "--dtype"), "`-- --dtype`: no server is started here, so it takes no flags."),
        (("--documents", "{docs}", "--personas", "0"), "--personas 0: give at least 1."),
        (
            ("--documents", "{docs}", "--goals", "70/20"),
            "--goals 70/20: give three whole numbers that make 100",
        ),
        (("--documents", "{docs}", "--goals", "70/20/20"), "--goals 70/20/20: give three whole numbers"),
        (("--documents", "{docs}", "--goals", "1/2/" + "9" * 5_000), "give three whole numbers"),
        (("--documents", "{docs}/nowhere"), "nowhere: there is no such folder."),
    ],
)
def test_wrong_flags_are_one_sentence_before_a_model_is_asked(
    hallulab: CommandLine, documents: Path, tmp_path: Path, flags: tuple[str, ...], told: str
) -> None:
    given = [flag.replace("{docs}", str(documents)) for flag in flags]
    ended = hallulab("init-scenario", tmp_path / "pack", *given)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert told in ended.err
    assert not (tmp_path / "pack").exists()


def test_a_folder_with_files_and_one_among_the_documents_are_refused(
    hallulab: CommandLine, documents: Path, tmp_path: Path
) -> None:
    command = ("--documents", documents, *ENDPOINT)
    assert "this is no empty folder" in hallulab("init-scenario", documents / "part-0", *command).err
    assert "is in the folder of the documents" in hallulab("init-scenario", documents / "new", *command).err


def test_the_recorded_15b_model_writes_twelve_personas_from_twelve_documents_of_a_pack(
    hallulab: CommandLine, tmp_path: Path
) -> None:
    """Searches are recorded, too, so no weights are needed; which personas are the same is told by words."""
    documents = tmp_path / "docs"
    documents.mkdir()
    source = ROOT / "scenarios" / "packs" / "consumer-grievance-india" / "documents"
    for path in sorted(source.iterdir())[::6][:12]:
        (documents / path.name).write_bytes(path.read_bytes())
    named = HashedWords("all-minilm-l6-v2")
    recording = ROOT / "tests" / "recordings" / "personas.jsonl.gz"
    command = ("--documents", documents, "--personas", "12", "--model", "qwen2.5-coder-1.5b", "--quiet")
    with patch("hallulab.simulator.authoring.packs.SentenceEmbedder", lambda *_: named):
        ended = hallulab("init-scenario", tmp_path / "pack", *command, "--replay", recording)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[:3] == [
        f"{tmp_path / 'pack'}: 12 of 12 personas, 12 topics",
        "goals by what the documents say: 17 answered, 5 in part, 2 not answered; "
        "every one passed its checks",
        "written again: 7",
    ]
    personas = load_scenario(tmp_path / "pack").personas
    assert personas[5].goals == (
        "Learn how to check the purity of gold jewellery",
        "Learn how to verify a HUID",
    )


CHAT = "User: My fan broke.\nAssistant: When?\nUser: In May.\n"
SUMMARY = "The user had a broken fan. He told when."


def scripted(monkeypatch: pytest.MonkeyPatch, script: Script) -> ScriptedTransport:
    """Let the models of commands answer by a script."""
    transport = ServingModels(script, "scripted", "large")
    monkeypatch.setattr("hallulab.simulator.engine.models.ModelPool", pool_through(transport))
    return transport


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    path = tmp_path / "chat.txt"
    path.write_text(CHAT)
    return path


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
