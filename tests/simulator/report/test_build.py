"""The first sentences of the page and of the terminal."""

from __future__ import annotations

from typing import Any

import pytest

from hallulab.simulator.metrics.failures import Failure
from hallulab.simulator.metrics.findings import ComparisonSection, Finding
from hallulab.simulator.metrics.flagged import Example, Flagged
from hallulab.simulator.metrics.hallucinations import Row
from hallulab.simulator.metrics.ranking import describe_planning, explain_intervals
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.report.build import render_headlines
from tests.simulator.counted import build_report, empty_row


def report(finding: dict[str, Any], *rows: Row, **rates: float | None) -> RunReport:
    """With those rows, or one for each of `rates`."""
    rows = rows or tuple(line(name, rate) for name, rate in rates.items())
    found = Finding(
        detector="d",
        compared=sum(row.hpt_1 is not None for row in rows),
        not_scored=tuple(row.chatbot for row in rows if row.hpt_1 is None),
        **{"least_personas": 6, **finding},
    )
    empty = build_report([], [], chatbots=[], detectors=[], flaws={})
    return empty.model_copy(update={"rows": rows, "findings": (found,), "flagged": None})


def line(chatbot: str, rate: float | None, detector: str = "d", **fields: Any) -> Row:
    return empty_row(chatbot, detector).model_copy(update={"hpt_1": rate, **fields})


def test_the_best_is_named_where_the_test_says_so() -> None:
    made = report(
        {"best": "b"}, line("a", 0.5, answered=1.0), line("b", 0.25, answered=0.96, hpt_1_ci95=(0.1, 0.4))
    )
    assert render_headlines(made) == [
        "By d, b hallucinates least: 0.25 [0.10, 0.40] per turn, significantly less than every other chatbot "
        "(paired test, p < 0.05 after Holm's correction); it answers 96.0% of replies, the other 100.0%."
    ]


def test_replies_that_no_rule_reads_leave_open_how_much_a_best_chatbot_answers() -> None:
    made = report({"best": "b"}, line("a", 0.5), line("b", 0.25))
    assert render_headlines(made)[0].endswith("correction); how much they answer is not known.")


def test_a_chatbot_that_answers_less_is_named_and_not_ranked() -> None:
    rows = [
        line("idk", 0.0, answered=0.0),
        line("full", 1.0, answered=1.0),
        line("good", 0.5, answered=0.98),
        line("half", 0.75, answered=0.5),
    ]
    assert render_headlines(report({"best": "good", "set_aside": ["idk"]}, *rows)) == [
        "By d, good hallucinates least of 3 ranked chatbots: 0.50 per turn, significantly less than every "
        "other of these (paired test, p < 0.05 after Holm's correction); it answers 98.0% of replies, the "
        "others 50.0% to 100.0%.",
        "By d, idk hallucinates only 0.00 per turn, but answers 0.0% of replies against 100.0% of full. It "
        "is not ranked: a chatbot that answers less is not better by that alone.",
    ]
    assert render_headlines(report({"set_aside": ["idk", "half"]}, rows[0], rows[3], rows[1])) == [
        "By d, only full is ranked: 1.00 per turn.",
        "By d, idk and half hallucinate only 0.00 and 0.75 per turn, but answer 0.0% and 50.0% of replies "
        "against 100.0% of full. They are not ranked: a chatbot that answers less is not better by that "
        "alone.",
    ]


def test_a_best_that_is_judged_by_its_own_verifier_has_the_sign() -> None:
    made = report({"best": "b"}, line("a", 0.5), line("b", 0.25, self_judged_degree="same model"))
    assert render_headlines(made)[0].startswith("By d, b† hallucinates least")


def test_behind_the_number_of_a_chatbot_stands_how_many_of_its_conversations_failed() -> None:
    made = report({"best": "b"}, line("a", 0.5), line("b", 0.0))
    failed = Failure(chatbot="b", conversations=10, failed=2, first_error="It broke.")
    assert render_headlines(made.model_copy(update={"failures": (failed,)}))[0].startswith(
        "By d, b hallucinates least: 0.00 per turn (and 2 of its 10 conversations failed), significantly "
    )


def test_behind_the_number_of_a_chatbot_stands_how_many_of_its_replies_are_not_scored() -> None:
    half = line("b", 0.0, turns=16, scored_turns=8)
    assert render_headlines(report({"best": "b"}, line("a", 0.5), half))[0].startswith(
        "By d, b hallucinates least: 0.00 per turn (and 8 of its 16 replies are not scored), significantly "
    )


def test_personas_that_not_every_chatbot_talked_to_are_not_shared() -> None:
    made = report(PAIR | {"pairs": 0}, line("a", 0.5, personas=8), line("b", 0.25, personas=8))
    assert render_headlines(made) == [
        "Too few shared personas (0) to rank the chatbots. Intervals need 6; a test of 2 chatbots needs at "
        "least 6."
    ]


