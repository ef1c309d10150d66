from __future__ import annotations

from hallulab.simulator.compare.runs import RunsCompared, compare_runs
from hallulab.simulator.compare.summary import summarize_run
from hallulab.simulator.compare.texts import MOST_OF_A_KIND, add_texts, choose_shown, list_flagged
from hallulab.simulator.compare.turns import TurnTexts
from hallulab.simulator.records.folder import RunFolder
from tests.simulator.compare.made import found

UNKNOWN = "I do not know. <b>Ask</b> @somebody | at www.example.org."


def compared(*runs: RunFolder) -> RunsCompared:
    return compare_runs([summarize_run(one) for one in runs])


def test_changed_turns_have_the_texts_of_both_runs(demo_replay: RunFolder, changed_demo: RunFolder) -> None:
    made = add_texts(compared(demo_replay, changed_demo), [demo_replay, changed_demo])
    _, gone, _ = made.runs[0].turns.turns
    assert gone.texts == TurnTexts(
        user="If my refrigerator doesn't cool, can I demand a new one or a refund?",
        reply_before="If your refrigerator doesn't cool, you can demand a new one or a refund. The user can "
        "start by contacting the manufacturer or the retailer where they purchased the refrigerator. They "
        "should provide t…",
        reply_after=UNKNOWN,
        spans_before=(
            "They should provide the necessary information, such as the model number, serial number, and "
            "date of purchase.",
            "The manufacturer or retailer should then provide a response within a reasonable time frame, "
            "such as 15 days.",
            "The consumer commission will then investigate the complaint and provide a response within a "
            "reasonable time frame, such as 30 days.",
        ),
    )


def test_a_baseline_has_no_texts_of_its_side(demo_replay: RunFolder, changed_demo: RunFolder) -> None:
    made = compared(demo_replay, changed_demo)
    one = add_texts(made, [None, changed_demo]).runs[0].turns.turns[1].texts
    assert one is not None
    assert (one.reply_before, one.reply_after, one.spans_before) == (None, UNKNOWN, ())
    other = add_texts(made, [demo_replay, None]).runs[0].turns.turns[1].texts
    assert other is not None
    assert (other.reply_after, len(other.spans_before)) == (None, 3)
    assert add_texts(made, [None, None]) == made


def test_a_turn_that_is_missing_in_the_reference_has_the_texts_of_the_run() -> None:
    long, short = found({"bot": {("asha", 0): [0, 1]}}), found({"bot": {("asha", 0): [0]}})
    (turn,) = compare_runs([short, long]).runs[0].turns.turns
    assert turn.before.outcome == "missing"


def test_of_each_kind_the_first_are_shown() -> None:
    many = {(f"p{number:03}", 0): [number % 2] for number in range(2 * MOST_OF_A_KIND + 20)}
    other = {user: [1 - turns[0]] for user, turns in many.items()}
    turns = compare_runs([found({"bot": many}), found({"bot": other})]).runs[0].turns.turns
    shown = choose_shown(turns, 3)
    assert [turn.kind for turn in shown] == ["new"] * 3 + ["gone"] * 3
    assert shown[0] is turns[0]


def test_what_is_flagged_in_both_stands_once() -> None:
    both = TurnTexts(user="u", spans_before=("a",), spans_after=("a",))
    assert list_flagged(both) == [("flagged", "a")]
    other = TurnTexts(user="u", spans_before=("a",), spans_after=("a", "b"))
    assert list_flagged(other) == [("flagged before", "a"), ("flagged after", "a"), ("flagged after", "b")]
