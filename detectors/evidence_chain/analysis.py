"""The paper's analyses: ablation (Table 8), attribution (Table 9), coverage bins (Table 10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from detectors.evidence_chain.batch import Batch, make_batch
from detectors.evidence_chain.features import PAPER_FEATURES, Attribution, measure
from detectors.evidence_chain.model import Scores
from detectors.evidence_chain.tokens import Flags, Integers, Numbers
from detectors.evidence_chain.training import (
    best_threshold,
    calibration_split,
    case_of,
    count_forms,
    gold,
    regression,
)
from scenarios.labelled import LabelledReply

ABLATIONS: dict[str, tuple[str, ...]] = {
    "All evidence-chain features": PAPER_FEATURES,
    "No lexical coverage": tuple(name for name in PAPER_FEATURES if name != "lexical_coverage"),
    "No retrieval scores": tuple(name for name in PAPER_FEATURES if name not in ("bm25", "tfidf")),
    "No mismatch rules": tuple(name for name in PAPER_FEATURES if not name.endswith("mismatches")),
    "Only lexical coverage": ("lexical_coverage",),
}
"""Table 8: variant → the features it reads."""

COVERAGE_EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Table 10: each bin is open below and closed above; 0 is in the first one."""


@dataclass(frozen=True)
class Ablation:
    """A variant of the logistic regression, on the sentences of the test part."""

    variant: str
    """A key of `ABLATIONS`."""
    labels: Flags
    """(sentences,): whether it is hallucinated."""
    scores: Numbers
    """(sentences,)"""
    threshold: float
    """Chosen on the calibration part."""


@dataclass(frozen=True)
class CoverageBin:
    """Replies whose source coverage lies in one bin."""

    low: float
    """Lower edge."""
    high: float
    """Upper edge."""
    replies: int
    """How many."""
    coverage: float | None
    """Their mean source coverage; None without replies."""
    hallucinated: float | None
    """Their mean share of hallucinated words; None without replies."""


def ablate(train: Sequence[LabelledReply], test: Sequence[LabelledReply], seed: int = 0) -> list[Ablation]:
    """Logistic regression on parts of the paper's features, without a reply's origin.

    Raises:
        UsageError: `train` has fewer than two groups.
    """
    learnt, held_out = calibration_split(train, seed)
    parts = (learnt, held_out, test)
    batches = [make_batch([case_of(one) for one in part]) for part in parts]
    frequency = count_forms(batches[0])
    features = [measure(batch, frequency, "paper").sentences for batch in batches]
    labels = [gold(batch.sentences, part) for batch, part in zip(batches, parts, strict=True)]
    found = []
    for variant, names in ABLATIONS.items():
        chosen = [PAPER_FEATURES.index(name) for name in names]
        classifier = regression(len(chosen)).fit(features[0][:, chosen], labels[0])
        calibration, tested = (classifier.predict_proba(part[:, chosen])[:, 1] for part in features[1:])
        found.append(Ablation(variant, labels[2], tested, best_threshold(labels[1], calibration)))
    return found


def attributed(scores: Scores, method: Attribution, reply: Integers, start: Integers) -> Integers:
    """(places,): position of the passage that the sentence at each place (reply, character) is attributed to;
    -1 where its sentence matches nothing."""
    batch = scores.batch
    chunk = scores.features.matches[method].chunk[batch.sentences.holding(reply, start)]
    return np.where(chunk >= 0, batch.chunk_passage[chunk], -1)


def source_coverage(scores: Scores) -> Numbers:
    """(replies,): one minus the share of novel words (the paper's "average token novelty rate")."""
    words = scores.batch.words
    count = len(scores.batch.cases)
    novel = np.bincount(words.reply, weights=scores.features.novel, minlength=count)
    total = np.bincount(words.reply, minlength=count)
    coverage: Numbers = 1 - novel / np.maximum(total, 1)
    return coverage


def hallucinated_share(batch: Batch, replies: Sequence[LabelledReply]) -> Numbers:
    """(replies,): share of hallucinated words."""
    hallucinated = np.bincount(batch.words.reply, weights=gold(batch.words, replies), minlength=len(replies))
    share: Numbers = hallucinated / np.maximum(np.bincount(batch.words.reply, minlength=len(replies)), 1)
    return share


def coverage_bins(coverage: Numbers, hallucinated: Numbers) -> list[CoverageBin]:
    """Replies by their coverage; both arrays have shape (replies,)."""
    place = np.clip(np.searchsorted(COVERAGE_EDGES, coverage, side="left") - 1, 0, len(COVERAGE_EDGES) - 2)
    bins = []
    for index, (low, high) in enumerate(pairwise(COVERAGE_EDGES)):
        inside = place == index
        count = int(inside.sum())
        bins.append(
            CoverageBin(
                low,
                high,
                count,
                float(coverage[inside].mean()) if count else None,
                float(hallucinated[inside].mean()) if count else None,
            )
        )
    return bins