def test_why_a_scored_chatbot_has_no_interval_is_not_said_of_an_unscored_one() -> None:
    made = report({}, line("a", None), line("b", 1.0, no_interval="every persona has the same HPT-1"))
    assert explain_intervals(made) == ["d, b: every persona has the same HPT-1."]


PAIR: dict[str, Any] = {"undecided": ["a", "b"], "lowest": ["b"], "nearest": ["a"], "difference": 0.25}
TIE: dict[str, Any] = {
    "undecided": ["a", "b"],
    "lowest": ["a", "b"],
    "difference": 0.0,
    "not_planned": "they differ by the same with every persona",
}


THREE = {"a": 0.5, "b": 0.5, "c": 1.0}


@pytest.mark.parametrize(
    ("found", "rates", "sentence"),
    [
        (
            {**PAIR, "pairs": 2, "personas_needed": 1616},
            {"a": 0.5, "b": 0.25, "c": 0.75},
            "Too few personas (2) to rank the chatbots. Intervals need 6; telling a and b apart, if they "
            "differ by 0.2 per turn, needs about 1,616.",
        ),
        (
            {**PAIR, "pairs": 9, "personas_needed": 40},
            {"a": 0.5, "b": 0.25},
            "No chatbot hallucinates significantly least with 9 personas; telling a and b apart, if they "
            "differ by 0.2 per turn, needs about 40.",
        ),
        (
            {**TIE, "pairs": 2, "least_personas": 7},
            THREE,
            "Too few personas (2) to rank the chatbots. Intervals need 6; a test of 3 chatbots needs at "
            "least 7.",
        ),
        (
            {**TIE, "pairs": 8, "least_personas": 9},
            THREE,
            "No chatbot hallucinates significantly least with 8 personas; a test of 3 chatbots needs at "
            "least 9.",
        ),
        (
            {**TIE, "pairs": 13, "least_personas": 9},
            THREE,
            "No chatbot hallucinates significantly least with 13 personas; the number for a and b is not "
            "planned: they differ by the same with every persona.",
        ),
    ],
)
def test_the_headline_says_what_it_takes_to_rank_the_chatbots(
    found: dict[str, Any], rates: dict[str, float], sentence: str
) -> None:
    assert render_headlines(report(found, **rates)) == [sentence]


@pytest.mark.parametrize(("pairs", "sentences"), [(5, 1), (6, 2)])
def test_with_too_few_personas_to_rank_any_the_first_sentences_leave_out_who_answers_less(
    pairs: int, sentences: int
) -> None:
    made = report({**TIE, "set_aside": ["c"], "pairs": pairs}, a=0.5, b=0.5, c=0.0)
    assert len(render_headlines(made)) == sentences
    assert describe_planning(made)[0].startswith("d: a and b have equally many (c not ranked) in ")


@pytest.mark.parametrize(
    ("found", "rates", "sentence"),
    [
        (
            {**PAIR, "pairs": 2, "personas_needed": 1616},
            {"a": 0.5, "b": 0.25, "c": 0.75},
            "d: b has the fewest in this run; not significantly fewer than a. a and b differ by 0.25 per "
            "turn with 2 personas; telling two apart that differ by 0.2 needs about 1,616 (80% power "
            "for this pair alone).",
        ),
        (
            {**PAIR, "nearest": ["a", "c"], "pairs": 2, "personas_needed": 16},
            {"a": 0.5, "b": 0.25, "c": 0.5},
            "d: b has the fewest in this run; not significantly fewer than a and c. a and b differ by 0.25 "
            "per turn with 2 personas; telling two apart that differ by 0.2 needs about 16 (80% power "
            "for this pair alone).",
        ),
        (
            {**PAIR, "pairs": 9, "personas_needed": 40, "seed_share": 0.25},
            {"a": 0.5, "b": 0.25},
            "d: b has the fewest in this run; not significantly fewer than a. a and b differ by 0.25 per "
            "turn with 9 personas; telling two apart that differ by 0.2 needs about 40 (80% power "
            "for this pair alone). More seeds of the same personas can remove 25% of this difference's "
            "variance at most; the rest takes more personas.",
        ),
        (
            {**TIE, "pairs": 2},
            {"a": 0.5, "b": 0.5, "c": 0.75},
            "d: a and b have the fewest in this run. The personas that tell a and b apart are not planned: "
            "they differ by the same with every persona.",
        ),
        (
            {**TIE, "lowest": ["a", "b", "c"], "pairs": 2},
            {"a": 0.5, "b": 0.5, "c": 0.5},
            "d: a, b and c have equally many in this run. The personas that tell a and b apart are not "
            "planned: they differ by the same with every persona.",
        ),
    ],
)
def test_planning_names_the_lowest_and_the_nearest(
    found: dict[str, Any], rates: dict[str, float], sentence: str
) -> None:
    assert describe_planning(report(found, **rates)) == [sentence]


