"""Topics of a collection: groups of documents that are near in meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


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
