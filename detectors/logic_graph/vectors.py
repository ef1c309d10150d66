"""Vectors of texts. Each is computed once and kept in the recording, so that a replay needs no weights."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

from hallulab.agents.models.recording import Recording
from hallulab.agents.retrieval.batching import Batches
from hallulab.agents.retrieval.embedding import Embedder, SentenceEmbedder
from hallulab.scenarios.files.digest import digest

if TYPE_CHECKING:
    from numpy.typing import NDArray

VECTOR = "vector"
"""Kind of the vectors' entries in a recording."""

_LARGEST_BATCH = 32
"""Most texts embedded together."""

_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="vectors")
"""One for all detectors: they share the embedder, which computes for one caller at a time."""


class Vectors:
    """Unit vectors by text.

    They are rounded to 16 bits, even when just computed. Then other texts of a batch change nothing, a replay
    has the same vectors, and an entry of the recording has 1 kB. A vector that the recording lacks is
    computed, also in a replay.

    Args:
        embedder: makes the vectors.
        recording: where they are kept and looked up.
    """

    def __init__(self, embedder: Embedder, recording: Recording) -> None:
        self._name = embedder.name
        self._recording = recording
        self._batches: Batches[str, NDArray[Any]] = Batches(
            lambda texts: list(embedder.passages(texts)), _THREAD, _LARGEST_BATCH
        )
        self._under_way: dict[str, asyncio.Task[str]] = {}

    async def of(self, texts: Sequence[str]) -> NDArray[Any]:
        """Return the texts' vectors, shape (texts, dimensions), in float32.

        Raises:
            UsageError: the embedding model's folder does not exist.
            OperationalError: its weights cannot be fetched or loaded.
        """
        import numpy

        packed = await asyncio.gather(*(self._packed(text) for text in texts))
        return numpy.stack([_unpack(each) for each in packed])

    async def _packed(self, text: str) -> str:
        key = digest([self._name, text])
        known: str | None = self._recording.get(VECTOR, key)
        if known is not None:
            return known
        if key not in self._under_way:
            task = asyncio.create_task(self._computed(key, text))
            task.add_done_callback(lambda _: self._under_way.pop(key))
            self._under_way[key] = task
        # A cancelled caller leaves the vector to the others that wait for it.
        return await asyncio.shield(self._under_way[key])

    async def _computed(self, key: str, text: str) -> str:
        vector = await asyncio.wrap_future(self._batches.submit(text))
        packed: str = self._recording.put(VECTOR, key, _pack(vector))
        return packed


@cache
def get_shared_embedder(model: str) -> Embedder:
    """Return the embedder of that name, one for all detectors: its weights are loaded once."""
    return SentenceEmbedder(model)


def _pack(vector: NDArray[Any]) -> str:
    return base64.b64encode(vector.astype("<f2").tobytes()).decode("ascii")


def _unpack(packed: str) -> NDArray[Any]:
    import numpy

    return numpy.frombuffer(base64.b64decode(packed), dtype="<f2").astype(numpy.float32)
