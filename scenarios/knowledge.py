"""The knowledge base of a scenario: passages, searched by the meaning of a query."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scenarios.cache import cache_dir
from scenarios.chunking import DEFAULT_CHUNKING, Chunking, passages
from scenarios.embedding import Embedder, SentenceEmbedder
from scenarios.pack import Scenario
from scenarios.recording import Recording, digest
from scenarios.steps import Listener, silent
from scenarios.transcript import Passage
from scenarios.vectors import VectorTable, ensure_built

DEFAULT_EMBEDDING_MODEL = "all-minilm-l6-v2"
"""Small, good, and to be had without a model hub."""

SEARCH = "search"
"""Kind of the entries that searches leave in a recording."""

_FORMAT = 1
"""Counts up when the table on disk changes its make."""


class KnowledgeBase:
    """A searchable `scenarios.transcript.Retriever`; cosine similarity, exact.

    The table of vectors is built when first needed and kept in the cache folder under a hash of its content.
    A search that the recording holds loads neither model nor database, so a replayed run needs no weights and
    gives the same passages on every machine. One that it does not hold is computed, also in a replay.

    Args:
        scenario: whose documents are searched.
        embedding_model: see `SentenceEmbedder`.
        recording: where searches are kept and looked up; None: one in memory.
        chunking: how documents are cut.
        embedder: makes the vectors in place of `embedding_model`.
        cache: cache folder; None: `cache_dir()`.
        on_progress: told how far downloading and building are.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        embedding_model: str = DEFAULT_EMBEDDING_MODEL,
        recording: Recording | None = None,
        chunking: Chunking = DEFAULT_CHUNKING,
        embedder: Embedder | None = None,
        cache: Path | None = None,
        on_progress: Listener = silent,
    ) -> None:
        self.passages: tuple[Passage, ...] = tuple(
            passage for document in scenario.documents for passage in passages(document, chunking)
        )
        """All passages, in the order of the documents."""
        self._embedder = embedder or SentenceEmbedder(embedding_model, cache=cache, on_progress=on_progress)
        self.version = digest(
            {
                "format": _FORMAT,
                "passages": [[passage.id, passage.text] for passage in self.passages],
                "model": self._embedder.name,
                "chunking": chunking.model_dump(),
            }
        )
        """Hash of passages, embedding model and chunking: all that a search depends on."""
        self.folder = (cache or cache_dir()) / "knowledge" / self.version
        """Where the table is, or will be."""
        self._by_id = {passage.id: passage for passage in self.passages}
        self._recording = Recording() if recording is None else recording
        self._on_progress = on_progress
        self._table: VectorTable | None = None
        # One thread: whoever comes first builds and opens the table, and searches do not crowd the cores.
        self._searcher = ThreadPoolExecutor(max_workers=1, thread_name_prefix="knowledge")

    def build(self) -> None:
        """Build the table now, unless it is there; returns when it is.

        Raises:
            UsageError: the embedding model does not exist.
            OperationalError: weights cannot be had, or the disk is full.
        """
        self._searcher.submit(self._opened).result()

    async def search(self, query: str, k: int) -> tuple[Passage, ...]:
        """The `k` passages nearest to `query`, best first, ties by identifier; all when there are fewer.

        Raises:
            UsageError, OperationalError: like `build`, which the first search may have to do.
        """
        if k < 1:
            raise ValueError(f"k is {k}; a search asks for at least one passage")
        key = digest([self.version, query, k])
        found = self._recording.get(SEARCH, key)
        if found is None:
            nearest = await asyncio.get_running_loop().run_in_executor(
                self._searcher, self._nearest, query, k
            )
            found = self._recording.put(SEARCH, key, [list(pair) for pair in nearest])
        return self._scored(found)

    def _nearest(self, query: str, k: int) -> Sequence[tuple[str, float]]:
        return self._opened().nearest(self._embedder.query(query), k)

    def _opened(self) -> VectorTable:
        if self._table is None:
            ensure_built(self.folder, self.passages, self._embedder, self._on_progress)
            self._table = VectorTable(self.folder)
        return self._table

    def _scored(self, found: Sequence[tuple[str, float]]) -> tuple[Passage, ...]:
        return tuple(self._by_id[name].model_copy(update={"score": score}) for name, score in found)
