"""The first sentences of the page, which stand below the terminal's table, too."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.measure.finding import Finding
from simulator.measure.metrics import Row, row
from simulator.report.document import RunReport
from simulator.report.headlines import headlines, interval_lines
from tests.simulator.counted import build_report


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
    return empty.model_copy(update={"rows": rows, "findings": (found,)})


def line(chatbot: str, rate: float | None, detector: str = "d", **fields: Any) -> Row:
    return row(chatbot, detector, []).model_copy(update={"hpt_1": rate, **fields})


def test_the_best_is_named_where_the_test_says_so() -> None:
    made = report({"best": "b"}, line("a", 0.5), line("b", 0.25, hpt_1_ci95=(0.1, 0.4)))
    assert headlines(made) == [
        "By d, b hallucinates least: 0.25 [0.10, 0.40] per turn, which the paired test tells from every "
        "other chatbot (p < 0.05 after Holm's correction)."
    ]


def test_a_best_that_is_judged_by_its_own_verifier_has_the_sign() -> None:
    made = report({"best": "b"}, line("a", 0.5), line("b", 0.25, self_judged_degree="same model"))
    assert headlines(made)[0].startswith("By d, b† hallucinates least")


def test_else_it_says_that_these_conversations_do_not_tell_and_how_many_would() -> None:
    undecided = {"undecided": ["a", "b"], "pairs": 2, "difference": 0.25, "personas_needed": 1616}
    assert headlines(report(undecided, a=0.5, b=0.25, c=0.75)) == [
        "By d, these conversations do not tell which chatbot hallucinates least. a and b, which have the "
        "fewest, differ by 0.25 per turn with 2 personas: about 1,616 would be needed to tell them apart "
        "(80% power)."
    ]


def test_where_personas_have_several_seeds_it_says_what_more_of_them_can_do() -> None:
    undecided = {"undecided": ["a", "b"], "pairs": 9, "difference": 0.25, "personas_needed": 40}
    [sentence] = headlines(report({**undecided, "seed_share": 0.25}, a=0.5, b=0.25))
    assert sentence.endswith(
        "(80% power). More seeds of the same personas can remove 25% of this difference's variance at most; "
        "the rest takes more personas."
    )


def test_what_cannot_be_estimated_is_said_with_the_least_that_the_test_needs() -> None:
    found = {"undecided": ["a", "b"], "pairs": 2, "difference": 0.0, "not_estimated": "they do not differ"}
    assert headlines(report({**found, "least_personas": 7}, a=0.5, b=0.5, c=1.0)) == [
        "By d, these conversations do not tell which chatbot hallucinates least. How many personas would "
        "cannot be estimated from a and b, which have the fewest: they do not differ. With 3 chatbots the "
        "test needs 7 personas at the least."
    ]


@pytest.mark.parametrize(
    ("rates", "sentence"),
    [
        ({"a": None, "b": None}, "By d: nothing was scored."),
        ({"a": 0.5}, "By d, a hallucinates 0.50 per turn; there is no other to compare with."),
        (
            {"a": 0.5, "b": None},
            "By d, these conversations do not tell which chatbot hallucinates least. "
            "Nothing was scored of b.",
        ),
    ],
)
def test_where_there_is_nothing_to_compare(rates: dict[str, float | None], sentence: str) -> None:
    assert headlines(report({}, **rates)) == [sentence]


def lacking(detector: str, chatbot: str, number: int, hpt_1: float | None = 0.5) -> Row:
    reason = None if number >= 6 else f"{number} personas; 6 needed for an interval"
    return line(chatbot, hpt_1, detector, no_interval=reason)


def test_one_reason_for_all_is_said_once() -> None:
    rows = [lacking("d", "a", 2), lacking("e", "b", 2), lacking("e", "c", 0, None)]
    assert interval_lines(rows) == ["Each chatbot: 2 personas; 6 needed for an interval."]


def test_several_reasons_name_their_rows() -> None:
    rows = [lacking("d", "a", 2), lacking("d", "b", 2), lacking("d", "c", 9), lacking("e", "a", 3)]
    assert interval_lines(rows) == [
        "d, a, b: 2 personas; 6 needed for an interval.",
        "e, a: 3 personas; 6 needed for an interval.",
    ]


def test_rows_with_intervals_need_no_sentence() -> None:
    assert interval_lines([lacking("d", "a", 6)]) == []
