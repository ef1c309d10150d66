"""A small model of the combined detector, and changes of its file. Run as a script, because it may crash:

    python -m tests.detectors.base.damaged_models FOLDER SEED NUMBER

Change single numbers and bytes of the file so often, and load and ask what comes of it.
"""

from __future__ import annotations

import io
import json
import random
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier

from hallulab.detectors.base.classifiers import Classifier, freeze
from hallulab.detectors.combined.model import (
    CombinedModel,
    PieceClassifiers,
    ReplyClassifiers,
    build_reply_inputs,
    load_model,
    measure_all,
    save_model,
)
from hallulab.detectors.features.batch import ReplyWithEvidence
from hallulab.detectors.features.judgements import LevelThresholds
from hallulab.detectors.features.matching import DocumentFrequency
from hallulab.detectors.features.trained_detector import make_scaled_regression
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Passage

CASES = [
    ReplyWithEvidence(
        reply=" ".join(f"Ann paid {number} euros for the {thing}." for number in range(1, words)),
        passages=(Passage(id="a-1", document="a", text=f"The {thing} costs 5 euros. Bob paid it."),),
        task=task,
    )
    for words, thing, task in ((2, "kettle", "qa"), (20, "bill", "summary"), (6, "tea", "data2txt"))
]

EXTREME = (-1, 0, 1, 2, 255, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 1e308, -1e308, 0.5)
"""Numbers that are written in place of others, besides NaN and infinities."""


def make_model() -> CombinedModel:
    """A model of few and small trees, learnt from noise."""
    frequency = DocumentFrequency(texts=3, counts={"the": 3, "kettle": 1})
    measured = measure_all(CASES, frequency)
    noise = np.random.default_rng(0)

    def fit(classifier: Any, width: int) -> Classifier:
        inputs = noise.random((60, width))
        return freeze(classifier.fit(inputs, inputs[:, 0] > inputs[:, -1]))

    words = measured.words(slice(None))
    replies = build_reply_inputs(measured, np.zeros(len(words)))
    return CombinedModel(
        frequency=frequency,
        pieces=PieceClassifiers(
            fit(HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5), words.shape[1]),
            fit(RandomForestClassifier(2, max_depth=3), measured.sentences.shape[1]),
        ),
        replies=ReplyClassifiers(
            fit(make_scaled_regression(), replies.shape[1]),
            fit(ExtraTreesClassifier(2, max_depth=3), replies.shape[1]),
        ),
        thresholds=LevelThresholds(word=0.5, sentence=0.5, response=0.5),
        identity="made",
    )


def change(whole: dict[str, bytes], draw: random.Random) -> dict[str, bytes]:
    """One number of an array or of the plain values, or some bytes of a member, become others."""
    name = draw.choice(sorted(whole)) if draw.random() < 0.8 else "plain.npy"
    content = bytearray(whole[name])
    if draw.random() < 0.2:
        for _ in range(draw.randint(1, 4)):
            content[draw.randrange(len(content))] = draw.randrange(256)
        return {**whole, name: bytes(content)}
    array = np.load(io.BytesIO(content), allow_pickle=False).copy()
    if name == "plain.npy":
        plain = json.loads(array.tobytes())
        held = draw.choice([plain, plain["thresholds"]])
        held[draw.choice(sorted(held))] = draw.choice([*EXTREME, None, True, "x", float("nan")])
        array = np.frombuffer(json.dumps(plain).encode(), np.uint8)
    else:
        place = tuple(draw.randrange(size) for size in array.shape)
        new = draw.choice([*EXTREME, float("nan"), float("inf"), draw.randrange(300)])
        with np.errstate(all="ignore"):
            array[place] = np.array(new).astype(array.dtype)
    written = io.BytesIO()
    np.save(written, array)
    return {**whole, name: written.getvalue()}


def main(folder: Path, seed: int, number: int) -> None:
    """Print how many changed files were refused, and how many gave scores."""
    warnings.simplefilter("ignore")
    good, path = folder / "good.npz", folder / "changed.npz"
    save_model(make_model(), good)
    with zipfile.ZipFile(good) as archive:
        whole = {name: archive.read(name) for name in archive.namelist()}
    draw, outcomes = random.Random(seed), {"refused": 0, "scored": 0}
    for _ in range(number):
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in change(whole, draw).items():
                archive.writestr(name, content)
        try:
            model = load_model(path)
        except UsageError:
            outcomes["refused"] += 1
            continue
        found = model.score(CASES)
        for scores in (found.words, found.sentences, found.replies):
            assert ((scores >= 0) & (scores <= 1)).all(), path
        outcomes["scored"] += 1
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
