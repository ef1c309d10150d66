from __future__ import annotations

import json

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.compare.runs import AverageCost, RunsCompared, compare_runs, explain_not_comparable
from hallulab.simulator.compare.setup import ComponentSetup
from hallulab.simulator.compare.summary import summarize_run
from hallulab.simulator.records.folder import RunFolder
from tests.builders import branched, call, conversation, scored
from tests.simulator.compare.made import found, summarized

RUN = found({"bot": {("asha", 0): [1]}})


def test_a_run_is_comparable_with_itself() -> None:
    assert explain_not_comparable(RUN, RUN) == []


def test_each_reason_is_told() -> None:
    other = ComponentSetup(version="2")
    reasons = {
        "scenario": found({"bot": {("asha", 0): [1]}}, scenario="t"),
        "chatbot": found({"bat": {("asha", 0): [1]}}),
        "version": found({"bot": {("asha", 0): [1]}}, detectors={"d": other}),
        "detector": summarized([conversation("c", ["r"], "bot")], [scored("c", 0, detector="e")]),
        "none": summarized([conversation("c", ["r"], "bot")], []),
        "persona": found({"bot": {("ravi", 0): [1]}}),
        "branched": summarized([branched("c", "r", 1, "bot")], [scored("c", 0)]),
    }
    assert {name: explain_not_comparable(RUN, one) for name, one in reasons.items()} == {
        "scenario": ["other scenarios (s and t)"],
        "chatbot": ["no common chatbot (bot in one, bat in the other)"],
        "version": ["no detector in the same version (d changed; `hallulab detect` judges a run again)"],
        "detector": ["no common detector (d in one, e in the other)"],
        "none": ["no common detector (d in one, none in the other)"],
        "persona": ["no common persona"],
        "branched": ["the conversations of one run branch off from others, those of the other do not"],
    }


def test_a_run_that_cannot_be_compared_leaves_the_others() -> None:
    compared = compare_runs([RUN, found({"bot": {("ravi", 0): [1]}}, "odd"), RUN])
    odd, same = compared.runs
    assert compared.not_comparable == ("B (odd) cannot be compared with A (run): no common persona.",)
    assert (odd.differences, odd.turns.counts, odd.costs) == ((), (), ())
    assert (str(same.run), len(same.differences), same.not_comparable) == ("C (run)", 3, ())


def test_what_only_one_run_has_is_left_out_and_said() -> None:
    before = found({"bot": {("asha", 0): [1]}, "old": {("asha", 0): [1]}})
    after = found({"bot": {("asha", 0): [1]}, "fresh": {("ravi", 0): [1]}})
    chat = conversation("c", ["one two"], "bot")
    judged = [scored("c", 0), scored("c", 0, detector="e")]
    one = summarized([chat], judged)
    versions = {"d": ComponentSetup(version="1"), "e": ComponentSetup(version="2")}
    other = summarized([chat], judged, detectors=versions)
    assert compare_runs([before, after]).runs[0].left_out == (
        "chatbot old is only in A",
        "chatbot fresh is only in B",
        "1 persona is only in B",
    )
    compared = compare_runs([one, other]).runs[0]
    assert compared.left_out == ("detector e in the same version; its verdicts are not compared",)
    assert {line.detector for line in compared.differences} == {"d"}


def test_a_chatbot_with_other_personas_is_compared_unpaired() -> None:
    before = found({"one": {("asha", 0): [1]}, "two": {("asha", 0): [1]}})
    after = found({"one": {("asha", 0): [0]}, "two": {("ravi", 0): [0]}})
    lines = [one for one in compare_runs([before, after]).runs[0].differences if one.metric == "hpt_1"]
    assert [(one.chatbot, one.paired, one.difference) for one in lines] == [
        ("one", True, -1.0),
        ("two", False, -1.0),
    ]


def test_coverage_counts_every_turn() -> None:
    line = compare_runs([RUN, found({"bot": {("asha", 0): [1, None, 0, None]}})]).runs[0].coverage[0]
    assert (line.before.share, line.after.share) == (1.0, 0.5)
    assert (line.after.turns, line.after.scored, line.after.failed, line.after.missing) == (4, 2, 2, 0)


