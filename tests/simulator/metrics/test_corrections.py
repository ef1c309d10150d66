"""Corrected numbers of chatbots: by annotations, else by what is known of the detector, else none."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hallulab.simulator.metrics.annotations import LabelSource
from hallulab.simulator.metrics.corrections import (
    Correction,
    OtherWinner,
    compare_labels,
    compute_corrections,
    describe_labels,
    find_lowest,
)
from hallulab.simulator.metrics.judged_turns import JudgedTurn, sum_judged_turns
from hallulab.simulator.metrics.known_errors import (
    Accuracy,
    PairCounts,
    build_errors,
    derive_from_planted_errors,
)
from hallulab.simulator.statistics.prevalence import DetectorErrors

EACH = PairCounts(
    pairs=10,
    errors_flagged=8,
    twins_flagged=1,
    error_spans=9,
    twin_spans=1,
    error_sentences=40,
    twin_sentences=40,
)


def known(groups: int = 10, each: PairCounts = EACH) -> DetectorErrors:
    return derive_from_planted_errors(
        Accuracy(detector="d", version="1", all_pairs=10 * groups, groups=(each,) * groups)
    )


def turn(
    chatbot: str, persona: int, spans: int, annotated: int | None = None, depth: int = 0, sentences: int = 4
) -> JudgedTurn:
    return JudgedTurn(
        chatbot=chatbot,
        person=("s", f"p{persona}"),
        depth=depth,
        flagged=spans > 0,
        spans=spans,
        sentences=sentences,
        flagged_sentences=min(spans, sentences),
        annotated=annotated,
    )


def of(
    turns: Sequence[JudgedTurn], by: DetectorErrors | None = None, chatbots: Sequence[str] = ("a",)
) -> list[Correction]:
    return compute_corrections(sum_judged_turns(turns), chatbots, by, "nobody knows")


TEN = [turn("a", persona, spans) for persona in range(10) for spans in ((0, 1) if persona < 5 else (1, 2))]
"""Fifteen of twenty turns flagged, twenty spans."""


def test_what_is_known_of_the_detector_corrects_share_and_count() -> None:
    found, together, *_ = of(TEN, known())
    assert (found.source, found.turns, found.annotated, found.measured) == ("planted errors", 20, 0, 100)
    assert (found.sensitivity, found.specificity) == (0.8, 0.9)
    # 0.9 of clean replies of four sentences pass, and 0.2 of those with an error: so 7 of 9 are found.
    assert (found.flagged_turns, found.hallucinated_turns) == (0.75, round(1 - (0.25 / 0.9) ** (9 / 7), 6))
    assert (found.hpt_1, found.corrected_hpt_1) == (1.0, 1.125)
    low, high = found.corrected_hpt_1_ci95 or (0, 0)
    assert 0.6 < low < 1.125 < high < 1.9
    assert (found.clipped, found.not_corrected, found.no_interval) == (None, None, None)
    assert dict(together) == {**dict(found), "chatbot": None}


def test_a_calibration_corrects_the_count_by_sentences() -> None:
    by = build_errors("calibration", [[10, 1, 40, 10, 8, 40]] * 10, [[50, 5, 10, 8, 10]] * 10)
    [found, *_] = of(TEN, by)
    # 20 of 80 sentences are flagged: (20 - 0.1 · 80) / 20 turns / (0.8 - 0.1).
    assert (found.source, found.corrected_hpt_1) == ("calibration", round(0.6 / 0.7, 6))


def test_annotations_come_first_and_correct_share_and_count() -> None:
    turns = [
        turn("a", persona, spans, spans + 1 if persona < 8 else None)
        for persona in range(10)
        for spans in (0, 2)
    ]
    found, *_ = of(turns, known())
    assert (found.source, found.turns, found.annotated, found.weight) == ("annotations", 20, 16, 0.95)
    assert (found.hpt_1, found.corrected_hpt_1, found.hallucinated_turns) == (1.0, 2.0, 1.0)
    assert found.no_interval == (
        "a number at the end of its range has none; a number that is the same without each persona has none"
    )
    assert (found.sensitivity, found.measured) == (None, None)


def test_a_number_inside_of_its_range_that_does_not_vary_has_another_reason() -> None:
    found, *_ = of([turn("a", persona, spans, 1 - spans) for persona in range(8) for spans in (0, 1)])
    assert (found.corrected_hpt_1, found.hallucinated_turns) == (0.5, 0.5)
    assert found.no_interval == "a number that is the same without each persona has none"


def test_rates_give_no_interval_where_every_persona_has_the_same() -> None:
    found, *_ = of([turn("a", persona, spans) for persona in range(8) for spans in (0, 1)], known())
    assert (found.hpt_1, found.corrected_hpt_1) == (0.5, 0.5)
    assert (found.corrected_hpt_1_ci95, found.hallucinated_turns_ci95) == (None, None)
    assert found.no_interval == "a number that is the same without each persona has none"


def test_one_annotated_turn_is_too_few() -> None:
    turns = [*TEN, turn("a", 10, 1, 5)]
    assert of(turns, known())[0].source == "planted errors"
    assert of(turns)[0].not_corrected == "nobody knows"


def test_all_chatbots_are_corrected_by_annotations_where_each_is() -> None:
    annotated = [turn("a", persona, 1, 2) for persona in range(6)]
    bare = [turn("b", persona, 1) for persona in range(6)]
    assert [row.source for row in of([*annotated, *bare], known(), ["a", "b"])[:3]] == [
        "annotations",
        "planted errors",
        "planted errors",
    ]
    both = [*annotated, *(turn("b", persona, 1, 0) for persona in range(6))]
    assert [row.corrected_hpt_1 for row in of(both, known(), ["a", "b"])[:3]] == [2.0, 0.0, 1.0]


def test_each_depth_has_its_own_rows() -> None:
    turns = [turn("a", persona, depth, depth=depth) for persona in range(6) for depth in (0, 1)]
    found = [(row.chatbot, row.depth, row.turns, row.corrected_hpt_1) for row in of(turns, known())]
    assert found == [("a", None, 12, 0.5), (None, None, 12, 0.5), ("a", 0, 6, 0.0), (None, 0, 6, 0.0),
                     ("a", 1, 6, 1.125), (None, 1, 6, 1.125)]  # fmt: skip


@pytest.mark.parametrize(("spans", "share", "clipped"), [(0, 0.0, "below 0"), (2, 1.0, "above 1")])
def test_a_share_outside_of_0_and_1_is_clipped_and_said(spans: int, share: float, clipped: str) -> None:
    by = build_errors("calibration", [[10, 1, 40, 10, 8, 40]] * 10, [[50, 5, 10, 8, 10]] * 10)
    [found, *_] = of([turn("a", persona, spans) for persona in range(6)], by)
    assert (found.hallucinated_turns, found.clipped, found.hallucinated_turns_ci95) == (share, clipped, None)


def test_a_share_by_planted_errors_is_1_where_all_turns_are_flagged() -> None:
    [found, *_] = of([turn("a", persona, 2) for persona in range(6)], known())
    assert (found.hallucinated_turns, found.clipped, found.hallucinated_turns_ci95) == (1.0, None, None)
    assert found.no_interval == (
        "a number at the end of its range has none; a number that is the same without each persona has none"
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"twins_flagged": 8}, "sensitivity + specificity must be above 1"),
        ({"errors_flagged": 0}, "it flags 0% of what is wrong and 10% of what is clean"),
        ({"twin_spans": 9}, "it says no more where an error is than where there is none"),
    ],
)
def test_flags_that_do_not_tell_errors_from_clean_replies_correct_nothing(
    change: dict[str, int], reason: str
) -> None:
    [found, *_] = of(TEN, known(each=EACH.model_copy(update=change)))
    assert found.not_corrected is not None
    assert reason in found.not_corrected
    assert (found.source, found.hallucinated_turns, found.corrected_hpt_1) == (None, None, None)
    assert found.flagged_turns == 0.75


def test_nothing_scored_or_measured_has_no_numbers() -> None:
    assert [row.not_corrected for row in of([], known())] == ["no turn was scored with places"] * 2
    [found, *_] = of(TEN, known(groups=0))
    assert (found.not_corrected, found.flagged_turns) == (
        "nothing was scored of what it was measured on",
        0.75,
    )


def test_few_personas_groups_or_annotated_personas_have_no_interval() -> None:
    five = [turn("a", persona, 1) for persona in range(5)]
    assert of(five, known())[0].no_interval == "5 personas; 6 needed for an interval"
    assert of(TEN, known(groups=5))[0].no_interval == "5 measured groups; 6 needed for an interval"
    looked = [turn("a", persona, 1, 1 if persona < 5 else None) for persona in range(9)]
    assert of(looked)[0].no_interval == "5 annotated personas; 6 needed for an interval"


PEOPLE = LabelSource(annotator="person", guideline="abc", turns=20)
MODEL = LabelSource(annotator="model:m", guideline=None, turns=1)
STRICT = LabelSource(annotator="person", guideline="xyz", turns=5)
CHANGED = OtherWinner(detector="d", labels=STRICT, lowest="a", lowest_by_them="b")


def rows(**numbers: float | None) -> list[Correction]:
    return [
        Correction(chatbot=name, source="annotations", corrected_hpt_1=number)
        for name, number in numbers.items()
    ]


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        ([PEOPLE], "20 turns by people (guideline abc)."),
        ([MODEL], "1 turn by model m, not by people."),
        ([PEOPLE, MODEL], "20 turns by people (guideline abc) and 1 turn by model m, not only by people."),
    ],
)
def test_it_is_said_who_labelled_by_which_guideline(sources: list[LabelSource], said: str) -> None:
    assert [*describe_labels(sources, [])] == [f"Labelled: {said}"]


def test_labels_that_change_the_winner_are_warned_of() -> None:
    found = [*compare_labels({"d": rows(a=1, b=2)}, {STRICT: {"d": rows(a=3, b=2)}})]
    assert found == [CHANGED]
    assert [*describe_labels([], found)] == [
        "Warning: by d, corrected, a has the lowest HPT-1; with other labels of the same turns, 5 turns by "
        "people (guideline xyz), it would be b."
    ]


def test_labels_with_the_same_winner_or_a_single_chatbot_are_not() -> None:
    assert not [*compare_labels({"d": rows(a=1, b=2)}, {STRICT: {"d": rows(a=1.5, b=2)}})]
    assert find_lowest(rows(a=1, b=None)) is None
