"""Whichever answer a recording lacks, the detector does not judge without it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.agents.models.recording import Recording
from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.registry import make_detector
from hallulab.scenarios.errors import ReplayMiss
from hallulab.scenarios.transcript import Judgement
from hallulab.scenarios.turn_views import TurnView
from hallulab.testing.scripted import Script, scripted_pool
from tests.detectors.halludetect import test_detector as test_halludetect
from tests.detectors.halludetect import test_mixture as test_halludetect_mixture
from tests.detectors.metarag import test_detector as test_metarag

CALL = "Call 555-0134 for tickets."
LISTS = test_halludetect.words(
    [test_halludetect.rough(CALL)] * 3,
    test_halludetect.fine(5),
    json.dumps({"hallucinations": [{"number": 1, "reason": "No number in the documents."}]}),
)


async def judged(kind: str, options: dict[str, Any], script: Script, recording: Recording) -> Judgement:
    pool, _ = scripted_pool(script, recording=recording)
    view: TurnView = {"halludetect": test_halludetect, "metarag": test_metarag}[kind].VIEW
    detector = make_detector(kind, kind, DetectorContext(models=pool, options=options))
    try:
        return await detector.detect(view)
    finally:
        recording.close()


@pytest.mark.parametrize(
    ("kind", "options", "script"),
    [
        ("halludetect", {"reading": "probability"}, test_halludetect.probabilities),
        ("halludetect", {"reading": "mixture"}, test_halludetect_mixture.stated),
        ("halludetect", {"reading": "word"}, LISTS),
        ("metarag", {"reading": "probability"}, test_metarag.Model()),
        ("metarag", {"reading": "word"}, test_metarag.Model(word=True)),
    ],
)
async def test_no_verdict_is_made_without_an_answer(
    kind: str, options: dict[str, Any], script: Script, tmp_path: Path
) -> None:
    whole = tmp_path / "whole.jsonl"
    assert (await judged(kind, options, script, Recording.record(whole))).outcome == "scored"
    lines = whole.read_text().splitlines(keepends=True)
    assert len(lines) >= 2
    for missing in range(len(lines)):
        stale = tmp_path / "stale.jsonl"
        stale.write_text("".join(lines[:missing] + lines[missing + 1 :]))
        with pytest.raises(ReplayMiss, match=r"stale\.jsonl has no answer to this request"):
            await judged(kind, options, script, Recording.replay(stale))
