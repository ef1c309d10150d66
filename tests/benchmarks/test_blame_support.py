"""How far the rules of blame can be trusted, in short; docs/studies/blame.md has the whole."""

from __future__ import annotations

from collections import Counter

from benchmarks.blame_support import (
    LATER,
    LIMIT,
    NEW,
    Judged,
    blame_sentences,
    choose_question_thresholds,
    choose_thresholds,
    describe_goals,
    describe_set,
    judge_statements,
    rate_goals,
    split_halves,
)
from benchmarks.detectors_table.samples import KEPT, sample
from hallulab.simulator.metrics.support import BEARS, UNRELATED
from tests.builders import labelled, places
from tests.places import ROOT

DOCS = (ROOT / "docs" / "studies" / "blame.md").read_text(encoding="utf-8")


def test_statements_are_rated_by_their_own_passages_and_by_all() -> None:
    reply = "Evidence was heard here. Zebras drink cold lemonade."
    found = judge_statements(
        [
            labelled(reply, True, spans=places((30, 35))),
            labelled("Zebras drink cold evidence.", False, spans=()),
        ],
        whole=False,
    )
    assert [(one.right, one.by_passages) for one in found] == [
        (False, 0.0),
        (True, 0.164488793),
    ]


def test_the_half_that_chooses_shares_no_group_with_the_other() -> None:
    found = [Judged(group, True, 0.5, 0.5) for group in "abcab"]
    assert [[one.group for one in half] for half in split_halves(found)] == [["a", "c", "a"], ["b", "b"]]


def test_thresholds_keep_to_the_limits() -> None:
    wrong = [Judged("a", False, share / 100, 0.0) for share in range(0, 100, 5)]
    right = [Judged("a", True, share / 100, 0.0) for share in range(5, 100, 10)]
    assert choose_thresholds([[*wrong, *right]]) == (0.9, 0.35)


def test_the_docs_have_the_row_of_gold() -> None:
    _, tested = split_halves(judge_statements(sample("gold", ROOT / KEPT, LIMIT), whole=False))
    assert describe_set("gold", tested) in DOCS


def test_the_docs_have_the_rows_of_goals_and_the_rules_the_thresholds() -> None:
    goals = rate_goals()
    assert choose_question_thresholds(goals) == (BEARS, UNRELATED)
    assert all(row in DOCS for row in describe_goals(goals))


def test_the_docs_have_the_rows_of_goals_that_chose_nothing() -> None:
    assert all(row in DOCS for row in describe_goals(rate_goals(LATER), NEW))


def test_the_right_one_is_blamed_for_sentences_of_a_pack() -> None:
    assert blame_sentences("pregnancy-medication") == {
        "true, without its passage": Counter({"retriever": 13}),
        "false, without its passage": Counter({"retriever": 12, None: 1}),
        "false, with its passage": Counter({"writer": 11, "supported": 1, None: 1}),
        "true, with its passage": Counter({"supported": 13}),
    }