def test_costs_are_means_of_a_conversation_of_shared_chatbots() -> None:
    both = found({"bot": {("asha", 0): [1], ("ravi", 0): [1]}})
    asked = [call("chatbot.generate", 100, 20, 1.5)]
    chats = [
        conversation("c", ["r", "r"], "bot", calls=asked),
        conversation("e", ["r"], "bot", "ravi", calls=asked),
    ]
    judged = [scored("c", 0, calls=[call("detector.ask", 10, 2, 4.0)]), scored("e", 0)]
    alone = conversation("x", ["r"], "alone", calls=asked * 9)
    run = summarized([*chats, alone], [*judged, scored("x", 0)])
    bot, detector = compare_runs([both, run]).runs[0].costs
    assert (bot.role, bot.name, detector.role, detector.name) == ("chatbot", "bot", "detector", "d")
    assert (bot.before.calls, bot.after.calls, bot.after.tokens, bot.after.seconds) == (0.0, 1.5, 180.0, 2.25)
    assert (detector.after.conversations, detector.after.calls, detector.after.tokens) == (2, 0.5, 6.0)


def test_costs_are_of_personas_that_both_runs_have() -> None:
    chats = [
        conversation(name, ["r"] * turns, "bot", name, calls=[call("chatbot.generate")])
        for name, turns in (("asha", 1), ("ravi", 5))
    ]
    run = summarized(chats, [scored(chat.id, 0) for chat in chats])
    bot, _ = compare_runs([RUN, run]).runs[0].costs
    assert (bot.after.conversations, bot.after.calls) == (1, 1.0)


def test_costs_of_a_detector_are_of_conversations_with_a_verdict_of_it() -> None:
    chats = [conversation(name, ["r"], "bot", name) for name in ("asha", "ravi")]
    judged = scored("asha", 0, calls=[call("detector.ask", 10, 2, 4.0)])
    _, detector = compare_runs([summarized(chats, [judged]), summarized(chats, [judged])]).runs[0].costs
    assert (detector.after.conversations, detector.after.calls) == (1, 1.0)
    assert (detector.after.tokens, detector.after.seconds) == (12.0, 4.0)


def test_a_call_without_counts_leaves_no_mean_of_tokens() -> None:
    told, untold = call("chatbot.generate", 30, 10), call("chatbot.generate", None, None)
    chats = [
        summarized([conversation("c", ["one"], "bot", calls=calls)], [scored("c", 0)])
        for calls in ([told, told], [told, untold])
    ]
    cost = compare_runs(chats).runs[0].costs[0]
    assert (cost.before.tokens, cost.after.tokens) == (80.0, None)
    assert (cost.before.calls, cost.after.calls) == (2.0, 2.0)


def test_a_detector_without_a_verdict_on_a_shared_conversation_has_no_average() -> None:
    chats = [conversation(name, ["r"], "bot", name) for name in ("asha", "ravi")]
    judged = scored("ravi", 0, calls=[call("detector.ask", 10, 2, 4.0)])
    reference = summarized(chats[:1], [scored("asha", 0)])
    _, detector = compare_runs([reference, summarized(chats, [judged])]).runs[0].costs
    assert detector.after == AverageCost(conversations=0, calls=None, tokens=None, seconds=None)


def test_the_demo_against_itself_has_no_difference(demo_replay: RunFolder) -> None:
    summary = summarize_run(demo_replay)
    compared = compare_runs([summary, summary])
    (run,) = compared.runs
    assert {line.difference for line in run.differences} == {0.0}
    assert (compared.lines, run.turns.turns, run.changes, run.left_out) == (20, (), (), ())
    assert (
        sum(one.same_reply for one in run.turns.counts) == sum(one.compared for one in run.turns.counts) == 40
    )
    assert RunsCompared.model_validate(json.loads(compared.text())) == compared


def test_one_run_alone_and_more_than_there_are_letters_are_refused() -> None:
    for number, told in ((1, "1 run"), (27, "27 runs")):
        with pytest.raises(UsageError, match=f"{told}: give 2 to 26, the reference first"):
            compare_runs([RUN] * number)
