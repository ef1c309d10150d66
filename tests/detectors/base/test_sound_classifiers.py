"""A trained model whose file was changed is refused before it loops, crashes or gives no scores."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.svm import SVC

from hallulab.detectors.base import sound_classifiers
from hallulab.detectors.combined.model import CombinedModel, load_model, save_model
from hallulab.scenarios.errors import UsageError
from tests.detectors.base.damaged_models import CASES, make_model, walk


@pytest.fixture
def model() -> CombinedModel:
    return make_model()


def load_again(model: CombinedModel, folder: Path) -> CombinedModel:
    save_model(model, folder / "made.skops")
    return load_model(folder / "made.skops")


def refused(path: Path) -> None:
    with pytest.raises(
        UsageError,
        match=rf"^{path}: this is no trained model of this detector\. Train it anew with `python -m benchm",
    ):
        load_model(path)


def test_a_whole_model_scores_as_before(model: CombinedModel, tmp_path: Path) -> None:
    assert load_again(model, tmp_path).score(CASES).replies.tolist() == model.score(CASES).replies.tolist()


def set_node(tree: Any, field: str, place: int, value: float) -> None:
    state = tree.__getstate__()
    state["nodes"] = state["nodes"].copy()
    state["nodes"][field][place] = value
    tree.__setstate__(state)


def set_share(tree: Any, value: float) -> None:
    state = tree.__getstate__()
    state["values"] = state["values"].copy()
    state["values"][-1, 0, 0] = value
    tree.__setstate__(state)


class Classifiers(NamedTuple):
    """Those of a model: of words (boosting), sentences (a forest), and replies (linear, and trees)."""

    words: Any
    forest: Any
    linear: Any
    trees: Any

    def set_boosted(self, tree: int, field: str, place: int | slice, value: float) -> None:
        self.words._predictors[tree][0].nodes[field][place] = value


CHANGES: dict[str, Callable[[Classifiers], object]] = {
    "a loop in a forest": lambda made: set_node(made.forest.estimators_[0].tree_, "left_child", 0, 0),
    "no such child": lambda made: set_node(made.trees.estimators_[1].tree_, "right_child", 0, 10_000),
    "a child of two nodes": lambda made: set_node(made.trees.estimators_[1].tree_, "right_child", 0, 1),
    "one child": lambda made: set_node(made.forest.estimators_[1].tree_, "right_child", 0, -1),
    "no such input": lambda made: set_node(made.forest.estimators_[1].tree_, "feature", 0, 10_000),
    "a negative input": lambda made: set_node(made.forest.estimators_[1].tree_, "feature", 0, -5),
    "no threshold": lambda made: set_node(made.forest.estimators_[1].tree_, "threshold", 0, np.nan),
    "a share above 1": lambda made: set_share(made.forest.estimators_[0].tree_, 7.0),
    "no share": lambda made: set_share(made.trees.estimators_[0].tree_, np.nan),
    "other trees": lambda made: made.forest.estimators_.append(made.linear),
    "no trees": lambda made: made.forest.estimators_.clear(),
    "processes": lambda made: setattr(made.forest, "n_jobs", 500),
    "prints": lambda made: setattr(made.trees, "verbose", 5),
    "three classes": lambda made: setattr(made.trees, "classes_", np.arange(3)),
    "a loop in boosting": lambda made: made.set_boosted(0, "left", 0, 0),
    "a child outside": lambda made: made.set_boosted(0, "right", 0, 2**31),
    "an input outside": lambda made: made.set_boosted(1, "feature_idx", 0, 2**40),
    "a category": lambda made: made.set_boosted(1, "is_categorical", 0, 1),
    "no value": lambda made: made.set_boosted(1, "value", slice(None), np.nan),
    "binned inputs": lambda made: setattr(made.words, "_in_fit", True),
    "two outputs": lambda made: setattr(made.words, "_baseline_prediction", np.zeros((1, 2))),
    "no coefficient": lambda made: made.linear[-1].coef_.__setitem__((0, 0), np.nan),
    "a large coefficient": lambda made: made.linear[-1].coef_.__setitem__((0, 0), 1e300),
    "more coefficients": lambda made: setattr(made.linear[-1], "coef_", np.zeros((1, 9))),
    "no scale": lambda made: made.linear[0].scale_.__setitem__(0, 0.0),
    "fewer means": lambda made: setattr(made.linear[0], "mean_", np.zeros(2)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_classifier_is_refused(name: str, model: CombinedModel, tmp_path: Path) -> None:
    assert model.pieces is not None
    assert model.replies is not None
    made = Classifiers(model.pieces.words, model.pieces.sentences, model.replies.linear, model.replies.trees)
    CHANGES[name](made)
    save_model(model, tmp_path / "made.skops")
    refused(tmp_path / "made.skops")


def test_a_tree_that_is_too_deep_is_refused(
    model: CombinedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sound_classifiers, "DEEPEST", 1)
    save_model(model, tmp_path / "made.skops")
    refused(tmp_path / "made.skops")


def test_another_classifier_is_refused_before_it_is_made(model: CombinedModel, tmp_path: Path) -> None:
    assert model.replies is not None
    inputs = np.random.default_rng(0).random((20, 4))
    object.__setattr__(model.replies, "trees", SVC().fit(inputs, inputs[:, 0] > 0.5))
    save_model(model, tmp_path / "made.skops")
    with pytest.raises(
        UsageError, match=r"it holds types that are not trusted \(sklearn\.svm\._classes\.SVC\)"
    ):
        load_model(tmp_path / "made.skops")


def rewrite(model: CombinedModel, path: Path, edit: Callable[[dict[str, bytes], Any], None]) -> None:
    """Write a model whose file was edited: its members, and its schema."""
    save_model(model, path)
    with zipfile.ZipFile(path) as archive:
        whole = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(whole["schema.json"])
    edit(whole, schema)
    whole["schema.json"] = json.dumps(schema).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in whole.items():
            archive.writestr(name, content)


def get_tree(schema: Any) -> Any:
    return next(node for node in walk(schema) if node["__loader__"] == "TreeNode")


def ask_for_outputs(whole: dict[str, bytes], schema: Any) -> None:
    get_tree(schema)["__reduce__"]["args"]["content"][2]["content"] = "1000000000"


def hide_outputs_behind_an_identifier(whole: dict[str, bytes], schema: Any) -> None:
    arguments = get_tree(schema)["__reduce__"]["args"]["content"]
    arguments[2]["__id__"] = 7
    schema["content"]["texts"] |= {"content": "1000000000", "__id__": 7}


def shorten_classes(whole: dict[str, bytes], schema: Any) -> None:
    written = io.BytesIO()
    np.save(written, np.zeros(0, dtype=np.intp))
    whole[get_tree(schema)["__reduce__"]["args"]["content"][1]["file"]] = written.getvalue()


@pytest.mark.parametrize("edit", [ask_for_outputs, hide_outputs_behind_an_identifier, shorten_classes])
def test_a_tree_that_would_be_made_from_a_short_array_is_refused(
    edit: Callable[[dict[str, bytes], Any], None], model: CombinedModel, tmp_path: Path
) -> None:
    rewrite(model, tmp_path / "made.skops", edit)
    refused(tmp_path / "made.skops")


def test_a_file_that_unpacks_to_far_more_is_refused(
    model: CombinedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewrite(model, tmp_path / "made.skops", lambda whole, schema: None)
    monkeypatch.setattr(sound_classifiers, "LARGEST_UNPACKED", 1000)
    refused(tmp_path / "made.skops")


@pytest.mark.parametrize(("name", "content"), [("texts", "-1"), ("texts", "1.5"), ("identity", "3")])
def test_a_field_that_is_none_is_refused(
    name: str, content: str, model: CombinedModel, tmp_path: Path
) -> None:
    def edit(whole: dict[str, bytes], schema: Any) -> None:
        schema["content"][name]["content"] = content

    rewrite(model, tmp_path / "made.skops", edit)
    refused(tmp_path / "made.skops")


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
    assert outcomes["scored"] > 50
