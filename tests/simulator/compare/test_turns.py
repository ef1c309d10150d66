from __future__ import annotations

from typing import Any

import pytest

from hallulab.scenarios.transcript import Passage, Span, Turn, Verdict
from hallulab.simulator.compare.summary import RunSummary
from hallulab.simulator.compare.turns import (
    FoundInTurn,
    TurnChanges,
    TurnCounts,
    judge_change,
    list_changed_turns,
)
from tests.builders import branched, conversation, scored
from tests.simulator.compare.made import found, summarized


def seen(spans: int = 0, severity: float | None = None, **fields: Any) -> FoundInTurn:
    return FoundInTurn(outcome="scored", flagged=spans > 0, spans=spans, severity=severity, **fields)


FAILED = FoundInTurn(outcome="failed")
UNPLACED = FoundInTurn(outcome="not localised", flagged=True)


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (seen(), seen(), None),
        (seen(), seen(1), "new"),
        (seen(1), seen(), "gone"),
        (seen(1), seen(2), "worse"),
        (seen(2), seen(1), "better"),
        (seen(1), seen(1), None),
        (seen(2, 3.0), seen(1, 4.0), "worse"),
        (seen(1, 4.0), seen(3, 2.0), "better"),
        (seen(1, 4.0), seen(3), "worse"),
        (FAILED, seen(1), "new"),
        (FoundInTurn(), seen(1), "new"),
        (FAILED, seen(), None),
        (seen(1), FAILED, None),
        (seen(1), FoundInTurn(), None),
        (seen(), UNPLACED, "new"),
        (UNPLACED, seen(3), None),
        (UNPLACED, seen(), "gone"),
    ],
)
def test_what_has_become_of_a_turn(before: FoundInTurn, after: FoundInTurn, kind: str | None) -> None:
    assert judge_change(before, after) == kind


def changed(before: RunSummary, after: RunSummary) -> TurnChanges:
    return list_changed_turns(before, after, ["bot"], ["d"])


def test_changes_are_listed_by_kind_and_counted() -> None:
    before = found({"bot": {("asha", 0): [0, 1, 1, 2, 1], ("ravi", 0): [1]}}, reply="one two")
    after = found({"bot": {("asha", 0): [1, 0, 2, 1, None], ("ravi", 1): [0]}}, reply="one three")
    made = changed(before, after)
    assert [(one.kind, one.persona, one.turn) for one in made.turns] == [
        ("new", "asha", 0),
        ("gone", "asha", 1),
        ("worse", "asha", 2),
        ("better", "asha", 3),
    ]
    (counts,) = made.counts
    assert (counts.compared, counts.same_reply, counts.unjudged, counts.by_noise) == (4, 0, 1, 0)
    assert (counts.new, counts.gone, counts.worse, counts.better) == (1, 1, 1, 1)
    assert made.conversations == 1


def test_another_verdict_on_the_same_reply_is_noise() -> None:
    made = changed(found({"bot": {("asha", 0): [0, 0]}}), found({"bot": {("asha", 0): [1, 0]}}))
    assert [(one.kind, one.noise) for one in made.turns] == [("new", True)]
    assert (made.counts[0].by_noise, made.counts[0].same_reply) == (1, 2)


@pytest.mark.parametrize("setup", [{"scenario_version": "1"}, {"scenario_version": "2"}])
def test_with_other_documents_nothing_is_called_noise(setup: dict[str, str]) -> None:
    before = found({"bot": {("asha", 0): [0]}}, scenario_version="1")
    made = changed(before, found({"bot": {("asha", 0): [1]}}, **setup))
    assert [one.noise for one in made.turns] == [setup["scenario_version"] == "1"]


def run_of(turns: list[tuple[str, str, str]], found_in: int) -> RunSummary:
    """A conversation of (message, reply, passage), with a hallucination in one turn."""
    made = tuple(
        Turn(index=at, user=user, reply=reply, passages=(Passage(id="p#0", document="p", text=passage),))
        for at, (user, reply, passage) in enumerate(turns)
    )
    verdicts = [scored("c", at, [(0, 3)] if at == found_in else []) for at in range(len(turns))]
    return summarized([conversation("c", [], "bot", turns=made)], verdicts)


SAID = [("hello", "reply one", "p"), ("more", "reply two", "p")]


@pytest.mark.parametrize(
    ("after", "noise"),
    [
        (SAID, True),
        ([SAID[0], ("more", "reply TWO", "p")], False),
        ([SAID[0], ("MORE", "reply two", "p")], False),
        ([SAID[0], ("more", "reply two", "P")], False),
        ([("hello", "reply ONE", "p"), SAID[1]], False),
        ([("hello", "reply one", "P"), SAID[1]], True),
    ],
)
def test_noise_needs_the_same_message_reply_passages_and_history(
    after: list[tuple[str, str, str]], noise: bool
) -> None:
    (turn,) = changed(run_of(SAID, 9), run_of(after, 1)).turns
    assert (turn.turn, turn.noise) == (1, noise)


