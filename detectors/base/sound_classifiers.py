"""Check that classifiers of a file can be asked without danger: scikit-learn trusts their arrays.

Its compiled code follows a tree's children, and reads the inputs that its nodes name, without looking whether
they exist. A file that was changed could loop, crash the process, or give scores that are none.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

DEEPEST = 64
"""Levels of a tree at most; ours have 14."""
MOST_INPUTS = 100_000
"""Inputs of a classifier at most."""
LARGEST_UNPACKED = 500_000_000
"""Bytes of a file at most, unpacked; ours have 10 million."""
LARGEST = 1e50
"""Largest number; sums and products of a few thousand are finite."""
SMALLEST_SCALE = 1e-50
"""Smallest number that an input may be divided by."""

KNOWN_TYPES = {
    "builtins": {"dict", "list", "tuple", "str", "slice"},
    "numpy": {"ndarray", "float64", "float32", "int64", "int32", "uint64", "uint32", "bool", "bool_"},
    "numpy.random._generator": {"Generator"},
    "_loss": {"CyHalfBinomialLoss"},  # the name that older versions of scikit-learn give
    "sklearn._loss._loss": {"CyHalfBinomialLoss"},
    "sklearn._loss.link": {"Interval", "LogitLink"},
    "sklearn._loss.loss": {"HalfBinomialLoss"},
    "sklearn.compose._column_transformer": {"ColumnTransformer", "_RemainderColsList"},
    "sklearn.ensemble._forest": {"ExtraTreesClassifier", "RandomForestClassifier"},
    "sklearn.ensemble._hist_gradient_boosting.binning": {"_BinMapper"},
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting": {"HistGradientBoostingClassifier"},
    "sklearn.ensemble._hist_gradient_boosting.predictor": {"TreePredictor"},
    "sklearn.linear_model._logistic": {"LogisticRegression"},
    "sklearn.pipeline": {"Pipeline"},
    "sklearn.preprocessing._data": {"StandardScaler"},
    "sklearn.preprocessing._function_transformer": {"FunctionTransformer"},
    "sklearn.preprocessing._label": {"LabelEncoder"},
    "sklearn.tree._classes": {"DecisionTreeClassifier", "ExtraTreeClassifier"},
    "sklearn.tree._tree": {"Tree"},
}
"""Module → types that are checked below, or hold nothing but plain values. skops trusts many more, and some
of them are as easily made to crash."""

_LOADERS = frozenset(
    {"CachedNode", "DictNode", "JsonNode", "ListNode", "LossNode", "NdArrayNode", "ObjectNode"}
    | {"RandomGeneratorNode", "SliceNode", "TreeNode", "TupleNode", "TypeNode"}
)
"""Loaders by which skops may make values."""


def list_strange_types(data: bytes) -> list[str]:
    """Return the types that a file of skops names and no model of ours holds, and check how it makes trees.

    To make a tree already reads arrays that may be too short, so this is looked at before anything is made.

    Raises:
        ValueError: the file is too large, or a tree is not one of ours.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(member.file_size for member in archive.infolist()) > LARGEST_UNPACKED:
            raise ValueError("too large")
        nodes = list(_walk(json.loads(archive.read("schema.json"))))
        named: dict[Any, list[Mapping[str, Any]]] = {}
        for node in nodes:
            if node["__loader__"] != "CachedNode":
                named.setdefault(node.get("__id__"), []).append(node)
        for node in nodes:
            if node["__loader__"] == "TreeNode":
                _require_tree_arguments(node, named, archive)
    strange = {
        f"{node.get('__module__')}.{node.get('__class__')}"
        for node in nodes
        if node["__loader__"] not in _LOADERS or (node["__loader__"] != "CachedNode" and not _is_known(node))
    }
    return sorted(strange)


def _is_known(node: Mapping[str, Any]) -> bool:
    return node.get("__class__") in KNOWN_TYPES.get(str(node.get("__module__")), ())


