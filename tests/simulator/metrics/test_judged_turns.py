"""Turns that a detector scored, with people's annotations, and their sums."""

from __future__ import annotations

from hallulab.simulator.metrics.annotations import Annotations
from hallulab.simulator.metrics.judged_turns import collect_judged_turns
from tests.builders import branched, conversation, scored, unscored

CHATS = [
    conversation("a0", ["One. Two. Three.", "Four."], chatbot="a", persona="p"),
    conversation("b0", ["Five."], chatbot="b", persona="p"),
]


def test_only_scored_turns_count_and_sentences_are_flagged_by_the_spans_that_touch_them() -> None:
    verdicts = [scored("a0", 0, [(0, 4), (3, 9), None]), unscored("a0", 1), scored("b0", 0)]
    [first, second] = collect_judged_turns(CHATS, verdicts, Annotations({("a0", 0): 2}))["d"]
    assert (first.chatbot, first.person, first.depth) == ("a", ("s", "p"), 0)
    assert (first.flagged, first.spans, first.sentences, first.flagged_sentences) == (True, 3, 3, 2)
    assert (first.annotated, second.annotated) == (2, None)


def test_a_turn_without_findings_by_people_was_looked_at() -> None:
    [turn] = collect_judged_turns(CHATS, [scored("b0", 0)], Annotations({("b0", 0): 0}))["d"]
    assert turn.annotated == 0


def test_the_depth_of_a_branch_counts_what_it_was_given() -> None:
    [turn] = collect_judged_turns([branched("x", "Yes.", 2)], [scored("x", 0)], Annotations())["d"]
    assert turn.depth == 2
