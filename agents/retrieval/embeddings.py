"""Embed texts as vectors, in batches, and group documents by their vectors into topics."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from hallulab.agents.machine.cache import Listener, silent
from hallulab.agents.machine.weights import EMBEDDING_MODELS, locate_embedding_model
from hallulab.scenarios.errors import OperationalError
from hallulab.scenarios.extras import require_extra

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


class Embedder(Protocol):
    """Turns texts into vectors; called from worker threads, one at a time."""

    @property
    def name(self) -> str:
        """Identifies the embedding: equal names give equal vectors."""
        ...

    def passages(self, texts: Sequence[str]) -> NDArray[numpy.float32]:
        """Return unit vectors of texts that are searched, shape (texts, dimensions)."""
        ...

    def queries(self, texts: Sequence[str]) -> NDArray[numpy.float32]:
        """Return unit vectors of search queries, shape (texts, dimensions)."""
        ...


class SentenceEmbedder:
    """A sentence-transformers model on the CPU, loaded at its first use.

    It uses few resources, because a model server may run on the same machine: no accelerator, one core for
    queries, half of the cores for passages. On busy cores more threads are slower, because each waits for the
    others at every step (measured on two busy cores: passages take twice as long on two threads as on one).

    Args:
        model: a name of `hallulab.agents.machine.weights.EMBEDDING_MODELS`, a folder, or a hub name.
            A folder is identified by its path, so give changed weights another path.
        cache: cache folder; None: `hallulab.agents.machine.cache.locate_cache()`.
    """

    def __init__(self, model: str, *, cache: Path | None = None, on_progress: Listener = silent) -> None:
        self.name = model.lower() if model.lower() in EMBEDDING_MODELS else model
        self._cache = cache
        self._on_progress = on_progress
        self._loading = threading.Lock()
        self._loaded: Any = None
        self._of_thread = threading.local()

    def passages(self, texts: Sequence[str]) -> NDArray[numpy.float32]:
        """See `Embedder.passages`.

        Raises:
            UsageError: the model's folder does not exist, or the extra `local` is not installed.
            OperationalError: the weights cannot be fetched or loaded.
        """
        vectors: NDArray[numpy.float32] = self._model(max(1, (os.cpu_count() or 1) // 2)).encode_document(
            list(texts), normalize_embeddings=True, show_progress_bar=False
        )
        return vectors

    def queries(self, texts: Sequence[str]) -> NDArray[numpy.float32]:
        """See `Embedder.queries`; raises like `passages`."""
        vectors: NDArray[numpy.float32] = self._model(1).encode_query(
            list(texts), normalize_embeddings=True, show_progress_bar=False
        )
        return vectors

    def _model(self, cores: int) -> Any:
        """Return the model for the current thread, which may use so many cores."""
        with self._loading:
            if self._loaded is None:
                require_extra("local", "sentence_transformers", use=f"The embedding model {self.name}")
                # A wrong name is told before torch is imported, which takes seconds.
                path = locate_embedding_model(self.name, cache=self._cache, on_progress=self._on_progress)
                self._limit(cores)
                self._loaded = _load(self.name, path)
        self._limit(cores)
        return self._loaded

    def _limit(self, cores: int) -> None:
        """Let the current thread compute on so many cores."""
        if getattr(self._of_thread, "cores", None) != cores:
            limit_thread(cores)
            self._of_thread.cores = cores


def _load(name: str, path: str) -> Any:
    from sentence_transformers import SentenceTransformer

    try:
        with without_progress_bars():
            return SentenceTransformer(path, device="cpu")
    except Exception as error:  # the hub, the configuration and the weights raise many types
        reason = str(error).strip().splitlines()
        raise OperationalError(
            f"cannot load the embedding model {name} ({reason[0] if reason else type(error).__name__}). "
            f"Check its name and the network, or use one of: {', '.join(EMBEDDING_MODELS)}."
        ) from error


def limit_thread(cores: int) -> None:
    """Let the calling thread compute on so many cores; leave other threads unchanged.

    `torch.set_num_threads` sets the number of the calling thread, and the default of threads that have not
    computed yet. The default is restored from another thread, because restoring it here would undo the first.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(cores)
    restore = threading.Thread(target=torch.set_num_threads, args=(before,))
    restore.start()
    restore.join()


@contextmanager
def without_progress_bars() -> Iterator[None]:
    """Switch off the bars that transformers draws while it loads weights."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


Item = TypeVar("Item")
Result = TypeVar("Result")


class Batches(Generic[Item, Result]):
    """Hands all waiting items to a worker thread at once.

    Args:
        work: returns the results of a batch's items, in their order; called in `thread`, one batch at a time.
        thread: an executor of one thread.
        largest: items of a batch at most.
    """

    def __init__(
        self, work: Callable[[Sequence[Item]], Sequence[Result]], thread: ThreadPoolExecutor, largest: int
    ) -> None:
        self._work = work
        self._thread = thread
        self._largest = largest
        self._waiting: SimpleQueue[tuple[Item, Future[Result]]] = SimpleQueue()

    def submit(self, item: Item) -> Future[Result]:
        """Queue an item; return a future of its result. The future can be cancelled while it waits."""
        future: Future[Result] = Future()
        self._waiting.put((item, future))
        # One call for each item, so that none is forgotten; the first call takes all, the rest find nothing.
        self._thread.submit(self._do_waiting)
        return future

    def _do_waiting(self) -> None:
        batch = self._take()
        if not batch:
            return
        try:
            results = self._work([item for item, _ in batch])
        except BaseException as error:  # noqa: BLE001 - passed on, so that nobody waits for ever
            for _, future in batch:
                future.set_exception(error)
        else:
            for (_, future), result in zip(batch, results, strict=True):
                future.set_result(result)

    def _take(self) -> list[tuple[Item, Future[Result]]]:
        batch: list[tuple[Item, Future[Result]]] = []
        while len(batch) < self._largest:
            try:
                item, future = self._waiting.get_nowait()
            except Empty:
                break
            if future.set_running_or_notify_cancel():
                batch.append((item, future))
        return batch


def topics(vectors: NDArray[numpy.float32], number: int) -> list[list[int]]:
    """Group documents by average-linkage clustering of cosine distances.

    Args:
        vectors: a unit vector for each document, shape (documents, dimensions).
        number: topics wanted, at least 1; never more than documents.

    Returns:
        The documents of each topic, as row numbers in order; the largest topic first, then the first row.
    """
    if number >= len(vectors):
        return [[row] for row in range(len(vectors))]
    from sklearn.cluster import AgglomerativeClustering

    clustering = AgglomerativeClustering(number, metric="cosine", linkage="average")
    groups: dict[int, list[int]] = {}
    for row, label in enumerate(clustering.fit_predict(vectors)):
        groups.setdefault(int(label), []).append(row)
    return sorted(groups.values(), key=lambda rows: (-len(rows), rows[0]))