def test_the_reason_of_each_detector_is_given() -> None:
    made = report({**TIE, "pairs": 13}, **THREE)
    [found] = made.of(ComparisonSection).findings
    other = found.model_copy(update={"detector": "e", "undecided": ("b", "c")})
    assert render_headlines(made.model_copy(update={"findings": (found, other)})) == [
        "No chatbot hallucinates significantly least with 13 personas; the number for a and b by d is not "
        "planned: they differ by the same with every persona; the number for b and c by e is not planned: "
        "they differ by the same with every persona."
    ]


@pytest.mark.parametrize(
    ("rates", "sentence"),
    [
        ({"a": None, "b": None}, "By d: nothing was scored."),
        ({"a": 0.5}, "By d, a hallucinates 0.50 per turn; there is no other to compare with."),
        ({"a": 0.5, "b": None}, "By d, no chatbot hallucinates significantly least. Not scored: b."),
    ],
)
def test_where_there_is_nothing_to_compare(rates: dict[str, float | None], sentence: str) -> None:
    assert render_headlines(report({}, **rates)) == [sentence]


def test_a_detector_that_does_not_say_where_has_scored_and_counts_nothing() -> None:
    made = report({}, line("a", None, not_localised=2))
    assert render_headlines(made) == [
        "By d: no hallucinations are counted, because it does not say where in a reply they are."
    ]


EXAMPLE = Example(
    conversation="c", chatbot="b", turn=1, text="Call 15100.", reason='The evidence has "1915" for it.'
)
FLAGGED = Flagged(
    replies=20, scored=20, by_all=7, by_some=3, most_often=("b",), their_share=(3, 4), example=EXAMPLE
)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {},
            "7 of 20 replies are flagged by both detectors, in this run most often those of b (3 of 4). For "
            'example, b says "Call 15100." The evidence has "1915" for it.',
        ),
        (
            {"by_all": 1, "most_often": (), "their_share": None, "example": None},
            "1 of 20 replies is flagged by both detectors.",
        ),
        (
            {"scored": 16, "most_often": ("a", "b"), "example": None},
            "7 of 16 replies are flagged by both detectors, in this run most often those of a and b (3 of 4 "
            "each); 4 more were not scored by both detectors.",
        ),
        ({"by_all": 0, "example": None}, "None of 20 replies is flagged by both detectors."),
        ({"scored": 0}, "None of 20 replies was scored by both detectors."),
    ],
)
def test_first_comes_what_was_found(changed: dict[str, Any], sentence: str) -> None:
    rows = [line("a", 0.5, "d"), line("a", 0.5, "e")]
    made = report({}, *rows).model_copy(update={"flagged": FLAGGED.model_copy(update=changed)})
    assert render_headlines(made)[:2] == [
        sentence,
        "The detectors disagree on 3 replies, which the page lists.",
    ]


def lacking(detector: str, chatbot: str, number: int, hpt_1: float | None = 0.5) -> Row:
    reason = None if number >= 6 else f"{number} personas; 6 needed for an interval"
    return line(chatbot, hpt_1, detector, no_interval=reason)


def test_one_reason_for_all_is_said_once() -> None:
    rows = [lacking("d", "a", 2), lacking("e", "b", 2)]
    assert explain_intervals(report({}, *rows)) == ["Each chatbot: 2 personas; 6 needed for an interval."]


def test_the_reason_of_enough_personas_is_said_beside_a_headline_on_the_ranking() -> None:
    reason = "every persona has the same HPT-1"
    rows = [line(name, 0.5, no_interval=reason, personas=6) for name in "ab"]
    made = report({"undecided": ("a", "b"), "pairs": 6}, *rows)
    assert explain_intervals(made) == [f"Each chatbot: {reason}."]


def test_several_reasons_name_their_rows() -> None:
    rows = [lacking("d", "a", 2), lacking("d", "b", 2), lacking("d", "c", 9), lacking("e", "a", 3)]
    assert explain_intervals(report({}, *rows)) == [
        "d, a, b: 2 personas; 6 needed for an interval.",
        "e, a: 3 personas; 6 needed for an interval.",
    ]


def test_rows_with_intervals_need_no_sentence() -> None:
    assert explain_intervals(report({}, lacking("d", "a", 6))) == []


def test_too_few_personas_are_not_said_twice() -> None:
    rows = [lacking("d", "a", 2), lacking("d", "b", 2)]
    assert explain_intervals(report({"undecided": ["a", "b"], "pairs": 2}, *rows)) == []
