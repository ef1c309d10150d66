from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Call, Step
from hallulab.simulator.metrics.omissions import CutReplies
from hallulab.simulator.report.build import describe_omissions, read_report
from tests.builders import call, conversation, scored
from tests.simulator.counted import build_report
from tests.simulator.example_run import CHATBOTS, DETECTORS, example_run

DESIGNED_ROW = {
    "chatbot", "detector", "conversations", "turns", "scored_turns", "coverage", "hallucinations",
    "hallucinated_chats", "calls_per_reply", "hpt_1", "hpt_1_ci95", "hpt_2", "tokacc_1", "tokacc_1_ci95",
    "tokacc_2", "tokens", "calls", "prompt_tokens", "completion_tokens", "seconds",
}  # fmt: skip
DESIGNED_COMPARISON = {"detector", "a", "b", "metric", "difference", "ci95", "p_value", "p_holm"}


def test_the_report_has_the_designed_shape() -> None:
    report = example_run().report()
    written = json.loads(report.text())
    assert written["schema"] == 1
    assert len(written["rows"]) == 10
    assert all(row.keys() >= DESIGNED_ROW for row in written["rows"])
    assert all(line.keys() >= DESIGNED_COMPARISON for line in written["comparisons"])
    assert written["simulator_audit"]["affected_conversations"] == 2


def test_equal_journals_in_any_order_give_equal_text() -> None:
    run = example_run()
    chance = random.Random(1)
    made = set[str]()
    for _ in range(2):
        chats, verdicts = list(run.conversations), list(run.verdicts)
        chance.shuffle(chats)
        chance.shuffle(verdicts)
        report = build_report(chats, verdicts, chatbots=CHATBOTS, detectors=DETECTORS, flaws=run.flaws)
        made.add(report.text())
    assert len(made) == 1


def test_the_text_is_sorted_json_and_ends_in_a_line_break() -> None:
    text = build_report([], [], chatbots=["é"], detectors=["d"], flaws={}).text()
    assert text == json.dumps(json.loads(text), sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    assert '"chatbot": "é"' in text


def test_a_report_is_read_back_as_it_was(tmp_path: Path) -> None:
    report = example_run().report()
    (tmp_path / "report.json").write_text(report.text())
    assert read_report(tmp_path / "report.json") == report


@pytest.mark.parametrize(
    ("change", "flaw"),
    [
        ({"schema": 0}, "field `schema`: input should be 1"),
        ({"rows": [{"chatbot": "a"}]}, "field `rows.0.detector`: field required"),
        ({"laurels": 3}, "field `laurels`: extra inputs are not permitted"),
    ],
)
def test_a_report_of_another_version_is_one_sentence(
    tmp_path: Path, change: dict[str, object], flaw: str
) -> None:
    fields = json.loads(build_report([], [], chatbots=[], detectors=[], flaws={}).text())
    old = tmp_path / "report.json"
    old.write_text(json.dumps({**fields, **change}))
    with pytest.raises(UsageError) as caught:
        read_report(old)
    assert str(caught.value) == f"{old}: {flaw}. Recreate it with `hallulab report` on its run folder."


def test_what_is_no_json_is_no_report(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("{")
    with pytest.raises(UsageError, match=r"report\.json: not valid JSON \(.*\)\. Recreate it with"):
        read_report(tmp_path / "report.json")


def test_a_detector_without_verdicts_has_rows_with_coverage_zero() -> None:
    report = build_report([conversation("a", ["one"])], [], chatbots=["vanilla"], detectors=["d"], flaws={})
    assert (report.rows[0].coverage, report.rows[0].hpt_1) == (0.0, None)


def test_verdicts_on_other_conversations_are_left_out() -> None:
    report = build_report(
        [conversation("a", ["one"])],
        [scored("a", 0), scored("elsewhere", 7, [(0, 1)])],
        chatbots=["vanilla"],
        detectors=["d"],
        flaws={},
    )
    assert report.rows[0].hallucinations == 0


def test_an_empty_run_has_a_report() -> None:
    report = build_report([], [], chatbots=["vanilla", "agent"], detectors=["d"], flaws={})
    assert json.loads(report.text())["rows"][0]["coverage"] is None


def test_replies_at_the_limit_of_tokens_are_counted_and_decisions_and_queries_are_not() -> None:
    def cut(purpose: str, written: int | None) -> Call:
        return call(purpose, 30, written).model_copy(update={"finish_reason": "length"})

    conversations = [
        conversation("a", ["x"], calls=[cut("chatbot.generate", 220), call("chatbot.edit", 30, 9)]),
        conversation(
            "b", ["x"], calls=[cut("chatbot.route", 1), cut("chatbot.reformulate", 60)], persona="p"
        ),
    ]
    report = build_report(conversations, [], chatbots=["vanilla"], detectors=[], flaws={})
    assert report.cut_replies == (CutReplies(chatbot="vanilla", replies=2, cut=1),)
    assert describe_omissions(report) == [
        "vanilla: 1 of 2 replies reached the limit of tokens and may be cut off "
        "(`reply_tokens`, or the chatbot's `max_tokens`)."
    ]


def test_replies_that_ended_for_an_unknown_reason_are_told() -> None:
    ended = call("chatbot.generate", 30, 20).model_copy(update={"finish_reason": "unknown"})
    report = build_report(
        [conversation("a", ["x"], calls=[ended])], [], chatbots=["vanilla"], detectors=[], flaws={}
    )
    assert report.cut_replies == (CutReplies(chatbot="vanilla", replies=1, cut=0, unclear=1),)
    assert describe_omissions(report) == [
        "vanilla: of 1 of 1 reply it is not known why the text ended, as the endpoint did not say so in a "
        "word that is known. It may be cut off."
    ]


def test_replies_that_a_bot_over_http_says_were_ended_are_told() -> None:
    said = conversation("a", ["x", "y"])
    steps = (Step(name="cut", text="The answer says that its text ended by `length`."),)
    turns = (said.turns[0], said.turns[1].model_copy(update={"steps": steps}))
    report = build_report(
        [said.model_copy(update={"turns": turns})], [], chatbots=["vanilla"], detectors=[], flaws={}
    )
    assert report.cut_replies == (CutReplies(chatbot="vanilla", replies=2, cut=0, ended=1),)
    assert describe_omissions(report) == ["vanilla: its service says that it ended 1 of 2 replies early."]


def test_personas_that_the_audit_does_not_know_are_told() -> None:
    conversations = [conversation("a", ["x"], persona="anna"), conversation("b", ["x"], persona="bert")]
    report = build_report(conversations, [], chatbots=["vanilla"], detectors=[], flaws={}, personas=["anna"])
    assert report.unknown_personas == ("bert",)
    assert describe_omissions(report) == [
        "simulated user: the audit knows nothing of bert: the scenario pack is not found, or lacks them."
    ]
