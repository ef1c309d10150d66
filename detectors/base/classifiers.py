"""Classifiers of two classes as plain arrays: scikit-learn fits them, files hold them, numpy asks them.

To import scikit-learn takes longer than to judge a chat. An array holds no code, and the way down a tree is
checked before it is walked, so a file that was changed is refused, or gives other probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]

DEEPEST = 64
"""Levels of a tree at most; ours have 12."""
LARGEST = 1e50
"""Largest number, also of one by a scale; sums and products of a few thousand are finite."""
BLOCK = 256
"""Rows that go down all trees together; what they need stays in a cache."""


@dataclass(frozen=True)
class Regression:
    """A logistic regression of standardised inputs. Arrays have shape (inputs,)."""

    mean: Numbers
    scale: Numbers
    weights: Numbers
    intercept: Numbers
    """(1,)"""

    def __post_init__(self) -> None:
        shapes = {held.shape for held in (self.mean, self.scale, self.weights)}
        _require(shapes == {(self.weights.size,)} and self.intercept.shape == (1,), "its shapes")
        for held in (self.mean, self.scale, self.weights, self.intercept):
            _require(held.dtype == np.float64 and (np.abs(held) <= LARGEST).all(), "a number")
        _require((np.abs(self.scale) >= 1 / LARGEST).all(), "a scale")

    def predict(self, inputs: Numbers) -> Numbers:
        """Return (rows,) probabilities of the second class, from inputs of shape (rows, inputs)."""
        return _expit((inputs - self.mean) / self.scale @ self.weights + self.intercept)


@dataclass(frozen=True)
class Trees:
    """Trees, node by node, one after the other."""

    inputs: Integers
    """(1,): how many inputs a row has."""
    roots: Integers
    """(trees,): each tree's first node."""
    children: Integers
    """(nodes, 2): the next node where the input is above the threshold, and where not; of a leaf, itself."""
    asked: Integers
    """(nodes,): the input that the node compares."""
    threshold: Numbers
    """(nodes,)"""
    value: Numbers
    """(nodes,): what a leaf says."""

    def __post_init__(self) -> None:
        nodes = len(self.asked)
        for held, shape in (
            (self.inputs, (1,)),
            (self.roots, (max(1, len(self.roots)),)),
            (self.children, (nodes, 2)),
            (self.asked, (nodes,)),
        ):
            _require(held.dtype.kind == "i" and held.shape == shape and (held >= 0).all(), "its nodes")
        for numbers in (self.threshold, self.value):
            _require(numbers.dtype == np.float64 and numbers.shape == (nodes,), "its numbers")
        _require((self.roots < nodes).all() and (self.children < nodes).all(), "no such node")
        _require((self.asked < self.inputs).all(), "no such input")
        _require(not np.isnan(self.threshold).any() and (np.abs(self.value) <= LARGEST).all(), "a number")
        _require(self.depth <= DEEPEST, "it is too deep")

    @cached_property
    def depth(self) -> int:
        """Most steps from a root to a leaf.

        Raises:
            ValueError: a child does not come after its parent, so a way may have no end.
        """
        below, own = self.children, np.arange(len(self.children))[:, None]
        inner = (below != own).any(axis=1)
        _require((below > own)[inner].all(), "a loop")
        level, steps = self.roots[inner[self.roots]], 0
        while level.size and steps <= DEEPEST:
            found = np.unique(below[level])
            level, steps = found[inner[found]], steps + 1
        return steps

    def sum_leaves(self, inputs: NDArray[Any], start: float = 0.0) -> Numbers:
        """Return (rows,): the values of each row's leaves added to `start`, in the order of the trees.

        Raises:
            ValueError: rows have another number of inputs.
        """
        width = int(self.inputs[0])
        _require(inputs.shape[1:] == (width,), "another number of inputs")
        children = self.children.ravel().astype(np.intp)
        asked, roots = self.asked.astype(np.intp), self.roots.astype(np.intp)
        found = np.empty(len(inputs))
        for first in range(0, len(inputs), BLOCK):
            rows = inputs[first : first + BLOCK]
            begins, flat = np.arange(len(rows)) * width, rows.ravel()
            node = np.repeat(roots[:, None], len(rows), axis=1)
            for _ in range(self.depth):
                below = flat.take(begins + asked.take(node)) <= self.threshold.take(node)
                node = children.take(2 * node + below)
            found[first : first + BLOCK] = np.add.reduce(self.value.take(node), axis=0, initial=start)
        return found


