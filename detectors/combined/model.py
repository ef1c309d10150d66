"""The model of the combined detector: features of sentences and how they are weighed.

Measure the inputs of the classifiers: EvidenceChain's features, and how much of a reply is copied.
Inputs of a word: EvidenceChain's word features (extended set), those of its sentence, and the task. Of a
sentence: its features and the task. Of a reply: mean, largest and smallest of each sentence feature, the
task, `COPY_FEATURES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hallulab.detectors.base.classifiers import Classifier
from hallulab.detectors.base.trained_file import read_classifier, read_trained, write_trained
from hallulab.detectors.combined.copying import measure_copying
from hallulab.detectors.features.batch import Batch, Flags, Integers, Numbers, ReplyWithEvidence, make_batch
from hallulab.detectors.features.features import Features, measure
from hallulab.detectors.features.judgements import LevelThresholds, Scores, compute_reply_scores
from hallulab.detectors.features.matching import DocumentFrequency
from hallulab.detectors.features.trained_detector import try_out

TASKS = ("qa", "summary", "data2txt")

CERTAIN = (0.05, 0.1, 0.2, 0.3, 0.5)
"""Word scores; for each, the words of a reply that reach it are counted."""

WORST = (3, 5, 10, 20)
"""Scores are averaged over this many worst words."""


@dataclass(frozen=True)
class FeatureInputs:
    """The inputs of the classifiers."""

    batch: Batch
    features: Features
    """EvidenceChain's features, extended set."""
    sentences: Numbers
    """(sentences, inputs)"""
    replies: Numbers
    """(replies, inputs), without the inputs from word scores."""

    def words(self, rows: Flags | slice) -> Numbers:
        """Return (rows, inputs) of some of the words.

        Raises:
            ValueError: there are no features of words.
        """
        if self.features.words is None:
            raise ValueError("the extended features are needed")
        owner = self.batch.word_sentence[rows]
        return np.hstack([self.features.words[rows], self.sentences[owner]])


def measure_all(cases: Sequence[ReplyWithEvidence], frequency: DocumentFrequency) -> FeatureInputs:
    """Measure words, sentences and replies."""
    batch = make_batch(cases)
    return measure_batch(batch, measure(batch, frequency, "extended"))


def measure_batch(batch: Batch, features: Features) -> FeatureInputs:
    """Measure from EvidenceChain's features of the extended set."""
    task = np.array([[float(case.task == name) for name in TASKS] for case in batch.cases]).reshape(-1, 3)
    of_sentences = np.hstack([features.sentences, task[batch.sentences.reply]])
    summaries = compute_mean_max_min(features.sentences, batch.sentences.reply, len(batch.cases))
    return FeatureInputs(
        batch=batch,
        features=features,
        sentences=of_sentences,
        replies=np.hstack([summaries, task, measure_copying(batch)]),
    )


def compute_mean_max_min(values: Numbers, owner: Integers, owners: int) -> Numbers:
    """Return (owners, 3 × columns): mean, largest and smallest of each column over the rows of each owner.

    An owner without rows has 0.

    Args:
        values: (rows, columns).
        owner: (rows,), ascending.
        owners: how many there are.
    """
    present, first, rows = np.unique(owner, return_index=True, return_counts=True)
    found: Numbers = np.zeros((owners, 3 * values.shape[1]))
    if present.size:
        total, largest, smallest = (
            reduce.reduceat(values, first, axis=0) for reduce in (np.add, np.maximum, np.minimum)
        )
        found[present] = np.hstack([total / rows[:, None], largest, smallest])
    return found


def summarize_word_scores(scores: Numbers, reply: Integers, replies: int) -> Numbers:
    """Return (replies, inputs): how many words of a reply are bad, and how bad the worst ones are.

    Args:
        scores: (words,), in [0, 1].
        reply: (words,): index of the word's reply.
        replies: how many there are.
    """
    doubt = np.bincount(reply, -np.log1p(-np.minimum(scores, 0.999)), replies)
    counts = [np.bincount(reply, scores >= level, replies) for level in CERTAIN]
    order = np.lexsort((-scores, reply))
    worst_first, owner = scores[order], reply[order]
    rank = np.arange(len(owner)) - np.searchsorted(owner, owner)
    size = np.bincount(reply, minlength=replies)
    means = [
        np.bincount(owner, worst_first * (rank < most), replies) / np.maximum(np.minimum(size, most), 1)
        for most in WORST
    ]
    return np.column_stack(
        [compute_mean_max_min(scores[:, None], reply, replies), doubt, np.log1p(doubt), *means, *counts, size]
    )


FORMAT = 2
"""Format number of the files; another number is refused."""

BLOCK = 4096
"""Words whose inputs are made together; more would only use memory."""

REMEDY = "Train it anew with `python -m benchmarks.train_combined`."


@dataclass(frozen=True)
class PieceClassifiers:
    """Classifiers of words and sentences; they learn from replies with spans."""

    words: Classifier
    """Predicts whether a word is hallucinated."""
    sentences: Classifier | None = None
    """Predicts whether a sentence holds a hallucination. None: all sentences it learnt from did, for example
    in a collection of hallucinated claims."""