def _walk(state: Any) -> Iterable[Mapping[str, Any]]:
    """Yield all nodes of a schema."""
    waiting = [state]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if "__loader__" in value:
                yield value
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _require_tree_arguments(
    tree: Mapping[str, Any], named: Mapping[Any, list[Mapping[str, Any]]], archive: zipfile.ZipFile
) -> None:
    """Check that a tree is made of a number of inputs, an array `[2]` and the number 1."""

    def resolve(node: Mapping[str, Any]) -> Mapping[str, Any]:
        # skops takes the first node of an identifier for all that follow.
        same = named[node["__id__"]]
        if any(other != same[0] for other in same):
            raise ValueError("an identifier stands for two things")
        return same[0]

    arguments = resolve(tree["__reduce__"]["args"])
    inputs, classes, outputs = map(resolve, arguments["content"])
    array = np.load(io.BytesIO(archive.read(classes["file"])), allow_pickle=False)
    loaders = [node["__loader__"] for node in (arguments, inputs, classes, outputs)]
    if (
        loaders != ["TupleNode", "JsonNode", "NdArrayNode", "JsonNode"]
        or classes["type"] != "numpy"
        or not 0 < int(inputs["content"]) <= MOST_INPUTS
        or outputs["content"] != "1"
        or array.shape != (1,)
        or array.dtype != np.intp
        or array[0] != 2
    ):
        raise ValueError("a tree that is not one of ours")


def require_sound(classifier: Any) -> None:
    """Check that a classifier of two classes gives probabilities for any input.

    Raises:
        ValueError, TypeError, AttributeError, KeyError: it may not.
    """
    _require_plain(classifier)
    inputs = _check(classifier)
    with np.errstate(all="ignore"):
        found = classifier.predict_proba(np.zeros((1, inputs)))
    if found.shape != (1, 2) or not (np.isfinite(found).all() and (found >= 0).all() and (found <= 1).all()):
        raise ValueError("no probabilities of two classes")


def _require_plain(value: Any) -> None:
    """Check that all numbers are finite, and that nothing starts processes or threads."""
    waiting, seen = [value], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray | np.generic):
            _require(one.dtype.kind in "biufU" or one.dtype.names is not None, "an array of other things")
            if one.dtype.kind == "f":
                _require(np.abs(one).max(initial=0) <= LARGEST, "a number is too large, or none")
        elif isinstance(one, bool | int | float):
            _require(abs(one) <= LARGEST, "a number is too large, or none")
        elif isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list | tuple | set):
            waiting.extend(one)
        elif type(one).__module__.startswith("sklearn.") and hasattr(one, "__dict__"):
            _require(vars(one).get("n_jobs") in (None, 1), "it asks for several processes")
            _require(not vars(one).get("verbose"), "it prints")
            waiting.append(vars(one))


def _require(condition: Any, reason: str) -> None:
    if not condition:
        raise ValueError(reason)


def _check(classifier: Any) -> int:
    """Check a classifier; return how many inputs it has."""
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline
    from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

    kind = type(classifier)
    if kind is Pipeline:
        return _check_pipeline(classifier)
    inputs = _read_inputs(classifier)
    _require(_is_two(classifier.classes_), "the classes")
    if kind is LogisticRegression:
        _require(_is_numbers(classifier.coef_, (1, inputs)), "the coefficients")
        _require(_is_numbers(classifier.intercept_, (1,)), "the intercept")
    elif kind is HistGradientBoostingClassifier:
        _check_boosting(classifier, inputs)
    elif kind in (RandomForestClassifier, ExtraTreesClassifier):
        _require(isinstance(classifier.estimators_, list) and classifier.estimators_, "no trees")
        _require(classifier.n_classes_ == 2 and classifier.n_outputs_ == 1, "the classes")
        for tree in classifier.estimators_:
            _require(type(tree) in (DecisionTreeClassifier, ExtraTreeClassifier), "other trees")
            _require(tree.n_features_in_ == inputs and _is_two(tree.classes_), "a tree's inputs or classes")
            _require(tree.n_classes_ == 2 and tree.n_outputs_ == 1, "a tree's classes")
            _check_tree(tree.tree_, inputs)
    else:
        raise TypeError(f"{kind.__name__} is no classifier of ours")
    return inputs


def _read_inputs(estimator: Any) -> int:
    inputs = estimator.n_features_in_
    if type(inputs) is not int or not 0 < inputs <= MOST_INPUTS:
        raise ValueError("no number of inputs")
    return inputs


def _is_two(classes: Any) -> bool:
    return isinstance(classes, np.ndarray) and classes.ndim == 1 and classes.tolist() == [0, 1]


def _is_numbers(found: Any, shape: tuple[int, ...]) -> bool:
    return isinstance(found, np.ndarray) and found.dtype.kind in "fiu" and found.shape == shape


