"""The detector `combined`, and how its classifiers are trained.

Groups are dealt out to parts (`assign_parts`). Classifiers of words and sentences score each part after
learning from the other parts. So the classifiers of replies, which read those scores, learn from scores like
those of new replies, and thresholds are chosen on scores of replies that were held out. The final classifiers
learn from all parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hallulab.detectors.base.classifiers import Classifier, freeze
from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.combined.model import (
    CombinedModel,
    FeatureInputs,
    PieceClassifiers,
    ReplyClassifiers,
    build_reply_inputs,
    combine,
    load_model,
    measure_batch,
    score_pieces,
)
from hallulab.detectors.features.batch import Flags, Integers, Numbers, make_batch, make_case
from hallulab.detectors.features.features import NOVEL, measure
from hallulab.detectors.features.judgements import LevelThresholds, Scores
from hallulab.detectors.features.trained_detector import (
    SHALLOW,
    RuleOptions,
    TrainedDetector,
    assign_parts,
    choose_threshold,
    count_forms,
    list_learnt_languages,
    make_forest,
    make_scaled_regression,
    mark_gold,
)
from hallulab.scenarios.components import read_options
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.labelled import LabelledReply


def train(replies: Sequence[LabelledReply], seed: int = 0) -> CombinedModel:
    """Train on labelled replies: words and sentences on those with spans, replies on all.

    Without spans there are no classifiers of words and sentences. Without a clean reply there is no
    classifier of replies: a collection of hallucinated claims teaches only places.

    Args:
        replies: those without a label and without spans are left out.
        seed: of the parts and the trees.

    Raises:
        UsageError: there is only one class, or fewer than two groups.
    """
    known = [one for one in replies if one.label is not None or one.spans is not None]
    batch = make_batch([make_case(one) for one in known])
    frequency = count_forms(batch)
    material = _Material(
        measured=measure_batch(batch, measure(batch, frequency, "extended")),
        labels=np.array([one.hallucinated for one in known], dtype=bool),
        has_spans=np.array([one.spans is not None for one in known], dtype=bool),
        sentence_labels=mark_gold(batch.sentences, known),
        word_labels=mark_gold(batch.words, known),
        part=assign_parts(known, seed),
        seed=seed,
    )
    pieces, whole, thresholds = material.learn()
    return CombinedModel(
        frequency=frequency,
        pieces=pieces,
        replies=whole,
        thresholds=thresholds,
        identity=digest([seed, sorted(one.model_dump_json() for one in known)])[:16],
        languages=list_learnt_languages(known),
    )


@dataclass(frozen=True)
class _Material:
    """Training data of the classifiers. Labels have shape (replies,), (sentences,), (words,)."""

    measured: FeatureInputs
    labels: Flags
    has_spans: Flags
    """(replies,)"""
    sentence_labels: Flags
    word_labels: Flags
    part: Integers
    """(replies,): the part of each reply."""
    seed: int

    def learn(self) -> tuple[PieceClassifiers | None, ReplyClassifiers | None, LevelThresholds]:
        """Return the final classifiers and the thresholds."""
        everything = np.ones(len(self.labels), dtype=bool)
        located = bool(self.word_labels.any())
        pieces = self._pieces(everything) if located else None
        sentences, words = self._held_out_pieces() if located else score_pieces(None, self.measured)
        inputs = build_reply_inputs(self.measured, words if located else None)
        whole, held_out = None, None
        if not (located and self.labels.all()):
            held_out = np.zeros(len(self.labels))
            for learnt, judged in self._cuts():
                held_out[judged] = self._whole(inputs, learnt).score(inputs[judged])
            whole = self._whole(inputs, everything)
        scores = combine(self.measured, sentences, words, held_out, located=located)
        return pieces, whole, self._thresholds(scores, located)

    def _cuts(self) -> Iterator[tuple[Flags, Flags]]:
        """Yield for each part two masks (replies,): replies to learn from, and replies to score."""
        for part in np.unique(self.part):
            yield self.part != part, self.part == part

    def _held_out_pieces(self) -> tuple[Numbers, Numbers]:
        """Return (sentences,) and (words,): scores by classifiers that did not see the reply's part."""
        batch = self.measured.batch
        sentences, words = np.zeros(len(batch.sentences)), np.zeros(len(batch.words))
        for learnt, judged in self._cuts():
            of_sentences, of_words = score_pieces(self._pieces(learnt), self.measured)
            at_sentences, at_words = judged[batch.sentences.reply], judged[batch.words.reply]
            sentences[at_sentences], words[at_words] = of_sentences[at_sentences], of_words[at_words]
        return sentences, words

    def _pieces(self, learnt: Flags) -> PieceClassifiers:
        from sklearn.ensemble import HistGradientBoostingClassifier

        # Words are many, and boosting did better on RAGTruth than a forest.
        boosting = HistGradientBoostingClassifier(
            max_iter=100,
            learning_rate=0.06,
            max_leaf_nodes=15,
            min_samples_leaf=40,
            l2_regularization=5.0,
            max_features=0.5,
            random_state=self.seed,
        )
        measured, learnt = self.measured, learnt & self.has_spans
        at_words = learnt[measured.batch.words.reply]
        at_sentences = learnt[measured.batch.sentences.reply]
        labels = self.sentence_labels[at_sentences]
        return PieceClassifiers(
            words=_fit(boosting, measured.words(at_words), self.word_labels[at_words]),
            sentences=None
            if self.sentence_labels[self.has_spans[measured.batch.sentences.reply]].all()
            else _fit(make_forest(SHALLOW, self.seed), measured.sentences[at_sentences], labels),
        )

    def _whole(self, inputs: Numbers, learnt: Flags) -> ReplyClassifiers:
        from sklearn.ensemble import ExtraTreesClassifier

        randomised = ExtraTreesClassifier(  # replies are few and have many inputs
            150, max_depth=8, min_samples_leaf=4, max_features=0.3, random_state=self.seed, n_jobs=1
        )
        return ReplyClassifiers(
            linear=_fit(make_scaled_regression(C=0.02, max_iter=3000), inputs[learnt], self.labels[learnt]),
            trees=_fit(randomised, inputs[learnt], self.labels[learnt]),
        )

    def _thresholds(self, scores: Scores, located: bool) -> LevelThresholds:
        response = choose_threshold(self.labels, scores.replies)
        if not located:  # a new word of a reply at the threshold is flagged, a known one is not
            return LevelThresholds(word=response * NOVEL, sentence=response * NOVEL, response=response)
        batch = scores.batch
        in_words, in_sentences = self.has_spans[batch.words.reply], self.has_spans[batch.sentences.reply]
        return LevelThresholds(
            word=choose_threshold(self.word_labels[in_words], scores.words[in_words]),
            sentence=choose_threshold(self.sentence_labels[in_sentences], scores.sentences[in_sentences]),
            response=response,
        )