@dataclass(frozen=True)
class ReplyClassifiers:
    """Classifiers of whole replies; their probabilities are averaged."""

    linear: Classifier
    """A logistic regression."""
    trees: Classifier

    def score(self, inputs: Numbers) -> Numbers:
        """Return (replies,), the mean of both, from inputs of shape (replies, inputs)."""
        return (self.linear.predict(inputs) + self.trees.predict(inputs)) / 2


@dataclass(frozen=True)
class CombinedModel:
    """Everything that the detector learnt."""

    frequency: DocumentFrequency
    """Word frequencies; they tell how rare a word is."""
    pieces: PieceClassifiers | None
    """None: it learnt from replies without spans, and has no classifier of words."""
    replies: ReplyClassifiers | None
    """Classifiers of whole replies. None: all replies it learnt from were hallucinated."""
    thresholds: LevelThresholds
    """Chosen on replies that the scores were not learnt from."""
    identity: str
    """Hash of what it was trained on."""
    languages: tuple[str, ...] = ("en",)
    """Codes of the languages that it learnt from, see `list_learnt_languages`."""

    def score(self, cases: Sequence[ReplyWithEvidence]) -> Scores:
        """Return the risks of all replies, sentences and words, rounded to 6 decimals."""
        measured = measure_all(cases, self.frequency)
        if not len(measured.batch.sentences):
            nothing = np.zeros(0)
            return Scores(measured.batch, measured.features, nothing, nothing, np.zeros(len(cases)))
        sentences, words = score_pieces(self.pieces, measured)
        whole = None
        if self.replies is not None:
            whole = self.replies.score(build_reply_inputs(measured, None if self.pieces is None else words))
        return combine(measured, sentences, words, whole, located=self.pieces is not None)


def score_pieces(pieces: PieceClassifiers | None, measured: FeatureInputs) -> tuple[Numbers, Numbers]:
    """Return (sentences,) and (words,): the classifiers' risks; a word's is multiplied by its sentence's.

    Without a classifier of sentences, a sentence has the risk of its worst word, and words keep their own.
    Without any classifier, a sentence's risk is the share of its words that the evidence lacks, and a word's
    is EvidenceChain's evidence against it.
    """
    owner = measured.batch.word_sentence
    if pieces is None:
        return 1 - measured.features.column("lexical_coverage"), measured.features.evidence
    words = np.concatenate(
        [
            pieces.words.predict(measured.words(slice(start, start + BLOCK)))
            for start in range(0, len(owner), BLOCK)
        ]
    )
    if pieces.sentences is None:
        worst = np.zeros(len(measured.batch.sentences))
        np.maximum.at(worst, owner, words)
        return worst, words
    sentences = pieces.sentences.predict(measured.sentences)
    return sentences, words * sentences[owner]


def build_reply_inputs(measured: FeatureInputs, words: Numbers | None) -> Numbers:
    """Return (replies, inputs) for `ReplyClassifiers`.

    Args:
        words: (words,) scores of words; None: there are no classifiers of words.
    """
    if words is None:
        return measured.replies
    batch = measured.batch
    return np.hstack([measured.replies, summarize_word_scores(words, batch.words.reply, len(batch.cases))])


def combine(
    measured: FeatureInputs, sentences: Numbers, words: Numbers, whole: Numbers | None, *, located: bool
) -> Scores:
    """Return the scores for the report.

    Args:
        sentences: (sentences,) risks.
        words: (words,) risks.
        whole: (replies,) risks by `ReplyClassifiers`; None: there are none.
        located: whether classifiers judged sentences and words. If so, a reply's risk is the mean of `whole`
            and its worst sentence's, or the latter alone. If not, it is `whole`, which multiplies the others.
    """
    batch = measured.batch
    if located or whole is None:
        worst = compute_reply_scores(batch, sentences)
        whole = worst if whole is None else (whole + worst) / 2
    else:
        sentences = sentences * whole[batch.sentences.reply]
        words = words * whole[batch.words.reply]
    return Scores(batch, measured.features, np.round(sentences, 6), np.round(words, 6), np.round(whole, 6))


def save_model(model: CombinedModel, path: Path) -> None:
    """Write the model to a file that `load_model` reads."""
    pieces, replies = model.pieces, model.replies
    held = {
        **model.frequency.held(),
        "words": None if pieces is None else pieces.words,
        "sentences": None if pieces is None else pieces.sentences,
        "linear": None if replies is None else replies.linear,
        "trees": None if replies is None else replies.trees,
        "thresholds": model.thresholds.model_dump(),
        "identity": model.identity,
        "languages": list(model.languages),
    }
    write_trained(held, FORMAT, path)


def load_model(path: Path) -> CombinedModel:
    """Read a file of `save_model`. Nothing in it is executed.

    Raises:
        UsageError: it is no such file.
    """
    return read_trained(path, FORMAT, REMEDY, _build_model)


def _build_model(held: dict[str, Any]) -> CombinedModel:
    pieces, replies = None, None
    if held["words"] is not None:
        pieces = PieceClassifiers(read_classifier(held, "words"), read_classifier(held, "sentences"))
    if held["linear"] is not None:
        replies = ReplyClassifiers(read_classifier(held, "linear"), read_classifier(held, "trees"))
    return try_out(
        CombinedModel(
            frequency=DocumentFrequency.of_held(held),
            pieces=pieces,
            replies=replies,
            thresholds=LevelThresholds.model_validate(held["thresholds"]),
            identity=held["identity"],
            languages=tuple(held.get("languages", ["en"])),
        )
    )
