"""Scripted users: what they say, on what it depends, and runs without dice."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from hallulab.agents.users.user import UserFailed
from hallulab.detectors.base.protocol import Detector
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack import Persona, ScriptedMessage
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.transcript import Judgement, Message, Turn
from hallulab.scenarios.turn_views import TurnView
from hallulab.simulator.engine.participants import ScriptedUser, check_script
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.endpoint import MODEL, completion, serve_stub
from hallulab.testing.scripted import ScriptedTransport, pool_through
from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.places import ROOT
from tests.simulator.command_line import CommandLine

RECORDING = ROOT / "tests" / "recordings" / "demo.jsonl.gz"
BRANCH = ScriptedMessage(by="judge", flagged="Are you sure?", unflagged="And the fee?")
ASKED = [Message(role="user", text="When?"), Message(role="assistant", text="In May.")]
TURN = Turn(index=0, user="When?", query=None, passages=(), reply="In May.")


class Judge(Detector):
    """Gives one judgement, and keeps what it saw."""

    def __init__(self, judgement: Judgement) -> None:
        self.name, self.version = "judge", "1"
        self.judgement = judgement
        self.seen: list[TurnView] = []

    async def detect(self, view: TurnView) -> Judgement:
        self.seen.append(view)
        return self.judgement


def scored(flagged: bool) -> Judgement:
    return Judgement(outcome="scored", score=float(flagged), flagged=flagged, spans=())


def user(judge: Judge | None = None) -> ScriptedUser:
    return ScriptedUser((ScriptedMessage(text="When?"), BRANCH), {"judge": judge} if judge else {}, None)


async def test_messages_come_in_order_and_then_the_script_ends() -> None:
    scripted = ScriptedUser((ScriptedMessage(text="One?"), ScriptedMessage(text="Two?")), {}, None)
    assert (await scripted.next([])).text == "One?"
    assert (await scripted.next(ASKED)).text == "Two?"
    last = await scripted.next([*ASKED, *ASKED])
    assert (last.text, last.stop) == (None, "script_ended")


@pytest.mark.parametrize(("flagged", "said"), [(True, "Are you sure?"), (False, "And the fee?")])
async def test_a_message_depends_on_the_verdict_on_the_reply_before(flagged: bool, said: str) -> None:
    judge = Judge(scored(flagged))
    scripted = user(judge)
    scripted.heard(TURN)
    assert (await scripted.next(ASKED)).text == said
    [view] = judge.seen
    assert (view.history, view.question, view.reply) == ((), "When?", "In May.")


@pytest.mark.parametrize(
    ("judgement", "why"),
    [
        (Judgement(outcome="failed", error="no answer"), "no answer"),
        (Judgement(outcome="abstained", error="no passage"), "no passage"),
    ],
)
async def test_without_a_verdict_the_script_cannot_go_on(judgement: Judgement, why: str) -> None:
    scripted = user(Judge(judgement))
    scripted.heard(TURN)
    told = f"the script asks what judge says, and it gave no verdict: {why}"
    with pytest.raises(UserFailed, match=rf"^{re.escape(told)}$"):
        await scripted.next(ASKED)


async def test_a_message_may_name_its_goal() -> None:
    given = {"text": "When?", "goal": "Learn the time"}
    persona = Persona.model_validate({"id": "ann", "goals": ["Learn the time"], "messages": [given, "Who?"]})
    scripted = ScriptedUser(persona.messages, {}, None)
    assert (await scripted.next([])).goal == "Learn the time"
    assert (await scripted.next(ASKED)).goal is None
    assert [one.keys() for one in persona.described()["messages"]] == [
        {"text", "by", "flagged", "unflagged", "goal"},
        {"text", "by", "flagged", "unflagged"},
    ]


def test_a_script_needs_no_more_than_an_identifier_and_messages() -> None:
    persona = Persona.model_validate({"id": "ann", "messages": ["When?", BRANCH.model_dump()]})
    assert (persona.name, persona.goals) == ("ann", ("As the script says.",))
    assert persona.messages == (ScriptedMessage(text="When?"), BRANCH)


def test_a_persona_without_a_script_is_described_as_ever() -> None:
    persona = load_scenario("pregnancy-medication").personas[0]
    assert list(persona.described()) == [
        *("id", "name", "sector", "grievance", "goals", "facts", "manner", "summary")
    ]


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ("[{by: a, flagged: b, unflagged: c}]", "messages: the first message comes before any reply"),
        ('["When?", ""]', "messages.1.text: string should have at least 1 character"),
        (
            '["When?", {by: a, flagged: b}]',
            "messages.1: give a text, or all of `by`, `flagged` and `unflagged`",
        ),
        ('["When?", {text: a, by: b, flagged: c, unflagged: d}]', "messages.1: give a text, or all of"),
    ],
)
def test_a_wrong_script_is_one_sentence_with_its_line(tmp_path: Path, messages: str, told: str) -> None:
    pack = make_pack(tmp_path / "pack")
    (pack / "personas.yaml").write_text(f"personas:\n  - {{id: ann, messages: {messages}}}\n")
    with pytest.raises(UsageError) as error:
        load_scenario(pack)
    assert f"personas.yaml, line 2: personas.0.{told}" in str(error.value)


def test_a_detector_that_does_not_judge_is_named() -> None:
    told = "persona ann, message 2: it depends on 'judge', which does not judge here."
    with pytest.raises(UsageError, match=rf"^{re.escape(told)}"):
        check_script(Persona.model_validate({"id": "ann", "messages": ["When?", BRANCH]}), {})


SCRIPT = """personas:
  - id: ann
    messages:
      - How long does a kettle take?
      - {by: lexical, flagged: "Are you sure?", unflagged: "At how many degrees?"}
      - Thank you, and the lid?