def _fit(classifier: Any, inputs: Numbers, labels: Flags) -> Classifier:
    if labels.all() or not labels.any():
        raise UsageError(
            "combined learns to tell hallucinated from clean texts, and a part of the labelled replies is "
            f"{'all' if len(labels) and labels.all() else 'never'} hallucinated. Give more groups, of both "
            "kinds."
        )
    return freeze(classifier.fit(inputs, labels))


class CombinedDetector(TrainedDetector[CombinedModel]):
    """Our own: classifiers of words, sentences and replies over what all the cheap methods measure.

    It needs no model server and no weights. It reads EvidenceChain's features (the extended set) and how much
    of the reply is copied from the evidence. docs/studies/published-methods.md describes the
    classifiers and how well they do. The model in the package learnt from RAGTruth, WiCE and BEGIN.
    """

    KIND = "combined"

    def __init__(self, name: str, context: DetectorContext) -> None:
        options = read_options(f"detector {name}", RuleOptions, context.options)
        super().__init__(
            name, options, load_model(Path(options.model)) if options.model else _load_once(SHIPPED)
        )

    def fit(self, replies: Sequence[LabelledReply], seed: int = 0) -> None:
        """See `TrainableDetector.fit`."""
        self._use(train(replies, seed))


SHIPPED = Path(__file__).parent / "trained" / "combined.npz"
"""The model that comes with the package."""

_load_once = cache(load_model)
