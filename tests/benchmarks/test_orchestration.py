"""The runner beside a bare client, in short."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.orchestration import against_stub
from hallulab.testing.tiny_pack import HashedWords


async def test_the_runner_is_measured_beside_a_bare_client(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HALLULAB_CACHE", str(tmp_path))
    monkeypatch.setattr(
        "hallulab.agents.retrieval.knowledge.SentenceEmbedder", lambda name, **_: HashedWords(name)
    )
    found = await against_stub(personas=1)
    assert found.keys() == {"calls", "calls_per_second", "ratio_to_bare_client"}
    assert found["calls"] > 30
