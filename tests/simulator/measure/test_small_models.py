"""Signs of a model that is too small for printed words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks import readings
from benchmarks.capable_model import Judging, judge
from hallulab.agents.models.recording import Recording
from hallulab.agents.serving.catalogue import DEFAULT_CPU_MODEL
from hallulab.scenarios.transcript import Judgement, Unit
from hallulab.simulator.experiment.experiment_file import load_experiment
from hallulab.simulator.experiment.models import open_pool
from hallulab.simulator.measure.small_models import SignCount, find_signs
from tests.places import ROOT


def fact(**said: str) -> Unit:
    """A factoid whose variants were verified by a printed word each."""
    details: dict[str, Any] = {}
    for name, word in said.items():
        key = name.replace("_", " ")
        details |= {key: "a variant", f"{key} penalty": 0.0, f"{key} P({word})": 1.0}
    return Unit(text="x", score=0.5, details=details)


@pytest.mark.parametrize(
    ("said", "met"),
    [
        ({"synonym_1": "YES", "antonym_1": "NO"}, False),
        ({"synonym_1": "NOT SURE", "antonym_1": "YES"}, False),
        ({"synonym_1": "YES", "synonym_2": "NO", "antonym_1": "NO", "antonym_2": "YES"}, True),
    ],
)
def test_a_fact_whose_rewording_and_opposite_are_affirmed_is_a_sign(said: dict[str, str], met: bool) -> None:
    assert list(find_signs([fact(**said)])) == [("agrees with opposites", met)]


@pytest.mark.parametrize(("severity", "met"), [(3.0, False), (4.0, True)])
def test_an_objection_that_the_filter_keeps_is_a_sign(severity: float, met: bool) -> None:
    graded = Unit(text="x", score=severity, details={"votes": 1.0, "refiner": "It matters."})
    assert list(find_signs([graded])) == [("filters nothing", met)]


def test_probabilities_and_rules_are_no_sign() -> None:
    units = (
        Unit(text="x", score=0.5, details={"synonym 1 P(YES)": 0.7, "antonym 1 P(YES)": 0.6}),
        Unit(text="x", score=1.0, details={"votes": 1.0, "rule": "repeats what the user said"}),
        Unit(text="x", details={"error": "no answer"}),
    )
    assert list(find_signs(units)) == []


def test_the_1_5b_model_looks_small_and_the_strong_one_does_not() -> None:
    """The counts that were measured (docs/methods.md)."""
    assert SignCount(met=10, seen=19).is_small("agrees with opposites")
    assert not SignCount(met=0, seen=212).is_small("agrees with opposites")
    assert SignCount(met=13, seen=14).is_small("filters nothing")
    assert not SignCount(met=75, seen=88).is_small("filters nothing")
    assert not SignCount(met=92, seen=191).is_small("filters nothing")


def test_few_answers_tell_nothing() -> None:
    assert not SignCount(met=9, seen=9).is_small("agrees with opposites")
    assert not SignCount(met=13, seen=13).is_small("filters nothing")


def count(judgements: Sequence[Judgement]) -> dict[str, tuple[int, int]]:
    """How often each sign was met, and could have been."""
    seen, met = Counter[str](), Counter[str]()
    for judgement in judgements:
        for sign, is_met in find_signs(judgement.units):
            seen[sign] += 1
            met[sign] += is_met
    return {sign: (met[sign], seen[sign]) for sign in seen}


@pytest.mark.parametrize(
    ("kind", "counts"),
    [
        ("metarag", {"agrees with opposites": (10, 19)}),
        ("halludetect", {"filters nothing": (13, 14)}),
    ],
)
async def test_the_recorded_1_5b_model_shows_the_signs(
    kind: str, counts: dict[str, tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    experiment = load_experiment(None, {"model": DEFAULT_CPU_MODEL})
    async with open_pool(experiment, Recording.replay(readings.RECORDING)) as pool:
        await pool.check()
        found = await readings.measured(pool, kind, "word")
    assert count(found.judgements) == counts


@pytest.mark.parametrize(
    ("judging", "counts"),
    [
        (
            Judging("gold", "a model", "gold", "metarag", limit=16),
            {"agrees with opposites": (0, 50)},
        ),
        (Judging("gold", "a model", "gold", "halludetect"), {"filters nothing": (75, 88)}),
    ],
    ids=["metarag", "halludetect"],
)
async def test_the_recorded_strong_model_does_not(
    judging: Judging, counts: dict[str, tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert count((await judge(judging)).judgements) == counts
