"""The model of EvidenceChain: the risks of words, sentences and replies, and how it is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hallulab.detectors.base.classifiers import Classifier
from hallulab.detectors.base.trained_file import read_classifier, read_trained, write_trained
from hallulab.detectors.features.batch import Batch, Numbers, ReplyWithEvidence, make_batch
from hallulab.detectors.features.features import Features, FeatureSet, measure
from hallulab.detectors.features.judgements import LevelThresholds, Scores, compute_reply_scores
from hallulab.detectors.features.matching import DocumentFrequency
from hallulab.detectors.features.trained_detector import RuleOptions, try_out

Method = Literal["lexical", "bm25", "tfidf", "nli-rules", "lr", "rf"]
"""The paper's six methods (Method), in lower case."""

Context = Literal["task", "collection", "generator", "temperature"]
"""Features of a reply's origin for the trained methods."""

Categories = dict[str, list[str]]
"""Context → the values seen in training; each is one input."""


def compute_rule_risk(method: Method, features: Features) -> Numbers:
    """Return (sentences,): risk in [0, 1] by a method without training.

    Lexical: 1 - coverage. BM25: 1 - the mean of BM25 score and coverage (the paper blends, and does not say
    how). TF-IDF: 1 - cosine. NLI rules: 1 with any number or entity that is not supported ("directly
    flagging"), else 1 - coverage (the paper's maximum of three risks).
    """
    uncovered: Numbers = 1 - features.column("lexical_coverage")
    if method == "lexical":
        return uncovered
    if method == "bm25":
        blended: Numbers = (uncovered + 1 - features.column("bm25")) / 2
        return blended
    if method == "tfidf":
        unlike: Numbers = 1 - features.column("tfidf")
        return unlike
    if method == "nli-rules":
        mismatches = features.column("numeric_mismatches") + features.column("entity_mismatches")
        worst: Numbers = np.maximum(uncovered, mismatches > 0)
        return worst
    raise ValueError(f"{method} is trained, it is no rule")


def list_categories(cases: Sequence[ReplyWithEvidence], context: Sequence[Context]) -> Categories:
    """Return the sorted values of each part of the context; `temperature` is a number and has none."""
    return {
        name: sorted({value for case in cases if (value := str(getattr(case, name)))})
        for name in context
        if name != "temperature"
    }


def build_model_inputs(
    batch: Batch, features: Features, context: Sequence[Context], categories: Categories
) -> Numbers:
    """Return (sentences, inputs): sentence features, temperature, one 0-1 column for each category.

    The temperature is there only if the context has it, and 0 if unknown. A value never seen in training has
    0 in all columns.
    """
    columns: list[list[float]] = []
    if "temperature" in context:
        columns.append([case.temperature or 0.0 for case in batch.cases])
    for name, values in categories.items():
        columns += [[float(getattr(case, name) == value) for case in batch.cases] for value in values]
    if not columns:
        return features.sentences
    return np.column_stack([features.sentences, np.array(columns).T[batch.sentences.reply]])


FORMAT = 2
"""Format number of the files; another number is refused."""

REMEDY = "Train it anew with `python -m benchmarks.train_evidence_chain`."


@dataclass(frozen=True)
class ChainModel:
    """A method with all that it learnt."""

    method: Method
    features: FeatureSet
    """The features of a sentence that it reads."""
    frequency: DocumentFrequency
    """Word frequencies, for TF-IDF and rarity."""
    thresholds: LevelThresholds
    """Chosen on the training data; see `training`."""
    identity: str
    """Hash of what it was trained on and with."""
    context: tuple[Context, ...] = ()
    """The facts about a reply's origin that it reads."""
    categories: Categories = field(default_factory=dict)
    """The values that it knows of each."""
    languages: tuple[str, ...] = ("en",)
    """Codes of the languages that it learnt from, see `list_learnt_languages`."""
    sentence_classifier: Classifier | None = None
    """None for a rule."""
    word_classifier: Classifier | None = None
    """Predicts how likely a word of a hallucinated sentence is hallucinated; None: the paper's novelty."""

    def score(self, cases: Sequence[ReplyWithEvidence]) -> Scores:
        """Return the risks of all replies, sentences and words."""
        batch = make_batch(cases, list_numbers=self.sentence_classifier is not None)
        return self.score_batch(batch, measure(batch, self.frequency, self.features))

    def score_batch(self, batch: Batch, features: Features) -> Scores:
        """Return the risks of replies that are already cut and measured.

        A word's risk is its sentence's times the evidence against the word (the paper: "the sentence
        probability is multiplied by token novelty"). Numbers are rounded to 6 decimals.
        """
        if not len(batch.sentences):
            return Scores(batch, features, np.zeros(0), np.zeros(0), np.zeros(len(batch.cases)))
        if self.sentence_classifier is None:
            sentences = compute_rule_risk(self.method, features)
        else:
            inputs = build_model_inputs(batch, features, self.context, self.categories)
            sentences = self.sentence_classifier.predict(inputs)
        evidence = features.evidence
        if self.word_classifier is not None:
            if features.words is None:
                raise ValueError("the extended features are needed")
            evidence = self.word_classifier.predict(features.words)
        sentences = np.round(sentences, 6)
        words = np.round(sentences[batch.word_sentence] * evidence, 6)
        return Scores(batch, features, sentences, words, compute_reply_scores(batch, sentences))


def save_model(model: ChainModel, path: Path) -> None:
    """Write the model to a file that `load_model` reads."""
    held = {
        "method": model.method,
        "features": model.features,
        **model.frequency.held(),
        "thresholds": model.thresholds.model_dump(),
        "identity": model.identity,
        "context": list(model.context),
        "categories": model.categories,
        "languages": list(model.languages),
        "sentence_classifier": model.sentence_classifier,
        "word_classifier": model.word_classifier,
    }
    write_trained(held, FORMAT, path)


def load_model(path: Path) -> ChainModel:
    """Read a file of `save_model`. Nothing in it is executed.

    Raises:
        UsageError: it is no such file.
    """
    return read_trained(path, FORMAT, REMEDY, _build_model)


def _build_model(held: dict[str, Any]) -> ChainModel:
    return try_out(
        ChainModel(
            method=held["method"],
            features=held["features"],
            frequency=DocumentFrequency.of_held(held),
            thresholds=LevelThresholds.model_validate(held["thresholds"]),
            identity=held["identity"],
            context=tuple(held["context"]),
            categories=held["categories"],
            languages=tuple(held.get("languages", ["en"])),
            sentence_classifier=read_classifier(held, "sentence_classifier"),
            word_classifier=read_classifier(held, "word_classifier"),
        )
    )


class TrainedOptions(RuleOptions):
    """Options of `evidence-chain-lr` and `evidence-chain-rf`."""

    features: FeatureSet = "extended"
    """The paper's features, or ours as well."""
    context: tuple[Context, ...] = ("task",)
    """Features of a reply's origin, if the detector is trained. For a chatbot's reply only the task is
    known. The rest needs labelled replies; a missing value counts as never seen."""
