"""Relations between the segments of a reply, and how consistent the graph of them is.

Distances are arrays of shape (chunks, chunks); graphs and their betweenness are networkx's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

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


Weighting = Literal["relevance", "equal", "best"]
"""How groups count: by relevance; all equally (table 5, without C); only the one that entails most."""


def compute_shares(
    relevances: Sequence[float], top: int | None = None, temperature: float | None = None
) -> dict[int, float]:
    """Return r̃_k of the groups that count, by their places; the shares sum to 1.

    Without a temperature they go by r_k as in the paper. Relevances below 0 (a reranker's logits) count as 0;
    if none is above 0, all groups count the same.

    The paper's worked example has the decision scores 0.115 (table 8) and 0.457 (table 9). The equation over
    all its groups gives 0.092 and 0.197. Both numbers come out exactly if only the 5 and the 2 most relevant
    groups count. The text does not say so, hence `top`.

    Args:
        relevances: r_k of at least one group.
        top: only this many of the most relevant groups count; None: all.
        temperature: τ above 0; the shares go by exp(r_k / τ) (ours), for relevances that lie close together.
    """
    if temperature is None:
        weights = [max(0.0, value) for value in relevances]
        if not any(weights):
            return dict.fromkeys(range(len(weights)), 1.0 / len(weights))
    else:
        largest = max(relevances)
        weights = [math.exp((value - largest) / temperature) for value in relevances]
    order = sorted(range(len(weights)), key=lambda index: -weights[index])[:top]
    total = sum(weights[index] for index in order)
    return {index: weights[index] / total for index in sorted(order)}


def compute_support(entailments: Mapping[int, float], weights: Mapping[int, float]) -> float:
    """Return S = Σ r̃_k e_k, in [0, 1]: how far the evidence supports a claim.

    Args:
        entailments: e_k by the group's place, at least of the groups that count.
        weights: as `compute_shares` returns them.
    """
    # Rounding may end a hair above 1.
    return min(1.0, sum(share * entailments[index] for index, share in weights.items()))
