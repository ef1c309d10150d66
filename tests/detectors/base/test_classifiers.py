"""Frozen classifiers say what scikit-learn's say; a model whose file was changed is refused, or scores."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier

from hallulab.detectors.base import classifiers
from hallulab.detectors.base.classifiers import MeanOfTrees, Regression, SumOfTrees, Trees, freeze
from hallulab.detectors.evidence_chain.training import make_regression
from hallulab.detectors.features.trained_detector import make_scaled_regression

NOISE = np.random.default_rng(0).random((300, 6)) * [1, 10, 100, 1, 2, 3]
LABELS = NOISE[:, 0] + NOISE[:, 3] > NOISE[:, 5]


@pytest.mark.parametrize(
    "classifier",
    [
        RandomForestClassifier(5, max_depth=8, class_weight="balanced_subsample", random_state=0),
        ExtraTreesClassifier(5, max_depth=8, random_state=0),
        HistGradientBoostingClassifier(max_iter=5, random_state=0),
        make_scaled_regression(C=0.02),
        make_regression(4),
    ],
    ids=["forest", "extra trees", "boosting", "scaled", "scaled in part"],
)
def test_a_frozen_classifier_says_what_the_fitted_one_says(classifier: Any) -> None:
    fitted = classifier.fit(NOISE[:150], LABELS[:150])
    found, expected = freeze(fitted).predict(NOISE), fitted.predict_proba(NOISE)[:, 1]
    if hasattr(fitted, "estimators_"):
        assert (found == expected).all()
    assert np.abs(found - expected).max() < 1e-14


def make_stump(kind: type[Trees] = MeanOfTrees, **changed: object) -> Trees:
    fields = {
        "inputs": np.array([2]),
        "roots": np.array([0]),
        "children": np.array([[2, 1], [1, 1], [2, 2]]),
        "asked": np.array([1, 0, 0]),
        "threshold": np.array([0.5, 0.0, 0.0]),
        "value": np.array([0.0, 0.25, 0.75]),
        **({"start": np.array([0.0])} if kind is SumOfTrees else {}),
    }
    return kind(**{**fields, **changed})  # type: ignore[arg-type]


def test_an_input_equal_to_the_threshold_goes_left() -> None:
    assert make_stump().sum_leaves(np.array([[9, 0.5], [9, 0.75]])).tolist() == [0.25, 0.75]


def test_leaves_of_boosted_trees_say_logarithms_of_odds() -> None:
    grown = make_stump(SumOfTrees, value=np.array([0.0, 0.0, 800.0]), start=np.array([-0.0]))
    assert isinstance(grown, SumOfTrees)
    assert grown.predict(np.array([[0, 0], [0, 1]])).tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"children": np.array([[0, 1], [1, 1], [2, 2]])}, "a loop"),
        ({"children": np.array([[2, 0], [1, 1], [2, 2]])}, "a loop"),
        ({"children": np.array([[2, 1], [0, 0], [2, 2]])}, "a loop"),
        ({"children": np.array([[3, 1], [1, 1], [2, 2]])}, "no such node"),
        ({"children": np.array([[2, -1], [1, 1], [2, 2]])}, "its nodes"),
        ({"children": np.array([[2, 1], [1, 1]])}, "its nodes"),
        ({"children": np.array([[2.0, 1], [1, 1], [2, 2]])}, "its nodes"),
        ({"roots": np.array([3])}, "no such node"),
        ({"roots": np.array([], dtype=int)}, "its nodes"),
        ({"asked": np.array([2, 0, 0])}, "no such input"),
        ({"asked": np.array([-1, 0, 0])}, "its nodes"),
        ({"inputs": np.array([2, 2])}, "its nodes"),
        ({"threshold": np.array([np.nan, 0.0, 0.0])}, "a number"),
        ({"threshold": np.array([0.5, 0.0])}, "its numbers"),
        ({"value": np.array(["x", "y", "z"])}, "its numbers"),
        ({"value": np.array([0.0, np.nan, 1.0])}, "a number"),
        ({"value": np.array([0.0, 7.0, 1.0])}, "a value"),
    ],
)
def test_a_tree_that_leads_nowhere_is_refused(changed: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}$"):
        make_stump(**changed)


@pytest.mark.parametrize("start", [np.array([np.nan]), np.array([0.0, 0.0])])
def test_boosted_trees_start_from_one_number(start: object) -> None:
    with pytest.raises(ValueError, match=r"^its start$"):
        make_stump(SumOfTrees, start=start)


def test_a_tree_that_is_too_deep_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classifiers, "DEEPEST", 0)
    with pytest.raises(ValueError, match=r"^it is too deep$"):
        make_stump()


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^another number of inputs$"):
        make_stump().sum_leaves(np.zeros((4, 3)))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"weights": np.array([np.inf])}, "a number"),
        ({"weights": np.array([1e300])}, "a number"),
        ({"weights": np.array([1.0, 2.0])}, "its shapes"),
        ({"mean": np.array([0])}, "a number"),
        ({"scale": np.array([0.0])}, "a scale"),
        ({"intercept": np.array([0.0, 1.0])}, "its shapes"),
    ],
)
def test_a_regression_without_a_sound_number_is_refused(changed: dict[str, Any], reason: str) -> None:
    one = np.array([1.0])
    with pytest.raises(ValueError, match=f"^{reason}$"):
        Regression(**{"mean": one, "scale": one, "weights": one, "intercept": one, **changed})


def try_changes(folder: Path, seed: int, number: int) -> dict[str, int]:
    program = [sys.executable, "-m", "tests.detectors.base.damaged_models"]
    command = [*program, str(folder), str(seed), str(number)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    outcomes: dict[str, int] = json.loads(ended.stdout)
    return outcomes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_changed_number_or_byte_crashes_or_gives_a_score_that_is_none(seed: int, tmp_path: Path) -> None:
    outcomes = try_changes(tmp_path, seed, 200)
    assert outcomes["refused"] > 50
    assert outcomes["scored"] > 30
