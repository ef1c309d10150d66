"""Documents' vectors travel to machines that lack them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hallulab.agents.retrieval.knowledge import KnowledgeBase
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.simulator.engine.executors import place_vectors, read_vectors
from hallulab.testing.tiny_pack import HashedWords, make_pack

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


class Unasked(HashedWords):
    """Embeds no documents."""

    def passages(self, texts: Sequence[str]) -> NDArray[numpy.float32]:
        raise AssertionError(texts)


@pytest.fixture
def pack(tmp_path: Path) -> Scenario:
    return load_scenario(str(make_pack(tmp_path / "pack")))


def test_where_vectors_were_placed_a_search_finds_the_same_and_embeds_no_documents(
    pack: Scenario, tmp_path: Path
) -> None:
    here = KnowledgeBase(pack, embedder=HashedWords(), cache=tmp_path / "here")
    there = KnowledgeBase(pack, embedder=Unasked(), cache=tmp_path / "there")
    found = asyncio.run(here.search("refund", 2))
    vectors = read_vectors(here.folder)
    assert vectors is not None
    place_vectors(there.folder, vectors)
    assert asyncio.run(there.search("refund", 2)) == found


def test_vectors_that_are_there_stay(tmp_path: Path) -> None:
    place_vectors(tmp_path / "table", {"data/one": b"1"})
    place_vectors(tmp_path / "table", {"data/one": b"2"})
    assert (tmp_path / "table/data/one").read_bytes() == b"1"


def test_without_vectors_none_travel(tmp_path: Path) -> None:
    assert read_vectors(tmp_path / "missing") is None