class MeanOfTrees(Trees):
    """A forest: a leaf says a probability."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(((self.value >= 0) & (self.value <= 1)).all(), "a value")

    def predict(self, inputs: Numbers) -> Numbers:
        """See `Regression.predict`."""
        return self.sum_leaves(inputs.astype(np.float32)) / len(self.roots)


@dataclass(frozen=True)
class SumOfTrees(Trees):
    """Boosted trees: leaves say what is added to the logarithm of the odds."""

    start: Numbers
    """(1,)"""

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.start.shape == (1,) and abs(self.start[0]) <= LARGEST, "its start")

    def predict(self, inputs: Numbers) -> Numbers:
        """See `Regression.predict`."""
        return _expit(self.sum_leaves(inputs, float(self.start[0])))


Classifier = Regression | MeanOfTrees | SumOfTrees

KINDS = {made.__name__: made for made in (Regression, MeanOfTrees, SumOfTrees)}
"""Kinds of classifiers by the name that a file has."""


def _require(condition: Any, reason: str) -> None:
    if not condition:
        raise ValueError(reason)


def _expit(values: Numbers) -> Numbers:
    with np.errstate(over="ignore"):  # the exponential of a large number is infinite, and one by it is 0
        found: Numbers = 1 / (1 + np.exp(-values))
    return found


def freeze(fitted: Any) -> Classifier:
    """Return a classifier of two classes that scikit-learn fitted, as arrays.

    Args:
        fitted: a forest, boosted trees, or a pipeline of a scaler of the first inputs, or of all, and a
            logistic regression.
    """
    if hasattr(fitted, "steps"):
        (_, scaler), (_, regression) = fitted.steps
        weights = regression.coef_[0]
        scaled = getattr(scaler, "named_transformers_", {"numeric": scaler})["numeric"]
        rest = len(weights) - len(scaled.mean_)
        return Regression(
            np.append(scaled.mean_, np.zeros(rest)),
            np.append(scaled.scale_, np.ones(rest)),
            weights,
            regression.intercept_,
        )
    if hasattr(fitted, "estimators_"):
        grown = [
            (one.children_left, one.children_right, one.feature, one.threshold, one.value[:, 0, 1])
            for one in (estimator.tree_ for estimator in fitted.estimators_)
        ]
        return MeanOfTrees(**_join_trees(fitted.n_features_in_, grown))
    boosted: list[tuple[Any, ...]] = []
    for (tree,) in fitted._predictors:
        left, right = (tree.nodes[side].astype(int) for side in ("left", "right"))
        told = (tree.nodes[name] for name in ("feature_idx", "num_threshold", "value"))
        boosted.append((np.where(tree.nodes["is_leaf"], -1, left), right, *told))
    joined = _join_trees(fitted.n_features_in_, boosted)
    return SumOfTrees(**joined, start=fitted._baseline_prediction.ravel())


def _join_trees(inputs: int, trees: list[tuple[Any, ...]]) -> dict[str, Any]:
    """Return the fields of `Trees`.

    Args:
        trees: of each, arrays of its left children (-1: a leaf), right ones, inputs, thresholds and values.
    """
    sizes = [len(values) for *_, values in trees]
    roots = np.cumsum([0, *sizes[:-1]])
    left, right, asked, threshold, value = (np.concatenate(column) for column in zip(*trees, strict=True))
    own, begins, leaf = np.arange(sum(sizes)), np.repeat(roots, sizes), left == -1
    children = np.column_stack([np.where(leaf, own, begins + right), np.where(leaf, own, begins + left)])
    return {
        "inputs": np.array([inputs]),
        "roots": roots.astype(np.int32),
        "children": children.astype(np.int32),
        "asked": np.where(leaf, 0, asked).astype(np.int32),
        "threshold": np.where(leaf, 0.0, threshold),
        "value": np.where(leaf, value, 0.0),
    }
