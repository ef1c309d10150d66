"""The vector table: a LanceDB folder that is built once and then only read."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hallulab.agents.machine.cache import CACHE_VARIABLE, building, replacing
from hallulab.agents.machine.checksums import compute_sha256, is_whole, write_checksums
from hallulab.agents.machine.progress_events import Listener, StepProgress
from hallulab.agents.retrieval.embedding import Embedder
from hallulab.scenarios.errors import NO_HANDLE, OperationalError
from hallulab.scenarios.transcript import Passage

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

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
        embedder: makes the vectors.
        on_progress: told of passages.

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
                if limit < self._rows and found[index][counts[index] - 1][1] <= found[index][-1][1]
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
