"""The knowledge base of a scenario: passages that are searched by meaning."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hallulab.agents.machine.cache import locate_cache
from hallulab.agents.machine.progress_events import Listener, StepProgress, silent
from hallulab.agents.models.recording import Recording
from hallulab.agents.retrieval.batching import Batches
from hallulab.agents.retrieval.embedding import Embedder, SentenceEmbedder
from hallulab.agents.retrieval.vectors import VectorTable, ensure_built
from hallulab.scenarios.errors import ReplayMiss
from hallulab.scenarios.files.digest import digest
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.text.chunking import DEFAULT_CHUNKING, Chunking, cut_into_passages
from hallulab.scenarios.transcript import Passage

DEFAULT_EMBEDDING_MODEL = "all-minilm-l6-v2"
"""Small, good, and available without a model hub."""

SEARCH = "search"
"""Kind of the recording entries of searches."""

_LARGEST_BATCH = 32
"""Searches embedded together at most; larger batches gain little and delay the first search."""

_FORMAT = 1
"""Increase it when the format of the table on disk changes."""


class KnowledgeBase:
    """A `hallulab.scenarios.transcript.Retriever` by exact cosine similarity.

    The table of vectors is built when first needed and kept in the cache folder under a hash of its content.
    A recorded search loads neither model nor database, so a replayed run needs no weights and gives the same
    passages on every machine. A search that is not recorded is computed, also in a replay.

    Searches that come while another is computed are embedded together. The batch may change the seventh
    digit of a score, so scores are rounded to six digits; two passages that close may change places. Equal
    searches under way are computed once.

    Args:
        scenario: the scenario whose documents are searched.
        embedding_model: see `SentenceEmbedder`.
        recording: where searches are kept and looked up; None: one in memory.
        chunking: how documents are cut.
        embedder: makes the vectors instead of `embedding_model`.
        cache: cache folder; None: `locate_cache()`.
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
    ) -> None:
        self.passages: tuple[Passage, ...] = tuple(
            passage for document in scenario.documents for passage in cut_into_passages(document, chunking)
        )
        """All passages, in the order of the documents."""
        self._embedder = embedder or SentenceEmbedder(embedding_model, cache=cache, on_progress=self._tell)
        self.version = digest(
            {
                "format": _FORMAT,
                "passages": [[passage.id, passage.text] for passage in self.passages],
                "model": self._embedder.name,
                "chunking": chunking.model_dump(),
            }
        )
        """Hash of passages, embedding model and chunking: everything that a search depends on."""
        self.folder = (cache or locate_cache()) / "knowledge" / self.version
        """Where the table is, or will be."""
        self._by_id = {passage.id: passage for passage in self.passages}
        self._recording = Recording() if recording is None else recording
        self._on_progress: Listener = silent
        self._table: VectorTable | None = None
        # One thread, so that the first search builds the table and searches do not crowd the cores.
        self._searcher = ThreadPoolExecutor(max_workers=1, thread_name_prefix="knowledge")
        self._batches = Batches(self._nearest, self._searcher, _LARGEST_BATCH)
        self._under_way: dict[str, asyncio.Task[Sequence[tuple[str, float]]]] = {}

    def build(self, on_progress: Listener = silent) -> None:
        """Build the table now, unless it is there, and wait until it is.

        Args:
            on_progress: told how far downloading and building are.

        Raises:
            UsageError: the embedding model does not exist.
            OperationalError: the weights cannot be fetched, or the disk is full.
        """
        self._on_progress = on_progress
        self._searcher.submit(self._opened).result()

    def _tell(self, progress: StepProgress) -> None:
        self._on_progress(progress)

    async def search(self, query: str, k: int) -> tuple[Passage, ...]:
        """Return the `k` passages nearest to `query`, best first, ties by identifier; all if there are fewer.

        Raises:
            UsageError, OperationalError: as `build`, which the first search may call.
            ReplayMiss: the recording was changed.
        """
        if k < 1:
            raise ValueError(f"k is {k}; a search asks for at least one passage")
        key = digest([self.version, query, k])
        found: Sequence[tuple[str, float]] | None = self._recording.get(SEARCH, key)
        if found is None:
            if key not in self._under_way:
                task = asyncio.create_task(self._found(key, query, k))
                task.add_done_callback(lambda _: self._under_way.pop(key))
                self._under_way[key] = task
            # A cancelled caller must not cancel the search for the others that wait.
            found = await asyncio.shield(self._under_way[key])
        return self._scored(found)

    async def _found(self, key: str, query: str, k: int) -> Sequence[tuple[str, float]]:
        nearest = await asyncio.wrap_future(self._batches.submit((query, k)))
        answer: Sequence[tuple[str, float]] = self._recording.put(
            SEARCH, key, [list(pair) for pair in nearest]
        )
        return answer

    def _nearest(self, searches: Sequence[tuple[str, int]]) -> Sequence[Sequence[tuple[str, float]]]:
        table = self._opened()
        # The same query may come with several `k`.
        texts = list(dict.fromkeys(query for query, _ in searches))
        vectors = self._embedder.queries(texts)
        rows = [texts.index(query) for query, _ in searches]
        return table.nearest(vectors[rows], [k for _, k in searches])

    def _opened(self) -> VectorTable:
        if self._table is None:
            ensure_built(self.folder, self.passages, self._embedder, self._tell)
            self._table = VectorTable(self.folder)
        return self._table

    def _scored(self, found: Sequence[tuple[str, float]]) -> tuple[Passage, ...]:
        unknown = [name for name, _ in found if name not in self._by_id]
        if unknown:
            raise ReplayMiss(
                f"the recording {self._recording.source} says that a search found {unknown[0]!r}, which is "
                "no passage of the documents: it was changed. Restore it, or record again with --record."
            )
        return tuple(self._by_id[name].model_copy(update={"score": score}) for name, score in found)
