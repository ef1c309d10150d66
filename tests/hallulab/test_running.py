"""`hallulab.run` on the recorded demo: like the command, from anywhere, with plug-ins or without."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import hallulab
from hallulab import Message, OperationalError, ReplayMiss, Reply, Run, UsageError
from hallulab.chatbots.registry import make_chatbot
from tests.chatbots.stage import HOURS, stage
from tests.places import RECORDINGS, ROOT
from tests.test_examples import blocks

DEMO = ROOT / "examples" / "demo.yaml"
RECORDED = {"model": "qwen2.5-coder-1.5b", "replay": RECORDINGS / "demo.jsonl.gz", "quiet": True}
MINE = """
def reply(messages):
    return {"reply": "It is 500.", "passages": ["It is 200."]}

def silent(messages):
    raise ValueError("no idea")
"""
"""A bot of one turn: what the user would say next is in no recording."""


def bot(function: str) -> dict[str, object]:
    return {"name": function, "kind": "callable", "options": {"target": f"my_bot:{function}"}}


@pytest.fixture
def one_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """An experiment of one persona and one turn with a bot of ours, judged without a model."""
    (tmp_path / "my_bot.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HALLULAB_CACHE", str(tmp_path / "cache"))
    return {
        "chatbots": [bot("reply")],
        "detectors": ["lexical"],
        "personas": ["refrigerator-stops-cooling"],
        "min_turns": 1,
        "max_turns": 1,
    }


def test_a_run_is_simulated_judged_reported_and_opened(tmp_path: Path, one_turn: dict[str, object]) -> None:
    run = hallulab.run(one_turn, out=tmp_path / "run", **RECORDED)
    assert isinstance(run, Run)
    assert run.path == tmp_path / "run"
    assert run.turns()[["chatbot", "reply"]].values.tolist() == [["reply", "It is 500."]]
    assert run.verdicts()[["detector", "outcome"]].values.tolist() == [["lexical", "scored"]]
    assert (run.path / "report.json").read_text() == run.report().text()
    assert (run.path / "report.html").exists()


async def test_it_runs_where_an_event_loop_runs_as_in_a_notebook(
    tmp_path: Path, one_turn: dict[str, object]
) -> None:
    assert len(hallulab.run(one_turn, out=tmp_path / "run", **RECORDED).turns()) == 1


def test_an_experiment_is_as_good_as_its_fields(tmp_path: Path, one_turn: dict[str, object]) -> None:
    experiment = hallulab.Experiment.model_validate(one_turn)
    assert len(hallulab.run(experiment, out=tmp_path / "run", **RECORDED).turns()) == 1


def test_fields_win_over_the_file(tmp_path: Path, one_turn: dict[str, object]) -> None:
    run = hallulab.run(DEMO, out=str(tmp_path / "run"), **one_turn, **RECORDED)
    assert list(run.turns()["chatbot"]) == ["reply"]


def test_the_same_call_goes_on_and_fresh_starts_over(tmp_path: Path, one_turn: dict[str, object]) -> None:
    hallulab.run(one_turn, out=tmp_path / "run", **RECORDED)
    (tmp_path / "my_bot.py").write_text(MINE.replace("500", "600"))
    resumed = hallulab.run(one_turn, out=tmp_path / "run", **RECORDED)
    assert list(resumed.turns()["reply"]) == ["It is 500."]
    fresh = hallulab.run(one_turn, out=tmp_path / "run", fresh=True, **RECORDED)
    assert list(fresh.turns()["reply"]) == ["It is 600."]


def test_a_bot_of_the_notebook_itself_is_to_be_put_into_a_file(
    tmp_path: Path, one_turn: dict[str, object]
) -> None:
    cell = {"name": "cell", "kind": "callable", "options": {"target": "__main__:reply"}}
    with pytest.raises(UsageError) as caught:
        hallulab.run(one_turn, chatbots=[cell], out=tmp_path / "run", **RECORDED)
    assert str(caught.value) == (
        "chatbot callable: `__main__:reply`: a bot runs in a process of its own, which does not know what a "
        "script or notebook defines. Put it into a file, such as my_bot.py, and name `my_bot:reply`."
    )


def test_a_run_without_any_reply_is_an_error(tmp_path: Path, one_turn: dict[str, object]) -> None:
    with pytest.raises(OperationalError) as caught:
        hallulab.run(one_turn, chatbots=[bot("silent")], out=tmp_path / "run", **RECORDED)
    assert str(caught.value) == (
        "no conversation got as far as a reply: 1 of 1 failed. "
        "Reason: my_bot:silent raised ValueError: no idea."
    )
    [failed] = Run(tmp_path / "run").conversations
    assert failed.stop_reason == "error"


def test_what_is_not_recorded_ends_the_replay(tmp_path: Path, one_turn: dict[str, object]) -> None:
    with pytest.raises(ReplayMiss):
        hallulab.run(one_turn, max_turns=2, out=tmp_path / "run", **RECORDED)


@pytest.mark.parametrize(
    ("experiment", "options", "said"),
    [
        (
            {"chatbot": ["vanilla"]},
            {},
            "unknown field `chatbot` (did you mean `chatbots`?). Remove it or correct its spelling.",
        ),
        (
            {},
            {"limits": 2},
            "unknown field `limits` (did you mean `limit`?). Remove it or correct its spelling.",
        ),
        (
            {"chatbots": ["vanila"]},
            {},
            "there is no chatbot 'vanila' (did you mean `vanilla`?); there are: vanilla, ",
        ),
        ("nowhere.yaml", {}, "nowhere.yaml"),
        (["vanilla"], {}, "the experiment is a list. Give a file, a mapping of its fields or an Experiment."),
        ({}, {"record": "a", "replay": "b"}, "--record and --replay exclude each other: give one of them."),
    ],
)
def test_bad_input_is_one_sentence(
    tmp_path: Path, experiment: object, options: dict[str, object], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        hallulab.run(experiment, out=tmp_path / "run", **options)  # type: ignore[arg-type]
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution with the chatbot of docs/python.md and the tutorial's detector, as pip leaves it."""
    [chatbot] = [block for block in blocks("docs/python.md") if "class Librarian" in block]
    [detector] = blocks("docs/tutorial/detector.md")
    package, about = tmp_path / "site" / "mypackage", tmp_path / "site" / "mypackage-1.0.dist-info"
    package.mkdir(parents=True)
    about.mkdir()
    (package / "__init__.py").write_text("")
    (package / "bot.py").write_text(chatbot)
    (package / "judge.py").write_text(detector)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mypackage\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[hallulab.chatbots]\nlibrarian = mypackage.bot:Librarian\n"
        "[hallulab.detectors]\nevery-number = mypackage.judge:EveryNumber\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delitem(sys.modules, "mypackage", raising=False)


@pytest.mark.usefixtures("installed")
async def test_a_chatbot_of_others_searches_and_asks_through_the_front_door() -> None:
    context, transport, shelf = stage()
    reply = await make_chatbot("librarian", context).reply([Message(role="user", text="When does it open?")])
    assert isinstance(reply, Reply)
    assert reply.text == "It opens at 7. A ticket is 6 euros."
    assert reply.passages == (HOURS,)
    assert [call.purpose for call in reply.calls] == ["chatbot.answer"]
    assert shelf.searched == [("When does it open?", 4)]
    assert [message["content"] for message in transport.requests[0]["messages"]] == [
        f"Answer from these documents only.\n\n{HOURS.text}",
        "When does it open?",
    ]


@pytest.mark.usefixtures("installed")
def test_a_detector_of_others_judges_a_run(tmp_path: Path, one_turn: dict[str, object]) -> None:
    run = hallulab.run(one_turn, detectors=["every-number"], out=tmp_path / "run", **RECORDED)
    assert run.spans()[["detector", "text", "reason"]].values.tolist() == [
        ["every-number", "500", "a number"]
    ]
