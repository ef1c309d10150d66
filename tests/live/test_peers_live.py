"""Each peer in its real environment (made from the package index, some gigabytes), on a tiny random model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.peers.detector import (
    HhemDetector,
    LettuceDetectDetector,
    MiniCheckDetector,
    PeerDetector,
    RefCheckerDetector,
)
from hallulab.scenarios.transcript import Judgement, Passage
from hallulab.scenarios.turn_views import TurnView
from hallulab.testing.scripted import last_user, scripted_pool
from tests.detectors.peers.tiny_models import tiny_hhem, tiny_lettucedetect, tiny_minicheck, tiny_nli

pytestmark = pytest.mark.live

VIEW = TurnView(
    question="Is it free?",
    passages=(Passage(id="a#0", document="a", text="The pool opens at 6. Tickets are free."),),
    reply="The pool opens at 7. Tickets are free.",
)


def served(body: dict[str, Any]) -> str:
    """Two triplets, of which the evidence entails one."""
    asked = last_user(body)
    if "Entailment" in asked:
        return "Entailment" if "'free'" in asked else "Contradiction"
    return '("pool", "opens at", "7")\n("tickets", "are", "free")'


@contextmanager
def detector(kind: type[PeerDetector], **options: Any) -> Iterator[PeerDetector]:
    pool, _ = scripted_pool(served)
    made = kind("peer", DetectorContext(models=pool, options=options))
    try:
        yield made
    finally:
        made.close()


async def judged(kind: type[PeerDetector], **options: Any) -> Judgement:
    with detector(kind, **options) as made:
        judgement = await made.detect(VIEW)
    assert judgement.error is None
    return judgement


async def test_lettucedetect(tmp_path: Path) -> None:
    tiny_lettucedetect(tmp_path)
    judgement = await judged(LettuceDetectDetector, weights=str(tmp_path))
    assert [unit.text for unit in judgement.units] == VIEW.reply.split()
    assert judgement.score == max(unit.score or 0.0 for unit in judgement.units)


async def test_hhem(tmp_path: Path) -> None:
    tiny_hhem(tmp_path / "hhem", tmp_path / "t5")
    judgement = await judged(HhemDetector, weights=str(tmp_path / "hhem"), sentences=True)
    assert [unit.text for unit in judgement.units] == ["The pool opens at 7.", "Tickets are free."]


@pytest.mark.parametrize("kind", ["t5", "roberta"])
async def test_minicheck(kind: str, tmp_path: Path) -> None:
    tiny_minicheck(tmp_path, kind)
    judgement = await judged(MiniCheckDetector, weights=str(tmp_path))
    assert [unit.text for unit in judgement.units] == ["The pool opens at 7.", "Tickets are free."]


async def test_refchecker() -> None:
    judgement = await judged(RefCheckerDetector)
    assert [(unit.text, unit.score) for unit in judgement.units] == [
        ("pool | opens at | 7", 1.0),
        ("tickets | are | free", 0.0),
    ]
    assert [call.purpose for call in judgement.calls] == ["peer.extract", "peer.check", "peer.check"]


async def test_refchecker_with_an_nli_model(tmp_path: Path) -> None:
    tiny_nli(tmp_path, ("entailment", "neutral", "contradiction"))
    judgement = await judged(RefCheckerDetector, weights=str(tmp_path))
    assert [unit.details["label"] for unit in judgement.units] == ["Entailment", "Entailment"]
    assert [call.purpose for call in judgement.calls] == ["peer.extract"]


async def test_refchecker_refuses_an_nli_model_with_labels_in_another_order(tmp_path: Path) -> None:
    tiny_nli(tmp_path, ("contradiction", "entailment", "neutral"))
    with detector(RefCheckerDetector, weights=str(tmp_path)) as made:
        judgement = await made.detect(VIEW)
    assert judgement.outcome == "failed"
    assert "labels are contradiction, entailment, neutral; RefChecker reads them" in (judgement.error or "")