def test_the_severest_stand_first_and_noise_last() -> None:
    def rated(severities: dict[str, float | None], word: str) -> RunSummary:
        chats = [
            conversation(one, [f"one {word if one != 'asha' else 'two'}"], "bot", one) for one in severities
        ]
        verdicts: list[Verdict] = []
        for one, severity in severities.items():
            spans = () if severity is None else (Span(start=0, end=3, text="one", severity=severity),)
            verdicts.append(scored(one, 0, [(0, 3)] * len(spans)).model_copy(update={"spans": spans}))
        return summarized(chats, verdicts)

    names = ("asha", "dev", "meera")
    made = changed(
        rated(dict.fromkeys(names), "two"), rated(dict(zip(names, (5.0, 2.0, 4.0), strict=True)), "three")
    )
    assert [(one.persona, one.noise) for one in made.turns] == [
        ("meera", False),
        ("dev", False),
        ("asha", True),
    ]


def test_turns_beyond_the_references_are_new_and_those_that_are_missing_unjudged() -> None:
    short, long = found({"bot": {("asha", 0): [0]}}), found({"bot": {("asha", 0): [0, 1]}})
    assert [(one.kind, one.turn, one.before.outcome) for one in changed(short, long).turns] == [
        ("new", 1, "missing")
    ]
    assert (changed(short, long).counts[0].new, changed(short, long).counts[0].new_unjudged) == (1, 1)
    back = changed(long, short)
    assert (back.turns, back.counts[0].unjudged, back.counts[0].new_unjudged) == ((), 1, 0)


def test_noise_is_counted_among_the_turns_that_are_judged_in_both_runs() -> None:
    made = changed(found({"bot": {("asha", 0): [None, 0]}}), found({"bot": {("asha", 0): [1, 0]}}))
    assert [(one.kind, one.noise) for one in made.turns] == [("new", True)]
    assert (made.counts[0].same_reply, made.counts[0].by_noise, made.counts[0].new_unjudged) == (1, 0, 1)


@pytest.mark.parametrize(
    ("turns", "unlike"),
    [([0, 0], 0), ([0, 1], 1), ([0, None], 1), ([None, None], 2), ([0], 1), ([0, 0, 0], 1)],
)
def test_turns_with_another_verdict_or_none_are_unlike(turns: list[int | None], unlike: int) -> None:
    before = found({"bot": {("asha", 0): [0, 0]}})
    assert changed(before, found({"bot": {("asha", 0): turns}})).counts[0].unlike == unlike


def test_a_failure_in_both_runs_is_alike() -> None:
    run = found({"bot": {("asha", 0): [0, None]}})
    assert changed(run, run).counts[0].unlike == 0


def test_as_many_hallucinations_in_other_words_are_unlike() -> None:
    def run(end: int) -> RunSummary:
        return summarized([conversation("c", ["one two"], "bot")], [scored("c", 0, [(0, end)])])

    made = changed(run(3), run(7))
    assert (made.turns, made.counts[0].unlike) == ((), 1)


@pytest.mark.parametrize(
    ("second", "unlike"),
    [
        (SAID[1], 0),
        (("more", "reply TWO", "p"), 1),
        (("MORE", "reply two", "p"), 1),
        (("more", "reply two", "P"), 1),
    ],
)
def test_turns_with_another_text_are_unlike(second: tuple[str, str, str], unlike: int) -> None:
    assert changed(run_of(SAID, 9), run_of([SAID[0], second], 9)).counts[0].unlike == unlike


def test_counts_of_an_older_version_can_be_read() -> None:
    run = found({"bot": {("asha", 0): [0]}})
    older = changed(run, run).counts[0].model_dump(exclude={"new_unjudged", "unlike"})
    assert TurnCounts.model_validate(older) == changed(run, run).counts[0]


def test_branched_conversations_are_held_against_those_of_the_same_turn() -> None:
    def run(spans: int) -> RunSummary:
        chats = [branched(f"b{turn}", "one two", turn, "bot") for turn in (1, 2)]
        return summarized(chats, [scored(chat.id, 0, [(0, 3)] * spans) for chat in chats[spans:]])

    before, after = run(0), run(1)
    made = changed(before, after)
    assert [(one.turn, one.index, one.conversation_after) for one in made.turns] == [(2, 0, "b2")]
    assert made.conversations == 2
