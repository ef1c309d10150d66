"""Module B, logical relation capture (paper section 3.2.2): decide which chunks are read together.

Distances are arrays of shape (chunks, chunks); graphs and their betweenness are networkx's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    import networkx
    from numpy.typing import NDArray

    Matrix = NDArray[Any]

_SHORTEST = 1e-6
"""No edge is shorter: networkx finds no shortest paths along edges of length 0, which equal chunks have."""


def compute_distances(vectors: Matrix) -> Matrix:
    """Return d_ij = ‖v_i − v_j‖₂ of vectors of shape (chunks, dimensions), in float64."""
    import numpy

    exact = numpy.asarray(vectors, dtype=numpy.float64)
    # No matrix product: on busy cores its threads wait ten times longer than they compute.
    products = numpy.einsum("id,jd->ij", exact, exact)
    squares = products.diagonal()[:, None]
    apart: Matrix = numpy.sqrt(numpy.maximum(squares + squares.T - 2.0 * products, 0.0))
    numpy.fill_diagonal(apart, 0.0)
    return apart


def find_related(apart: Matrix, alpha: float) -> networkx.Graph:
    """Return the chunks and E⁽⁰⁾: d_ij ≤ α·μ; μ is the mean distance of all pairs. Edges have a `length`."""
    import networkx
    import numpy

    count = len(apart)
    graph = networkx.Graph()
    graph.add_nodes_from(range(count))
    if count < 2:
        return graph
    near = numpy.triu(apart <= alpha * apart.sum() / (count * (count - 1)), 1)
    for first, second in numpy.argwhere(near).tolist():
        graph.add_edge(first, second, length=max(float(apart[first, second]), _SHORTEST))
    return graph


def find_clusters(apart: Matrix, tokens: Sequence[int], alpha: float, group_tokens: int) -> list[list[int]]:
    """Return S: chunks joined along the edges of highest betweenness, while they stay within T_t tokens.

    f_e is networkx's edge betweenness: pairs with several shortest paths count in part on each (the paper's
    P_ij is one of them). Of edges with equal betweenness the shorter one comes first, then the one between
    earlier chunks. The paper says nothing of ties, which are frequent in a sparse graph.

    Args:
        apart: distances of the chunks.
        tokens: their lengths; a chunk over `group_tokens` stays alone.
        alpha: α.
        group_tokens: T_t.

    Returns:
        Indices of chunks, each cluster in document order, clusters in the order of their first chunks.
    """
    import networkx
    from networkx.utils import UnionFind

    graph = find_related(apart, alpha)
    between = networkx.edge_betweenness_centrality(graph, weight="length", normalized=False)
    # Rounded, so that edges with equal counts are ties in whatever order the counts are summed.
    order = sorted(between, key=lambda edge: (-round(between[edge], 6), apart[edge], edge))
    together = UnionFind(range(len(tokens)))
    size = dict(enumerate(tokens))
    for first, second in order:
        kept, gone = together[first], together[second]
        if kept == gone or size[kept] + size[gone] > group_tokens:
            continue
        together.union(kept, gone)
        size[together[kept]] = size[kept] + size[gone]
    return sorted(sorted(cluster) for cluster in together.to_sets())
