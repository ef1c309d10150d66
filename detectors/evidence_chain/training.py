"""Train a method on the sentences of the training data; choose thresholds on replies held out of it.

Protocol of the paper: thresholds are chosen "on a calibration subset carved deterministically from the
training split by source", one for all tasks and generators, and frozen. Data that comes with such a subset is
used so. In other data, a fifth would have too few hallucinations to choose a threshold by. Ours: every fifth
is held out in turn and scored by classifiers that learnt from the others. The final classifiers learn from
all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hallulab.detectors.base.classifiers import freeze
from hallulab.detectors.evidence_chain.model import (
    ChainModel,
    Context,
    Method,
    build_model_inputs,
    list_categories,
)
from hallulab.detectors.features.batch import Batch, Flags, make_batch, make_case
from hallulab.detectors.features.features import Features, FeatureSet, measure
from hallulab.detectors.features.judgements import LevelThresholds, Scores
from hallulab.detectors.features.trained_detector import (
    SHALLOW,
    Forest,
    assign_parts,
    choose_threshold,
    count_forms,
    list_learnt_languages,
    make_forest,
    make_scaled_regression,
    mark_gold,
)
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.labelled import LabelledReply

CALIBRATION = "calibration"
"""The value of `meta["split"]` that marks the replies for choosing thresholds."""


DEEP = Forest(trees=200, depth=12, leaf=1)
"""Forest for the audit corpus, whose labels are exact; chosen on the sentences of its calibration split."""


def train(
    method: Method,
    replies: Sequence[LabelledReply],
    seed: int = 0,
    features: FeatureSet = "paper",
    context: Sequence[Context] = ("task",),
    forest: Forest = SHALLOW,
) -> ChainModel:
    """Train a method. One without training only gets thresholds and word counts.

    Args:
        replies: hallucinated ones without spans are left out: nobody knows where they are wrong.
        seed: of the parts and the forest.
        features: read by `lr` and `rf`; the rules read the paper's.
        context: read by `lr` and `rf`.
        forest: size of `rf`.

    Raises:
        UsageError: the replies have no spans, only one class, or fewer than two groups.
    """
    known = [one for one in replies if one.spans is not None or one.label is False]
    if not any(one.spans for one in known):
        raise UsageError(
            f"evidence-chain-{method} learns from hallucinated spans, and the labelled replies have none. "
            "Give replies with spans."
        )
    held_out = hold_out(known, seed)
    supervised = method in ("lr", "rf")
    batch = make_batch([make_case(one) for one in known], list_numbers=supervised)
    material = batch
    if not held_out.learnt.all():
        material = make_batch(
            [make_case(one) for one in held_out.to_learn_from(known)], list_numbers=supervised
        )
    read: tuple[Context, ...] = tuple(context) if supervised else ()
    learnt_from = sorted(one.model_dump_json() for one in known)
    model = ChainModel(
        method=method,
        features=features if supervised else "paper",
        frequency=count_forms(material),
        thresholds=LevelThresholds(word=1.0, sentence=1.0, response=1.0),
        identity=digest([method, features, read, forest, seed, learnt_from])[:16],
        context=read,
        categories=list_categories(material.cases, read),
        languages=list_learnt_languages(known),
    )
    measured = measure(batch, model.frequency, model.features)
    if supervised:
        learner = _Learner(model, batch, measured, known, forest, seed)
        scores = learner.held_out_scores(held_out.parts)
        model = learner.fit(held_out.learnt)
    else:
        scores = model.score_batch(batch, measured)
    return replace(model, thresholds=_choose_thresholds(scores, known, held_out.judged, method))


class TrainingSplit(NamedTuple):
    """Which replies are learnt from, and which are held out. Masks have shape (replies,)."""

    parts: tuple[Flags, ...]
    """Parts for the thresholds; each is scored by what learnt from the others."""
    learnt: Flags
    """Replies that the final model learns from."""

    @property
    def judged(self) -> Flags:
        """Mask of the replies that thresholds are chosen on."""
        judged: Flags = np.logical_or.reduce(self.parts)
        return judged

    def to_learn_from(self, replies: Sequence[LabelledReply]) -> list[LabelledReply]:
        """Return the replies that `learnt` marks."""
        return [one for one, learnt in zip(replies, self.learnt.tolist(), strict=True) if learnt]


def hold_out(replies: Sequence[LabelledReply], seed: int) -> TrainingSplit:
    """Return the replies to hold out for thresholds alone: the groups with `split: calibration`.

    If there are none, hold out each part in turn, and learn from everything.

    Raises:
        UsageError: there are fewer than two groups, or nothing is left to learn from.
    """
    own = {one.group for one in replies if one.meta.get("split") == CALIBRATION}
    parts = assign_parts(replies, seed)
    if not own:
        return TrainingSplit(
            tuple(parts == part for part in np.unique(parts)), np.ones(len(replies), dtype=bool)
        )
    calibration = np.array([one.group in own for one in replies])
    if calibration.all():
        raise UsageError("All training replies are marked `split: calibration`. Mark some otherwise.")
    return TrainingSplit((calibration,), ~calibration)


class _Learner:
    """Fits classifiers to some of the replies of a batch."""

    def __init__(
        self,
        model: ChainModel,
        batch: Batch,
        features: Features,
        replies: Sequence[LabelledReply],
        forest: Forest,
        seed: int,
    ) -> None:
        self._model, self._batch, self._features = model, batch, features
        self._forest, self._seed = forest, seed
        self._inputs = build_model_inputs(batch, features, model.context, model.categories)
        self._sentences, self._words = mark_gold(batch.sentences, replies), mark_gold(batch.words, replies)

    def fit(self, learnt: Flags) -> ChainModel:
        """Return the model learnt from the replies of the mask (replies,).

        Raises:
            UsageError: all or none of their sentences are hallucinated.
        """
        batch, features = self._batch, self._features
        rows = learnt[batch.sentences.reply]
        labels = self._sentences[rows]
        if labels.all() or not labels.any():
            raise UsageError(
                f"evidence-chain-{self._model.method}: of the sentences to learn from, "
                f"{'all' if labels.all() else 'none'} are hallucinated. Add groups where that is not so."
            )
        words = None
        if features.words is not None:
            wrong = learnt[batch.words.reply] & self._sentences[batch.word_sentence]
            if not self._words[wrong].all():  # where spans are whole sentences, nothing tells words apart
                regression = make_scaled_regression(max_iter=2000)
                words = freeze(regression.fit(features.words[wrong], self._words[wrong]))
        return replace(
            self._model,
            sentence_classifier=freeze(self._classifier().fit(self._inputs[rows], labels)),
            word_classifier=words,
        )

    def held_out_scores(self, parts: Sequence[Flags]) -> Scores:
        """Return the scores of each part (replies,) by classifiers that learnt from all others; else 0."""
        batch, features = self._batch, self._features
        found = [self.fit(~part).score_batch(batch, features) for part in parts]
        return Scores(
            batch,
            features,
            sentences=np.select(
                [part[batch.sentences.reply] for part in parts], [one.sentences for one in found]
            ),
            words=np.select([part[batch.words.reply] for part in parts], [one.words for one in found]),
            replies=np.select(parts, [one.replies for one in found]),
        )

    def _classifier(self) -> Any:
        if self._model.method == "rf":
            return make_forest(self._forest, self._seed)
        return make_regression(len(self._features.columns) + ("temperature" in self._model.context))


def make_regression(numeric: int) -> Any:
    """Make a logistic regression: balanced class weights; the first `numeric` inputs are standardised."""
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scaled = ColumnTransformer([("numeric", StandardScaler(), list(range(numeric)))], remainder="passthrough")
    return make_pipeline(scaled, LogisticRegression(class_weight="balanced", max_iter=2000))


def _choose_thresholds(
    scores: Scores, replies: Sequence[LabelledReply], judged: Flags, method: Method
) -> LevelThresholds:
    batch = scores.batch
    words, sentences = judged[batch.words.reply], judged[batch.sentences.reply]
    word_labels = mark_gold(batch.words, replies)[words]
    if not word_labels.any():
        raise UsageError(
            f"evidence-chain-{method}: no word of the calibration split is hallucinated. Add more groups."
        )
    labels = np.array([one.hallucinated for one in replies])
    return LevelThresholds(
        word=choose_threshold(word_labels, scores.words[words]),
        sentence=choose_threshold(
            mark_gold(batch.sentences, replies)[sentences], scores.sentences[sentences]
        ),
        response=choose_threshold(labels[judged], scores.replies[judged]),
    )
