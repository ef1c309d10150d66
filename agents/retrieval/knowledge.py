"""The knowledge base of a scenario: passages, searched by the meaning of a question.

The reformulated query (HalluDetect section 3.1, D.1): a question that can be understood alone.
Chatbots and HalluDetect use the same prompt (D.6). The request depends on the dialogue and the model only
(temperature 0, a fixed seed), so all requests about one dialogue share one answer.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hallulab.agents.machine.cache import (
    CACHE_VARIABLE,
    Listener,
    StepProgress,
    building,
    compute_sha256,
    is_whole,
    locate_cache,
    replacing,
    silent,
    write_checksums,
)
from hallulab.agents.models.answers import USED_UP, UnparseableAnswer
from hallulab.agents.models.prompt import Prompt, format_dialogue, load_prompt
from hallulab.agents.models.recording import Recording
from hallulab.agents.models.session import Session
from hallulab.agents.retrieval.embeddings import Batches, Embedder, SentenceEmbedder
from hallulab.agents.retrieval.word_search import SEARCHED_BY_WORDS, WordSearch
from hallulab.scenarios.errors import NO_HANDLE, OperationalError, ReplayMiss
from hallulab.scenarios.extras import require_extra
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.text.chunking import DEFAULT_CHUNKING, Chunking, cut_into_passages
from hallulab.scenarios.transcript import Message, Passage

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

_log = logging.getLogger(__name__)

_TABLE = "passages"
_BATCH = 32
_SCORE_DIGITS = 6
_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)")
"""LanceDB's messages have it behind paths so long that it would be cut off."""


def ensure_built(
    folder: Path, passages: Sequence[Passage], embedder: Embedder, on_progress: Listener
) -> None:
    """Embed `passages` and write them to `folder` as a table, unless it holds one.

    One process builds; others wait for it. The folder appears when it is whole. A damaged one is built again.

    Args:
        folder: its name identifies the content.
        passages: the table's rows; at least one.

    Raises:
        OperationalError: the disk is full, or the weights cannot be fetched.
    """
    if _is_intact(folder):
        return
    with building(folder, on_progress):
        if not _is_intact(folder):
            with replacing(folder) as partial:
                _write(partial, passages, _embed(passages, embedder, on_progress))
                files = [path for path in partial.rglob("*") if path.is_file()]
                write_checksums(
                    partial, {path.relative_to(partial).as_posix(): compute_sha256(path) for path in files}
                )


def _is_intact(folder: Path) -> bool:
    """Return whether the table is there as written. Damage is no error, because the table can be rebuilt."""
    try:
        return is_whole(folder)
    except OperationalError:
        return False


def _embed(passages: Sequence[Passage], embedder: Embedder, on_progress: Listener) -> NDArray[numpy.float32]:
    import numpy

    batches = []
    for start in range(0, len(passages), _BATCH):
        _tell(on_progress, start, len(passages))
        batches.append(embedder.passages([passage.text for passage in passages[start : start + _BATCH]]))
    _tell(on_progress, len(passages), len(passages))
    return numpy.concatenate(batches).astype(numpy.float32, copy=False)


def _tell(on_progress: Listener, done: int, total: int) -> None:
    on_progress(
        StepProgress(step="embedding the knowledge documents", done=done, total=total, unit="passages")
    )


def _write(folder: Path, passages: Sequence[Passage], vectors: NDArray[numpy.float32]) -> None:
    import lancedb
    import pyarrow

    table = pyarrow.table(
        {
            "id": [passage.id for passage in passages],
            "document": [passage.document for passage in passages],
            "text": [passage.text for passage in passages],
            "vector": pyarrow.FixedSizeListArray.from_arrays(
                pyarrow.array(vectors.reshape(-1)), vectors.shape[1]
            ),
        }
    )
    with _lance_errors("write", folder.parent):
        lancedb.connect(str(folder)).create_table(_TABLE, table)


@contextmanager
def _lance_errors(action: str, folder: Path) -> Iterator[None]:
    """Turn LanceDB's errors (full disk, lost file, no file handle left) into an OperationalError."""
    try:
        yield
    except BaseException as error:
        # A panic of its Rust code is no `Exception`, and its class has no public name.
        if not isinstance(error, RuntimeError) and type(error).__name__ != "PanicException":
            raise
        said = str(error)
        known = _SYSTEM_ERROR.search(said)
        if known and int(known[1]) in (errno.EMFILE, errno.ENFILE):
            raise OperationalError(f"cannot {action} {folder}: {NO_HANDLE}") from error
        reason = os.strerror(int(known[1])) if known else said.partition(", /")[0]
        raise OperationalError(
            f"cannot {action} {folder} ({reason}). Make room, or set {CACHE_VARIABLE} to a folder with room, "
            "and start again."
        ) from error


