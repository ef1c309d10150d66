"""The six EvidenceChain detectors: risks of a reply, its sentences and its words, and their evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import ClassVar, get_args

from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.evidence_chain.model import ChainModel, Context, Method, TrainedOptions, load_model
from hallulab.detectors.evidence_chain.training import train
from hallulab.detectors.features.features import FeatureSet
from hallulab.detectors.features.trained_detector import RuleOptions, TrainedDetector
from hallulab.scenarios.components import read_options
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.labelled import LabelledReply


class EvidenceChainDetector(TrainedDetector[ChainModel]):
    """Shared options of the six methods; the model comes with the package, from `fit`, or from a file.

    A reply's score is the largest of its sentences' scores (the paper scores no replies). A word's score is
    its sentence's times the evidence against the word. See `judge_blocks` for what becomes a span.
    """

    KIND: ClassVar[str]
    method: ClassVar[Method]

    def __init__(self, name: str, context: DetectorContext) -> None:
        options = read_options(f"detector {name}", self.OPTIONS, context.options)
        read = set(options.context) if isinstance(options, TrainedOptions) else set[str]()
        self.traits = replace(self.traits, reads_origin=bool(read - {"task"}))
        super().__init__(
            name, options, load_model(Path(options.model)) if options.model else self._shipped(options)
        )

    def fit(self, replies: Sequence[LabelledReply], seed: int = 0) -> None:
        """See `TrainableDetector.fit`. The methods without training learn thresholds and word frequencies."""
        options = self._options
        if isinstance(options, TrainedOptions):
            self._use(train(self.method, replies, seed, options.features, options.context))
        else:
            self._use(train(self.method, replies, seed))

    def _shipped(self, options: RuleOptions) -> ChainModel:
        """Return the model trained on the task alone; other values of the option `context` need `fit`."""
        features = options.features if isinstance(options, TrainedOptions) else "paper"
        return _load_once(locate_shipped_model(self.method, features))

    def _use(self, model: ChainModel) -> None:
        if model.method != self.method:
            raise UsageError(
                f"detector {self.name}: {self._options.model} holds a model of evidence-chain-{model.method}."
                f" Use that detector, or train evidence-chain-{self.method}."
            )
        super()._use(model)
        if isinstance(self._options, TrainedOptions):
            origin = ", ".join(model.context) or "none"
            self.variant = f"{model.features} features, of the origin: {origin}"
            self.as_published = model.features == "paper" and set(model.context) == set(get_args(Context))


class LexicalChain(EvidenceChainDetector):
    """Words, sentences and replies by the share of content words the evidence lacks (EvidenceChain)."""

    KIND = "evidence-chain-lexical"
    method = "lexical"


class Bm25Chain(EvidenceChainDetector):
    """Words, sentences and replies by the BM25 score of the best evidence chunk (EvidenceChain)."""

    KIND = "evidence-chain-bm25"
    method = "bm25"


class TfidfChain(EvidenceChainDetector):
    """Words, sentences and replies by the TF-IDF cosine of the best evidence chunk (EvidenceChain)."""

    KIND = "evidence-chain-tfidf"
    method = "tfidf"


class NliRulesChain(EvidenceChainDetector):
    """Words, sentences and replies by rules: unsupported numbers and names, low coverage (EvidenceChain)."""

    KIND = "evidence-chain-nli-rules"
    method = "nli-rules"


_TRAINED_VARIANTS = (
    "ours by default: 37 features; `features: paper` with a trained `context` has the paper's ten"
)


class RegressionChain(EvidenceChainDetector):
    """Logistic regression over coverage, retrieval and mismatch features (EvidenceChain-LR)."""

    KIND = "evidence-chain-lr"
    OPTIONS = TrainedOptions
    VARIANTS = _TRAINED_VARIANTS
    method = "lr"


class ForestChain(EvidenceChainDetector):
    """Random forest over coverage, retrieval and mismatch features (EvidenceChain-RF)."""

    KIND = "evidence-chain-rf"
    OPTIONS = TrainedOptions
    VARIANTS = _TRAINED_VARIANTS
    method = "rf"


EVIDENCE_CHAIN = {
    made.KIND: made
    for made in (LexicalChain, Bm25Chain, TfidfChain, NliRulesChain, RegressionChain, ForestChain)
}
"""The six by their registered names."""


def locate_shipped_model(method: Method, features: FeatureSet) -> Path:
    """Return the path of the model that comes with the package."""
    return Path(__file__).parent / "trained" / f"{method}-{features}.npz"


_load_once = cache(load_model)