def _check_pipeline(pipeline: Any) -> int:
    """Check steps that scale, and a regression after them; return how many inputs the first one has."""
    from sklearn.linear_model import LogisticRegression

    _require(isinstance(pipeline.steps, list) and len(pipeline.steps) > 1, "the steps")
    *before, last = (estimator for _, estimator in pipeline.steps)
    _require(type(last) is LogisticRegression, "the last step")
    for step in before:
        _check_step(step)
    _check(last)
    return _read_inputs(before[0])


def _check_step(step: Any) -> None:
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    if type(step) is ColumnTransformer:
        for _, one, _ in step.transformers_:
            if type(one) is not str:  # `passthrough` or `drop`
                _check_step(one)
    elif type(step) is FunctionTransformer:
        _require(step.func is None and step.inverse_func is None, "a function")
    else:
        _require(type(step) is StandardScaler, "a step of another kind")
        shape = (step.n_features_in_,)
        _require(step.mean_ is None or _is_numbers(step.mean_, shape), "the means")
        scale = step.scale_
        _require(
            scale is None or (_is_numbers(scale, shape) and (np.abs(scale) >= SMALLEST_SCALE).all()),
            "the scales",
        )


def _check_tree(tree: Any, inputs: int) -> None:
    """Check a tree of a forest."""
    from sklearn.tree._tree import Tree

    _require(type(tree) is Tree, "a tree of another kind")
    _require(tree.n_outputs == 1 and tree.max_n_classes == 2 and tree.n_features == inputs, "its sizes")
    _require(0 < tree.node_count <= tree.capacity, "its nodes")  # before any array of them is made
    left, right, leaf = tree.children_left, tree.children_right, tree.children_left == -1
    _require(((right == -1) == leaf).all(), "a node with one child")
    _require_branching(left, right, leaf)
    _require(((tree.feature >= 0) & (tree.feature < inputs))[~leaf].all(), "an input that is not there")
    _require(not np.isnan(tree.threshold[~leaf]).any(), "a threshold")
    shares = tree.value
    _require(shares.shape == (tree.node_count, 1, 2) and (shares >= 0).all(), "its values")
    _require(np.allclose(shares.sum(axis=2), 1, atol=1e-6), "its values")


def _require_branching(left: Any, right: Any, leaf: Any) -> None:
    """Check that nodes branch from the first: each other is a later child of one, and none is too deep."""
    parents = np.flatnonzero(~leaf)
    children = np.concatenate([left[parents], right[parents]]).astype(np.int64)
    _require((children > np.concatenate([parents, parents])).all(), "a loop")
    _require((np.sort(children) == np.arange(1, len(leaf))).all(), "a node without a place")
    level, depth = np.zeros(1, dtype=np.int64), 0
    while (level := level[~leaf[level]]).size:
        level = np.concatenate([left[level], right[level]]).astype(np.int64)
        depth += 1
        _require(depth <= DEEPEST, "it is too deep")


def _check_boosting(boosting: Any, inputs: int) -> None:
    """Check a sum of trees for one output."""
    from sklearn._loss.loss import HalfBinomialLoss
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    held = vars(boosting)
    _require(not held.get("_in_fit") and held["_preprocessor"] is None, "its inputs are binned or changed")
    _require(boosting.n_trees_per_iteration_ == 1 and boosting._n_features == inputs, "its sizes")
    _require(type(boosting._loss) is HalfBinomialLoss, "its loss")
    _require(_is_numbers(boosting._baseline_prediction, (1, 1)), "its first prediction")
    categories = boosting._bin_mapper.is_categorical_
    _require(_is_numbers(categories, (inputs,)) and not categories.any(), "inputs that are categories")
    _require(isinstance(boosting._predictors, list), "its trees")
    for trees in boosting._predictors:
        _require(isinstance(trees, list) and len(trees) == 1, "its trees")
        _require(type(trees[0]) is TreePredictor, "a tree of another kind")
        nodes = trees[0].nodes
        _require(isinstance(nodes, np.ndarray) and nodes.ndim == 1 and len(nodes), "its nodes")
        leaf = nodes["is_leaf"] == 1
        _require((leaf | (nodes["is_leaf"] == 0)).all() and not nodes["is_categorical"].any(), "its nodes")
        _require_branching(nodes["left"], nodes["right"], leaf)
        asked = nodes["feature_idx"][~leaf]
        _require(((asked >= 0) & (asked < inputs)).all(), "an input that is not there")
        _require(not np.isnan(nodes["num_threshold"]).any(), "a threshold")
        _require((np.abs(nodes["value"]) <= LARGEST).all(), "its values")