"""


def run(
    hallulab: CommandLine,
    folder: Path,
    *more: str | Path,
    command: str = "run",
    model: str = "m",
    url: str = "http://127.0.0.1:9/v1",
) -> None:
    pack = folder / "pack"
    if not pack.exists():
        make_pack(pack)
        (pack / "personas.yaml").write_text(SCRIPT)
    flags = ("--scenario", pack, "--model", model, "--base-url", url, "--chatbots", "vanilla")
    with words_for_vectors():
        ended = hallulab(command, *flags, "--detectors", "lexical", "--max-turns", "2", "--quiet", *more)
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.parametrize(
    ("reply", "second"),
    [
        ("A kettle takes three minutes.", "At how many degrees?"),
        ("Nobody weighed seven violet parrots.", "Are you sure?"),
    ],
)
def test_a_run_follows_the_script_to_its_end_whatever_the_limit_of_turns(
    hallulab: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: str, second: str
) -> None:
    transport = ScriptedTransport(lambda _: reply, "m")
    monkeypatch.setattr("hallulab.simulator.engine.models.ModelPool", pool_through(transport))
    run(hallulab, tmp_path, "--out", tmp_path / "run")
    [held] = RunFolder(tmp_path / "run").read_conversations()
    assert [turn.user for turn in held.turns] == [
        "How long does a kettle take?",
        second,
        "Thank you, and the lid?",
    ]
    assert held.stop_reason == "script_ended"
    assert not any(call.purpose.startswith("user") for turn in held.turns for call in turn.calls)


def without_seconds(path: Path) -> str:
    return re.sub(r'"latency_s":[0-9.e-]+', "", path.read_text())


def test_two_runs_are_equal_but_for_seconds_and_their_replays_and_exports_to_the_byte(
    hallulab: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = ScriptedTransport(lambda body: str(len(json.dumps(body["messages"]))), "m")
    monkeypatch.setattr("hallulab.simulator.engine.models.ModelPool", pool_through(transport))
    for name in ("one", "two"):
        run(hallulab, tmp_path, "--out", tmp_path / name, "--record", tmp_path / f"{name}.jsonl")
    for name in ("three", "four"):
        run(hallulab, tmp_path, "--out", tmp_path / name, "--replay", tmp_path / "one.jsonl")
    for journal in ("conversations.jsonl", "verdicts.jsonl"):
        texts = [without_seconds(tmp_path / name / journal) for name in ("one", "two")]
        assert texts[0] == texts[1] != ""
        assert (tmp_path / "three" / journal).read_bytes() == (tmp_path / "four" / journal).read_bytes()
    for form in ("openai", "sharegpt", "csv"):
        for name in ("one", "two"):
            written = tmp_path / f"{name}.{form}"
            assert hallulab("export", tmp_path / name, "--format", form, "--out", written).code == 0
        assert (tmp_path / f"one.{form}").read_bytes() == (tmp_path / f"two.{form}").read_bytes() != b""


def test_two_runs_that_are_not_timed_are_equal_to_the_byte(hallulab: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "plain.yaml").write_text("timed: false\nconcurrency: 1\n")
    with serve_stub(completion) as url:
        for name in ("one", "two"):
            more = ("-c", tmp_path / "plain.yaml", "--out", tmp_path / name)
            run(hallulab, tmp_path, *more, model=MODEL, url=url)
    for journal in ("conversations.jsonl", "verdicts.jsonl", "report.json", "report.csv"):
        assert (tmp_path / "one" / journal).read_bytes() == (tmp_path / "two" / journal).read_bytes() != b""


def test_the_recorded_demo_answers_a_scripted_user(hallulab: CommandLine, tmp_path: Path) -> None:
    """The script says what the simulated user said: the recorded replies of the 1.5B model answer it."""
    config = ("-c", ROOT / "examples" / "demo.yaml", "--model", "qwen2.5-coder-1.5b")
    demo = ("run", *config, "--replay", RECORDING)
    few = ("--chatbots", "vanilla", "--detectors", "halludetect", "--limit", "1", "--quiet")
    assert hallulab(*demo, *few, "--out", tmp_path / "simulated").code == 0
    [simulated] = RunFolder(tmp_path / "simulated").read_conversations()
    pack = tmp_path / "pack"
    shutil.copytree(ROOT / "scenarios" / "packs" / "consumer-grievance-india", pack)
    script = [{"id": "scripted", "messages": [turn.user for turn in simulated.turns]}]
    (pack / "personas.yaml").write_text(json.dumps({"personas": script}))
    theirs = ("--scenario", pack, "--personas", "scripted", "--out", tmp_path / "scripted")
    assert hallulab(*demo, *few, *theirs).code == 0
    [scripted] = RunFolder(tmp_path / "scripted").read_conversations()
    assert [turn.reply for turn in scripted.turns] == [turn.reply for turn in simulated.turns]
    assert (simulated.stop_reason, scripted.stop_reason) == ("max_turns", "script_ended")
    flags = [
        [verdict.flagged for verdict in RunFolder(tmp_path / name).read_journals().verdicts]
        for name in ("simulated", "scripted")
    ]
    assert flags[0] == flags[1]
    assert flags[0] != []
