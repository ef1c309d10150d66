"""Searches that are under way at the same time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest
from numpy.typing import NDArray

from hallulab.agents.retrieval.knowledge import KnowledgeBase
from hallulab.scenarios.errors import OperationalError
from hallulab.scenarios.transcript import Passage
from hallulab.testing.tiny_pack import HashedWords
from tests.agents.retrieval.tiny_knowledge import knowledge


async def test_concurrent_searches_build_once(tmp_path: Path) -> None:
    embedder = HashedWords()
    base = knowledge(tmp_path, embedder)
    await asyncio.gather(*(base.search(f"fee {number}", 1) for number in range(8)))
    assert len(embedder.batches) == 1
    asked = sorted(text for texts in embedder.asked for text in texts)
    assert asked == [f"fee {number}" for number in range(8)]


class Held(HashedWords):
    """Waits inside the first call for queries until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.release = threading.Event(), threading.Event()

    def queries(self, texts: Sequence[str]) -> NDArray[numpy.float32]:
        self.entered.set()
        assert self.release.wait(120)
        return super().queries(texts)


async def searching(base: KnowledgeBase, embedder: Held, query: str) -> asyncio.Task[tuple[Passage, ...]]:
    """A search of which the embedder holds the thread."""
    search = asyncio.create_task(base.search(query, 1))
    assert await asyncio.to_thread(embedder.entered.wait, 30)
    return search


async def started(*searches: Coroutine[Any, Any, tuple[Passage, ...]]) -> list[asyncio.Task[Any]]:
    """Searches that wait for the thread."""
    tasks = [asyncio.create_task(search) for search in searches]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


async def test_searching_does_not_block_the_event_loop(tmp_path: Path) -> None:
    embedder = Held()
    search = await searching(knowledge(tmp_path, embedder), embedder, "fee")
    embedder.release.set()
    assert len(await search) == 1


async def test_searches_that_come_while_one_is_computed_are_embedded_together(tmp_path: Path) -> None:
    embedder = Held()
    base = knowledge(tmp_path, embedder)
    first = await searching(base, embedder, "fee")
    others = await started(
        *(base.search(query, k) for query, k in [("two years", 2), ("mediator", 1), ("two years", 3)])
    )
    embedder.release.set()
    found = await asyncio.gather(first, *others)
    assert embedder.asked == [["fee"], ["two years", "mediator"]]
    assert [[passage.document for passage in passages] for passages in found] == [
        ["fees"],
        ["limitation", "fees"],
        ["mediation"],
        ["limitation", "fees", "mediation"],
    ]


async def test_a_batch_is_not_larger_than_32(tmp_path: Path) -> None:
    embedder = Held()
    base = knowledge(tmp_path, embedder)
    first = await searching(base, embedder, "fee")
    others = await started(*(base.search(f"fee {number}", 1) for number in range(40)))
    embedder.release.set()
    await asyncio.gather(first, *others)
    assert [len(texts) for texts in embedder.asked] == [1, 32, 8]


async def test_a_search_in_a_batch_finds_what_it_finds_alone(tmp_path: Path) -> None:
    queries = ["fee of rupees", "years", "mediator", "complaint", "words of no document"]
    alone = [await knowledge(tmp_path).search(query, 2) for query in queries]
    embedder = Held()
    base = knowledge(tmp_path, embedder)
    first = await searching(base, embedder, "fee")
    together = await started(*(base.search(query, 2) for query in queries))
    embedder.release.set()
    assert await asyncio.gather(*together) == alone
    await first


async def test_equal_searches_under_way_are_computed_once(tmp_path: Path) -> None:
    embedder = Held()
    base = knowledge(tmp_path, embedder)
    first = await searching(base, embedder, "fee")
    others = await started(*(base.search("fee", 1) for _ in range(5)))
    embedder.release.set()
    assert set(await asyncio.gather(first, *others)) == {await first}
    assert embedder.asked == [["fee"]]


async def test_an_error_reaches_all_that_wait_and_is_not_kept(tmp_path: Path) -> None:
    class Failing(Held):
        def queries(self, texts: Sequence[str]) -> NDArray[numpy.float32]:
            found = super().queries(texts)
            if len(self.asked) == 2:
                raise OperationalError("no weights")
            return found

    embedder = Failing()
    base = knowledge(tmp_path, embedder)
    first = await searching(base, embedder, "fee")
    others = await started(*(base.search(query, 1) for query in ["two years", "mediator", "mediator"]))
    embedder.release.set()
    assert len(await first) == 1
    failed = await asyncio.gather(*others, return_exceptions=True)
    assert [str(error) for error in failed] == ["no weights"] * 3
    assert [passage.id for passage in await base.search("mediator", 1)] == ["mediation#0"]


async def test_a_cancelled_search_leaves_the_others(tmp_path: Path) -> None:
    embedder = Held()
    base = knowledge(tmp_path, embedder)
    first = await searching(base, embedder, "fee")
    waiting, same = await started(base.search("mediator", 1), base.search("mediator", 1))
    for search in (first, waiting):
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search
    embedder.release.set()
    assert [passage.id for passage in await same] == ["mediation#0"]
    assert embedder.asked == [["fee"], ["mediator"]]
