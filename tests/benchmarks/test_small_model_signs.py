"""Signs of a small model in both models' recorded answers (docs/studies/published-methods.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from benchmarks.capable_model import Judging, judge
from benchmarks.detectors_table.samples import KEPT, SEED, sample
from hallulab.agents.models.recording import Recording
from hallulab.agents.serving.catalogue import DEFAULT_CPU_MODEL
from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.registry import make_detector
from hallulab.scenarios.transcript import Judgement
from hallulab.simulator.bench.evaluate import evaluate
from hallulab.simulator.bench.split import choose_replies
from hallulab.simulator.engine.models import open_pool
from hallulab.simulator.metrics.methods import find_signs
from hallulab.simulator.records.experiment_file import load_experiment
from tests.places import ROOT

READINGS = ROOT / "tests" / "recordings" / "readings.jsonl.gz"
"""The default model's answers about five hallucinated and five clean replies of the data set gold."""


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
    [("metarag", {"agrees with opposites": (12, 19)}), ("halludetect", {"filters nothing": (13, 14)})],
)
async def test_the_recorded_1_5b_model_shows_the_signs(
    kind: str, counts: dict[str, tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    experiment = load_experiment(None, {"model": DEFAULT_CPU_MODEL})
    gold = sample("gold", KEPT, 0)
    of_each = [
        choose_replies([reply for reply in gold if reply.hallucinated is wrong], 5, SEED)
        for wrong in (True, False)
    ]
    async with open_pool(experiment, Recording.replay(READINGS)) as pool:
        await pool.check()
        context = DetectorContext(models=pool, seed=SEED, options={"reading": "word"})
        detector = make_detector(kind, kind, context)
        found = await evaluate(detector, [*of_each[0], *of_each[1]], concurrency=4)
    assert count(found.judgements) == counts


@pytest.mark.parametrize(
    ("judging", "counts"),
    [
        (Judging("gold", "a model", "gold", "metarag", limit=16), {"agrees with opposites": (0, 51)}),
        (Judging("gold", "a model", "gold", "halludetect"), {"filters nothing": (71, 88)}),
    ],
    ids=["metarag", "halludetect"],
)
async def test_the_recorded_strong_model_does_not(
    judging: Judging, counts: dict[str, tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert count((await judge(judging)).judgements) == counts
