"""Sentences, words and spans: whose score counts where; gold given as prediction is perfect by every rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Judgement
from hallulab.simulator.bench.levels import (
    collect_items,
    flag_items,
    get_gold_labels,
    group_numbers,
    mark_covered,
    score_items,
)
from hallulab.simulator.bench.results import measure
from hallulab.simulator.bench.rows import LevelRow, compute_span_numbers, count_spans
from hallulab.simulator.bench.significance import DetectorDifference
from tests.simulator.bench.material import (
    DATA,
    FAILED,
    FAILED_SENTENCE,
    TEXT,
    evaluation,
    judged,
    known,
    reply,
    unit,
)

NOTHING = float("-inf")
"""Score of what a detector has nothing to say about."""


def test_an_item_is_positive_where_a_gold_span_overlaps_it() -> None:
    one = reply((13, 20))
    assert known(get_gold_labels(one, "word")).tolist() == [False, False, True, True, False, False, False]
    assert known(get_gold_labels(one, "sentence")).tolist() == [True, True]


def test_only_spans_of_the_kind_asked_for_count() -> None:
    assert known(get_gold_labels(reply((0, 5)), "response", kind="conflict")).tolist() == [False]


def test_units_of_the_items_kind_come_first() -> None:
    units = (unit(0, 17, 0.9), unit(0, 5, 0.2, "word"), unit(18, 36, 0.4, "sentence"))
    assert score_items(TEXT, judged(units=units), "word").tolist() == [0.2, *[NOTHING] * 6]
    assert score_items(TEXT, judged(units=units), "sentence").tolist() == [NOTHING, 0.4]


@pytest.mark.parametrize("order", [1, -1])
def test_without_them_the_highest_unit_that_overlaps_counts_in_any_order(order: int) -> None:
    units = (unit(0, 17, 0.3), unit(11, 25, 0.6), unit(26, 30, None))
    assert score_items(TEXT, judged(units=units[::order]), "word").tolist() == [
        0.3,
        0.3,
        0.6,
        0.6,
        *[NOTHING] * 3,
    ]


def test_without_units_the_flagged_spans_count() -> None:
    assert score_items(TEXT, judged((18, 25)), "sentence").tolist() == [NOTHING, 1.0]


def test_a_flagged_span_without_a_score_has_the_replys() -> None:
    assert score_items(TEXT, judged((0, 5), score=0.7), "sentence").tolist() == [0.7, NOTHING]


@pytest.mark.parametrize("spans", [None, (), (None,)])
def test_a_flagged_reply_without_a_place_is_flagged_throughout_and_not_localised(
    spans: tuple[None, ...] | None,
) -> None:
    flagged = {"score": 0.7, "flagged": True}
    said = judged(spans=None, **flagged) if spans is None else judged(*spans, **flagged)
    assert score_items(TEXT, said, "sentence").tolist() == [0.7, 0.7]
    assert flag_items(TEXT, said, "word").all()
    assert (count_spans(reply((0, 5)), said) is None) == (not spans)


def test_a_threshold_of_their_own_decides_on_words_whatever_the_reply() -> None:
    words = (unit(0, 5, 0.2, "word"), unit(18, 25, 0.7, "word"), unit(31, 33, 0.3, "word"))
    clean = judged(units=words, unit_thresholds={"word": 0.3})
    assert flag_items(TEXT, clean, "word").tolist() == [False, False, False, True, False, True, False]
    assert not flag_items(TEXT, clean, "sentence").any()


def test_scores_of_words_stand_for_units_of_words() -> None:
    scores = (0.2, 0.1, 0.0, 0.7, 0.0, 0.3, 0.0)
    scored = judged(word_scores=scores, unit_thresholds={"word": 0.3})
    assert score_items(TEXT, scored, "word").tolist() == list(scores)
    assert flag_items(TEXT, scored, "word").tolist() == [False, False, False, True, False, True, False]
    assert score_items(TEXT, scored, "sentence").tolist() == [0.2, 0.7]


def words_of(*judgements: Judgement) -> list[float]:
    """The scores of the words of a reply for each judgement, as they are ranked together."""
    replies = [reply((0, 5), group=str(number)) for number, _ in enumerate(judgements)]
    found = collect_items(evaluation(replies, *judgements), "word", group_numbers(replies))
    scores: list[float] = found.sample.scores.tolist()
    return scores


def test_text_that_nothing_overlaps_ranks_below_text_flagged_with_a_negative_score() -> None:
    flagged, *others = words_of(judged((0, 5), score=-1))
    assert flagged == -1.0
    assert set(others) == {float(np.nextafter(-1.0, -2.0))}


def test_text_that_nothing_overlaps_has_one_score_in_all_replies() -> None:
    scores = words_of(judged(units=(unit(0, 5, 0.2),)), judged(units=(unit(0, 5, -3),)))
    floor = float(np.nextafter(-3.0, -4.0))
    assert scores == [0.2, *[floor] * 6, -3.0, *[floor] * 6]


def test_text_that_nothing_overlaps_has_score_zero_where_no_score_is_negative() -> None:
    assert words_of(judged(units=(unit(0, 5, 0.2),))) == [0.2, 0, 0, 0, 0, 0, 0]


def test_a_negative_threshold_of_words_does_not_flag_what_no_unit_overlaps() -> None:
    one = judged(units=(unit(0, 5, -1, "word"),), unit_thresholds={"word": -2})
    assert flag_items(TEXT, one, "word").tolist() == [True, *[False] * 6]


def numbers_of(one: LabelledReply, said: Judgement) -> dict[str, float | None]:
    return compute_span_numbers([known(count_spans(one, said))])


def test_span_rules_by_hand() -> None:
    found = numbers_of(reply((0, 4), (10, 20)), judged((0, 4), (16, 22)))
    assert found["precision"] == 0.8
    assert found["recall"] == pytest.approx(8 / 14)
    assert found["f1"] == pytest.approx(16 / 24)
    assert found["pairwise_f1"] == pytest.approx(16 / 24)
    assert found["iou"] == 0.5
    assert (found["exact_precision"], found["exact_recall"], found["exact_f1"]) == (0.5, 0.5, 0.5)


def test_pairwise_counts_an_overlap_for_each_pair_and_the_union_counts_it_once() -> None:
    counted = known(count_spans(reply((0, 10)), judged((0, 4), (2, 6))))
    assert (counted.characters.hits, counted.characters.flagged) == (6, 6)
    assert (counted.pairwise.hits, counted.pairwise.flagged) == (8, 8)


def test_pairwise_recall_is_capped_at_one_and_leaves_precision_as_it_is() -> None:
    found = numbers_of(reply((0, 8)), judged((0, 8), (0, 8), (18, 20)))
    assert found["pairwise_precision"] == pytest.approx(16 / 18)
    assert found["pairwise_recall"] == 1.0
    assert found["pairwise_f1"] == pytest.approx(16 / 17)


def test_a_span_without_a_place_is_a_wrong_exact_span() -> None:
    assert numbers_of(reply((0, 5)), judged(None))["exact_precision"] == 0.0


def test_nothing_to_find_and_nothing_found_has_no_numbers() -> None:
    assert set(numbers_of(reply(), judged()).values()) == {None}


words = st.lists(st.sampled_from(["a", "bc.", "def", "Gh"]), min_size=1, max_size=12).map(" ".join)


@st.composite
def gold_replies(draw: st.DrawFn) -> list[LabelledReply]:
    made = []
    for number in range(draw(st.integers(1, 4))):
        text = draw(words)
        ends = st.integers(0, len(text))
        cuts = draw(st.lists(st.tuples(ends, ends).map(sorted), max_size=4))
        spans = [(a, b) for a, b in cuts if text[a:b].strip()]
        made.append(reply(*spans, text=text, group=f"{number // 2}"))
    return made


@settings(deadline=None, max_examples=25)
@given(gold_replies())
def test_gold_as_prediction_scores_one_by_every_rule_at_every_level(replies: list[LabelledReply]) -> None:
    said = (judged(*((span.start, span.end) for span in one.spans or ()), text=one.reply) for one in replies)
    gold = evaluation(replies, *said, name="gold")
    for row in measure([gold], DATA).report.rows:
        if row.detector != "gold":
            continue
        rules = ("precision", "recall", "f1", "auroc", "auprc", "balanced_accuracy", "iou")
        prefixed = [name for name, _ in row if name.startswith(("pairwise_", "exact_"))]
        values = [value for name in (*rules, *prefixed) if (value := getattr(row, name, None)) is not None]
        assert set(values) <= {1.0}
        assert row.coverage == 1.0
        if any(one.spans for one in replies):
            assert (row.precision, row.recall, row.f1) == (1.0, 1.0, 1.0)
            if isinstance(row, LevelRow):
                assert row.thresholds.oracle.f1 == 1.0
                assert (row.ece, row.brier, row.auprc is None) == (0.0, 0.0, row.auroc is None)


def test_data_without_spans_has_the_response_level_alone() -> None:
    gold = evaluation([reply(spans=None)], judged())
    assert {row.level for row in measure([gold], DATA).report.rows} == {"response"}


def test_majority_is_of_the_level() -> None:
    replies = (reply((0, 5)), reply((0, 5), group="h"), reply(group="i"))
    gold = evaluation(replies, judged((0, 5)), judged((0, 5)), judged())
    rows = {(row.detector, row.level): row for row in measure([gold], DATA).report.rows}
    assert rows["majority", "response"].recall == 1.0
    assert rows["majority", "word"].recall == 0.0
    assert rows["flag-all", "word"].precision == pytest.approx(2 / 21, abs=1e-6)


def rows_of(replies: Sequence[LabelledReply], *judgements: Judgement) -> dict[str, dict[str, Any]]:
    """The rows of one detector by level."""
    rows = measure([evaluation(replies, *judgements)], DATA).report.rows
    return {row.level: row for row in rows if row.detector == "d"}


def test_what_the_detector_could_not_score_is_not_covered() -> None:
    whole = judged((0, 17), units=FAILED_SENTENCE)
    assert mark_covered(TEXT, whole, "response").tolist() == [True]
    assert mark_covered(TEXT, whole, "sentence").tolist() == [True, False]
    assert mark_covered(TEXT, whole, "word").tolist() == [True] * 3 + [False] * 4


def test_a_score_or_a_flag_covers_what_another_unit_could_not_score() -> None:
    both = (*FAILED_SENTENCE, unit(18, 25, 0.2, "sentence"))
    assert mark_covered(TEXT, judged((0, 17), units=both), "word").tolist() == [True] * 4 + [False] * 3
    assert mark_covered(TEXT, judged((18, 25), units=FAILED_SENTENCE), "sentence").all()


def test_items_that_could_not_be_scored_lower_coverage_and_nothing_else() -> None:
    row = rows_of([reply((18, 36))], judged((0, 17), units=FAILED_SENTENCE))["sentence"]
    assert (row.n, row.positives, row.scored, row.scored_positives) == (2, 1, 1, 0)
    assert (row.coverage, row.recall, row.precision) == (0.5, None, 0.0)


def compared(
    replies: Sequence[LabelledReply], first: Sequence[Judgement], second: Sequence[Judgement]
) -> Sequence[DetectorDifference]:
    """The differences of two detectors, a and b."""
    both = [evaluation(replies, *said, name=name) for name, said in (("a", first), ("b", second))]
    return measure(both, DATA).report.comparisons


def test_where_no_reply_is_hallucinated_no_level_has_an_f1() -> None:
    for row in rows_of([reply(), reply(group="h")], judged((0, 5)), judged()).values():
        assert (row.precision, row.recall, row.f1, row.f1_ci95) == (0.0, None, None, None)


def test_spans_without_a_place_are_counted() -> None:
    row = rows_of([reply((0, 5))], judged((0, 5), *[None] * 9))["span"]
    assert (row.precision, row.exact_precision, row.unlocated) == (1.0, 0.1, 9)


def test_gold_spans_of_replies_that_were_not_scored_are_positives_too() -> None:
    row = rows_of([reply((0, 5)), reply((0, 5), (11, 16), group="h")], judged((0, 5)), FAILED)["span"]
    assert (row.positives, row.scored_positives, row.coverage) == (3, 1, 0.5)


def test_a_paired_difference_is_over_replies_and_items_that_both_scored() -> None:
    replies = tuple(reply(*spans, group=str(n)) for n, spans in enumerate([[(0, 5)], [], [(0, 5)], []]))
    right = [judged((0, 5)), judged(), judged((0, 5)), judged()]
    found = compared(replies, right, [FAILED, FAILED, judged(), judged((0, 5))])
    first = next(item for item in found if item.metric == "auroc" and item.level == "response")
    assert (first.a, first.b, first.n, first.difference) == ("a", "b", 2, 1.0)
    assert first.ci95 is None
    found = compared([reply((18, 36))], [judged((0, 17), units=FAILED_SENTENCE)], [judged((18, 36))])
    assert {item.n for item in found if item.level == "sentence"} == {1}


def test_replies_without_gold_spans_are_none_of_the_span_level() -> None:
    row = rows_of([reply((0, 5)), reply(group="h", spans=None)], judged((0, 5)), judged())["span"]
    assert (row.n, row.coverage) == (1, 1.0)


def test_span_f1_has_an_interval_over_groups() -> None:
    replies = [reply((0, 10), group=group) for group in "abcdef"]
    row = rows_of(replies, *[judged((0, 5))] * 5, judged((0, 10)))["span"]
    # 2 · 35 / 95. Without the last 2 · 25 / 75, without one of the others 2 · 30 / 80; by the logit.
    assert (row.f1, row.f1_ci95) == (0.736842, (0.527224, 0.875472))


TWELVE = tuple(reply(*spans, group=str(number)) for number, spans in enumerate([[(0, 5)], []] * 6))
"""Every other reply is hallucinated."""
RIGHT = (judged((0, 5)), judged()) * 6
FLAG_ALL = (judged((0, 5)),) * 12


def test_each_number_of_a_row_has_the_interval_of_its_own() -> None:
    row = rows_of(TWELVE, *(judged((0, 5)), judged(), judged(score=0.4), judged((0, 5))) * 3)["response"]
    names = ("auroc", "auprc", "f1", "balanced_accuracy")
    # Of t with five degrees of freedom: six of the twelve groups have positives.
    assert {name: (getattr(row, name), getattr(row, f"{name}_ci95")) for name in names} == {
        "auroc": (0.625, (0.17907, 0.927191)),
        "auprc": (0.583333, (0.172115, 0.904102)),
        "f1": (0.5, (0.116545, 0.883455)),
        "balanced_accuracy": (0.5, (0.153796, 0.846204)),
    }


@pytest.mark.parametrize(
    ("first", "second", "difference", "interval"),
    [
        (RIGHT, FLAG_ALL, 0.333333, (0.038119, 0.628548)),
        (FLAG_ALL, FLAG_ALL, 0.0, None),
        (FLAG_ALL, (FAILED, FAILED, *FLAG_ALL[2:]), 0.0, None),
    ],
    ids=["first minus second", "the same without each group", "a lost reply counts for neither"],
)
def test_a_paired_difference_has_an_interval_over_the_groups_of_both(
    first: Sequence[Judgement],
    second: Sequence[Judgement],
    difference: float,
    interval: tuple[float, float] | None,
) -> None:
    found = compared(TWELVE, first, second)
    [one] = [item for item in found if (item.level, item.metric) == ("response", "f1")]
    assert (one.difference, one.ci95) == (difference, interval)
