"""EvidenceChain's own experiment on its audit corpus or on RAGTruth.

Six methods, with the paper's features and protocol.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hallulab.detectors.evidence_chain.model import ChainModel, Context, Method
from hallulab.detectors.evidence_chain.training import CALIBRATION, DEEP, train
from hallulab.detectors.features.batch import Batch, Pieces, make_batch, make_case
from hallulab.detectors.features.judgements import Scores
from hallulab.detectors.features.trained_detector import mark_gold
from hallulab.scenarios.datasets import load_labelled
from hallulab.scenarios.datasets.audit_corpus import generate
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.labelled import LabelledReply
from hallulab.simulator.statistics.detection import Booleans, Sample

SEED = 17
"""The paper's."""

METHODS: dict[Method, str] = {
    "lexical": "Lexical",
    "bm25": "BM25",
    "tfidf": "TFIDF",
    "nli-rules": "NLI_Rules",
    "lr": "EvidenceChain_LR",
    "rf": "EvidenceChain_RF",
}
"""The methods and what the paper's tables call them."""

CONTEXT: tuple[Context, ...] = ("task", "collection", "generator", "temperature")
"""Origin of a reply that the paper's trained methods read; here everything is known."""


_TEST_SHARE, _CALIBRATION_SHARE = 0.3, 0.2


@dataclass(frozen=True)
class Study:
    """The corpus and the methods' results on its test part."""

    replies: Sequence[LabelledReply]
    """The whole corpus."""
    test: Sequence[LabelledReply]
    """The part to measure on."""
    models: Mapping[Method, ChainModel]
    """Models trained on the rest."""
    scores: Mapping[Method, Scores]
    """Scores of the test part."""
    seconds: Mapping[Method, float]
    """Seconds of training and judging."""

    @property
    def batch(self) -> Batch:
        """The test part, cut into sentences and words."""
        return self.scores["lexical"].batch

    @property
    def train(self) -> list[LabelledReply]:
        """The part to learn from, calibration included."""
        return [one for one in self.replies if one.meta["split"] != "test"]

    def words(self, method: Method) -> Sample:
        """Return the test part's words, without those of punctuation only (the paper: "excluded")."""
        kept = spoken_words(self.batch)
        scores = self.scores[method].words
        return self._sample(self.batch.words, scores, self.models[method].thresholds.word).only(kept)

    def sentences(self, method: Method) -> Sample:
        """Return the test part's sentences."""
        threshold = self.models[method].thresholds.sentence
        return self._sample(self.batch.sentences, self.scores[method].sentences, threshold)

    def _sample(self, pieces: Pieces, scores: np.ndarray, threshold: float) -> Sample:
        return Sample(mark_gold(pieces, self.test), scores, scores >= threshold, pieces.reply)


def read_ragtruth(folder: Path) -> tuple[LabelledReply, ...]:
    """Read RAGTruth's two files, and divide its replies by source, as the paper does.

    The official test split is the test part. Where the files have none, it is 30% of the sources. A fifth of
    the other sources is for calibration. Sources are drawn by a hash of their identifiers.

    Raises:
        UsageError: the files are missing or wrong.
    """
    replies = tuple(load_labelled("ragtruth", folder))
    official = {one.group for one in replies if one.meta.get("split") == "test"}
    groups = sorted({one.group for one in replies} - official, key=lambda group: digest([SEED, group]))
    held_back = 0 if official else round(_TEST_SHARE * len(groups))
    test, rest = official | set(groups[:held_back]), groups[held_back:]
    calibration = set(rest[: round(_CALIBRATION_SHARE * len(rest))])
    part = {group: "test" if group in test else "train" for group in {one.group for one in replies}}
    part |= dict.fromkeys(calibration, CALIBRATION)
    return tuple(one.model_copy(update={"meta": {**one.meta, "split": part[one.group]}}) for one in replies)


def run_study(replies: Sequence[LabelledReply] | None = None) -> Study:
    """Train the six methods on the training part of replies, and judge the test part.

    Args:
        replies: with `meta["split"]`; None: those of the audit corpus.
    """
    replies = tuple(generate(SEED) if replies is None else replies)
    learnt = [one for one in replies if one.meta["split"] != "test"]
    test = [one for one in replies if one.meta["split"] == "test"]
    cases = [make_case(one) for one in test]
    models: dict[Method, ChainModel] = {}
    scores: dict[Method, Scores] = {}
    seconds: dict[Method, float] = {}
    for method in METHODS:
        started = time.perf_counter()
        models[method] = train(method, learnt, SEED, "paper", CONTEXT, DEEP)
        scores[method] = models[method].score(cases)
        seconds[method] = time.perf_counter() - started
    return Study(replies, test, models, scores, seconds)


def spoken_words(batch: Batch) -> Booleans:
    """Return whether each word has a letter or digit, of shape (words,)."""
    spoken = np.zeros(len(batch.words), dtype=bool)
    spoken[batch.token_word] = True
    spoken[batch.token_last_word] = True
    return spoken


def cut(replies: Sequence[LabelledReply]) -> Batch:
    """Cut labelled replies into sentences and words."""
    return make_batch([make_case(one) for one in replies])
