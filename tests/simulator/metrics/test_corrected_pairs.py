"""Two chatbots' corrected numbers compared by a t test over personas."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hallulab.simulator.metrics.corrected_pairs import CorrectedPair, find_best
from hallulab.simulator.metrics.corrections import compare_chatbots
from hallulab.simulator.metrics.judged_turns import JudgedTurn, sum_judged_turns
from hallulab.simulator.metrics.known_errors import build_errors
from hallulab.simulator.statistics.prevalence import DetectorErrors
from tests.simulator.metrics.test_corrections import known, turn


def compared(
    turns: Sequence[JudgedTurn], by: DetectorErrors | None = None, chatbots: Sequence[str] = ("a", "b")
) -> list[CorrectedPair]:
    return compare_chatbots(sum_judged_turns(turns), chatbots, by)


def test_after_a_single_hallucination_no_chatbot_is_best() -> None:
    """Its persona differs by 1/2, five by 0: the error of the difference is 1/12, too."""
    turns = [
        turn(name, persona, 0, int(name == "b" and persona == 0 and index == 0))
        for name in "ab"
        for persona in range(6)
        for index in range(2)
    ]
    [pair] = compared(turns)
    assert (pair.a, pair.b, pair.personas, pair.difference) == ("a", "b", 6, round(-1 / 12, 6))
    assert pair.p_holm == pytest.approx(0.363217, abs=1e-6)
    assert pair.ci95 == pytest.approx((-0.297548, 0.130882), abs=1e-6)
    assert find_best([pair]) is None


def test_a_chatbot_that_is_lower_with_most_personas_is_best() -> None:
    turns = [
        turn(name, persona, 0, more + persona % 3 * more)
        for persona in range(12)
        for name, more in (("a", 0), ("b", 1))
    ]
    [pair] = compared(turns)
    assert (pair.difference, pair.personas) == (-2.0, 12)
    assert pair.p_holm == pytest.approx(6e-6, abs=1e-6)
    assert find_best([pair]) == ("a", pair.p_holm)


def test_measured_rates_scale_the_difference_and_widen_its_interval() -> None:
    """Two groups of rates differ, so an error adds between 0.7 and 0.9 spans: 8 / 0.8 = 1.25 on average."""
    turns = [
        turn(name, persona, spans + persona % 2 * spans)
        for persona in range(12)
        for name, spans in (("a", 0), ("b", 2))
    ]
    [certain], [unsure] = (
        compared(turns, build_errors("planted errors", [[10, 1, 40, 10, 8, 40]] * 10, units))
        for units in ([[40, 4, 10, 12, 40]] * 10, [[40, 4, 10, 11, 40], [40, 4, 10, 13, 40]] * 5)
    )
    assert certain.difference == unsure.difference == -3.75
    assert certain.ci95 is not None
    assert unsure.ci95 is not None
    assert unsure.ci95[0] < certain.ci95[0] < certain.ci95[1] < unsure.ci95[1]


def test_the_same_difference_with_every_persona_is_no_test() -> None:
    turns = [turn(name, persona, 0, int(name == "b")) for persona in range(6) for name in "ab"]
    [pair] = compared(turns)
    assert (pair.difference, pair.ci95, pair.p_holm) == (-1.0, None, None)


def test_few_personas_or_different_sources_are_not_compared() -> None:
    assert compared([turn(name, persona, 1, 1) for persona in range(5) for name in "ab"]) == []
    assert compared([turn(name, persona, 1) for persona in range(5) for name in "ab"], known()) == []
    assert compared([turn(name, persona, 1) for persona in range(8) for name in "ab"]) == []
    annotated = [turn("a", persona, 1, 1) for persona in range(8)]
    assert compared([*annotated, *(turn("b", persona, 1) for persona in range(8))], known()) == []
    few_groups = [turn(name, persona, 1) for persona in range(8) for name in "ab"]
    assert compared(few_groups, known(groups=5)) == []


def pair(a: str, b: str, difference: float, p_holm: float | None) -> CorrectedPair:
    return CorrectedPair(a=a, b=b, personas=9, difference=difference, ci95=None, p_holm=p_holm)


def test_the_best_is_lower_than_every_other_one() -> None:
    two = [pair("a", "b", 1.0, 0.01), pair("b", "c", -1.0, 0.04)]
    assert find_best([*two, pair("a", "c", 0.1, 0.9)]) == ("b", 0.04)
    assert find_best([pair("a", "b", 1.0, 0.01), pair("b", "c", -1.0, 0.06)]) is None
    assert find_best([]) is None