class VectorTable:
    """A table written by `ensure_built`.

    It has no approximate index: every vector is compared, so the answer is exact and the same everywhere.
    """

    def __init__(self, folder: Path) -> None:
        import lancedb

        self._folder = folder
        with _lance_errors("read", folder):
            self._table: Any = lancedb.connect(str(folder)).open_table(_TABLE)
            self._rows = int(self._table.count_rows())

    def nearest(
        self, vectors: NDArray[numpy.float32], counts: Sequence[int]
    ) -> list[list[tuple[str, float]]]:
        """Return identifier and cosine of each vector's nearest rows: highest first, ties by identifier.

        Cosines are rounded to 6 decimals, because further digits differ between machines.

        Args:
            vectors: the queries, shape (vectors, dimensions).
            counts: number of rows for each vector, at least one.
        """
        found: list[list[tuple[str, float]]] = [[] for _ in counts]
        unsettled = list(range(len(counts)))
        wanted = max(counts, default=0) + 1
        while unsettled:
            limit = min(wanted, self._rows)
            for index, ranked in zip(unsettled, self._ranked(vectors[unsettled], limit), strict=True):
                found[index] = ranked
            # A tie at the end of the fetched rows could hide a smaller identifier.
            unsettled = [
                index
                for index in unsettled
                # Of a vector of zeros no row is near.
                if limit < self._rows
                and found[index]
                and found[index][counts[index] - 1][1] <= found[index][-1][1]
            ]
            wanted *= 2
        return [ranked[:count] for ranked, count in zip(found, counts, strict=True)]

    def _ranked(self, vectors: NDArray[numpy.float32], limit: int) -> list[list[tuple[str, float]]]:
        """Return the `limit` nearest rows of each vector. One query serves all, as each query costs much."""
        query = self._table.search(vectors).distance_type("cosine").limit(limit)
        with _lance_errors("read", self._folder):
            rows = query.select(["id", "_distance"]).to_arrow().to_pydict()
        ranked: list[list[tuple[str, float]]] = [[] for _ in vectors]
        for index, name, distance in zip(
            rows.get("query_index", [0] * len(rows["id"])), rows["id"], rows["_distance"], strict=True
        ):
            ranked[index].append((name, round(1.0 - float(distance), _SCORE_DIGITS)))
        return [sorted(pairs, key=lambda pair: (-pair[1], pair[0])) for pairs in ranked]


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
        embedding_model: see `SentenceEmbedder`.
        recording: where searches are kept and looked up; None: one in memory.
        embedder: makes the vectors instead of `embedding_model`.
        cache: cache folder; None: `locate_cache()`.
        by_words: whether a search that is not recorded is one by words (`WordSearch`), for machines that
            cannot search by vectors.
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
        by_words: bool = False,
    ) -> None:
        self.passages: tuple[Passage, ...] = tuple(
            passage for document in scenario.documents for passage in cut_into_passages(document, chunking)
        )
        """All passages, in the order of the documents."""
        self._words, self._is_told = (WordSearch(scenario, chunking=chunking) if by_words else None), False
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
            UsageError: the embedding model does not exist, or the extra `local` is not installed.
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
        if self._words is not None:
            if not self._is_told:
                self._is_told = True
                _log.warning("%s.", SEARCHED_BY_WORDS)
            return [self._words.rank(query, k) for query, k in searches]
        table = self._opened()
        # The same query may come with several `k`.
        texts = list(dict.fromkeys(query for query, _ in searches))
        vectors = self._embedder.queries(texts)
        rows = [texts.index(query) for query, _ in searches]
        return table.nearest(vectors[rows], [k for _, k in searches])

    def _opened(self) -> VectorTable:
        if self._table is None:
            require_extra("local", "lancedb", use="Search by vectors")
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


QUERY_TOKENS = 60

_FENCE = re.compile(r"^[^\S\n]*```[\w-]*[^\S\n]*$", re.MULTILINE)
_LABEL = re.compile(
    r"\A(?:[\s*_#>]*(?:user|assistant|query|question|rewritten[^:\n]*)[*_ ]*:[*_ ]*)+", re.IGNORECASE
)


def load_reformulation_prompt() -> Prompt:
    """Return the prompt file, for components whose version depends on it."""
    return load_prompt("hallulab.agents.retrieval", "reformulation")


async def reformulate(session: Session, history: Sequence[Message], question: str) -> str:
    """Rewrite `question` as a query that is understood without `history` (oldest first). One call.

    Raises:
        UnparseableAnswer: the model wrote nothing.
        ModelError: no answer.
    """
    conversation = format_dialogue([*history, Message(role="user", text=question)])
    answer = await replace(session, seed=0).text(
        "reformulate", load_reformulation_prompt().fill(conversation=conversation), max_tokens=QUERY_TOKENS
    )
    query = tidy_query(answer)
    if not query and not answer and session.calls[-1].finish_reason == "length":
        raise UnparseableAnswer(f"reformulate: the model gave nothing: {USED_UP}.")
    if not query:
        raise UnparseableAnswer(f"reformulate: the model turned the message to nothing: {answer[:80]!r}.")
    return query


def tidy_query(text: str) -> str:
    """Return the first line of a model's query, without labels, fences and outer quotes; may be empty."""
    line = _LABEL.sub("", _FENCE.sub("", text).strip()).strip().split("\n", 1)[0].strip()
    if len(line) > 1 and line[0] == line[-1] and line[0] in "\"'`":
        line = line[1:-1].strip()
    return line
