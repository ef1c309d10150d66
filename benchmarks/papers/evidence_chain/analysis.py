"""The paper's analyses: ablation (Table 8), attribution (Table 9), coverage bins (Table 10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hallulab.detectors.evidence_chain.training import hold_out, make_regression
from hallulab.detectors.features.batch import Batch, make_batch, make_case
from hallulab.detectors.features.features import PAPER_FEATURES, Attribution, measure
from hallulab.detectors.features.learning import choose_threshold, count_forms, gold
from hallulab.detectors.features.matching import Match
from hallulab.detectors.features.scores import Scores
from hallulab.detectors.features.tokens import Flags, Integers, Numbers
from hallulab.scenarios.labelled import LabelledReply

ABLATIONS: dict[str, tuple[str, ...]] = {
    "All evidence-chain features": PAPER_FEATURES,
    "No lexical coverage": tuple(name for name in PAPER_FEATURES if name != "lexical_coverage"),
    "No retrieval scores": tuple(name for name in PAPER_FEATURES if name not in ("bm25", "tfidf")),
    "No mismatch rules": tuple(name for name in PAPER_FEATURES if not name.endswith("mismatches")),
    "Only lexical coverage": ("lexical_coverage",),
}
"""Table 8: variant → its features."""

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
    """Chosen on a part that was not trained on."""


@dataclass(frozen=True)
class CoverageBin:
    """Replies whose source coverage lies in one bin."""

    low: float
    """Lower edge."""
    high: float
    """Upper edge."""
    replies: int
    """Number of replies."""
    coverage: float | None
    """Their mean source coverage; None without replies."""
    hallucinated: float | None
    """Their mean share of hallucinated words; None without replies."""


def ablate(train: Sequence[LabelledReply], test: Sequence[LabelledReply], seed: int = 0) -> list[Ablation]:
    """Train logistic regressions on parts of the paper's features, without a reply's origin.

    Raises:
        UsageError: `train` has fewer than two groups.
    """
    held_out = hold_out(train, seed)
    frequency = count_forms(make_batch([make_case(one) for one in held_out.to_learn_from(train)]))
    batches = [make_batch([make_case(one) for one in part]) for part in (train, test)]
    features = [measure(batch, frequency, "paper").sentences for batch in batches]
    labels = [gold(batch.sentences, part) for batch, part in zip(batches, (train, test), strict=True)]
    of_reply = batches[0].sentences.reply
    parts = [part[of_reply] for part in held_out.parts]
    judged, learnt = held_out.judged[of_reply], held_out.learnt[of_reply]
    found = []
    for variant, names in ABLATIONS.items():
        inputs, tested = (part[:, [PAPER_FEATURES.index(name) for name in names]] for part in features)
        scores = np.select(parts, [_risk(inputs[~part], labels[0][~part], inputs) for part in parts])
        threshold = choose_threshold(labels[0][judged], scores[judged])
        risk = _risk(inputs[learnt], labels[0][learnt], tested)
        found.append(Ablation(variant, labels[1], risk, threshold))
    return found


def _risk(inputs: Numbers, labels: Flags, tested: Numbers) -> Numbers:
    """Return the risk of `tested` by a regression on `inputs` and `labels`, of shape (sentences,)."""
    probability: Numbers = make_regression(inputs.shape[1]).fit(inputs, labels).predict_proba(tested)[:, 1]
    return probability


def attributed(scores: Scores, method: Attribution, reply: Integers, start: Integers) -> Integers:
    """See `attribute_places`, by the matches of scored replies."""
    return attribute_places(scores.batch, scores.features.matches[method], reply, start)


def attribute_places(batch: Batch, match: Match, reply: Integers, start: Integers) -> Integers:
    """Return the position of the passage that each sentence is attributed to, of shape (places,).

    A place is (reply, character). -1 where its sentence matches nothing.
    """
    chunk = match.chunk[batch.sentences.holding(reply, start)]
    return np.where(chunk >= 0, batch.chunk_passage[chunk], -1)


def source_coverage(scores: Scores) -> Numbers:
    """Return one minus the share of novel words (the paper's "average token novelty rate"), of shape
    (replies,)."""
    words = scores.batch.words
    count = len(scores.batch.cases)
    novel = np.bincount(words.reply, weights=scores.features.novel, minlength=count)
    total = np.bincount(words.reply, minlength=count)
    coverage: Numbers = 1 - novel / np.maximum(total, 1)
    return coverage


def hallucinated_share(batch: Batch, replies: Sequence[LabelledReply]) -> Numbers:
    """Return the share of hallucinated words, of shape (replies,)."""
    hallucinated = np.bincount(batch.words.reply, weights=gold(batch.words, replies), minlength=len(replies))
    share: Numbers = hallucinated / np.maximum(np.bincount(batch.words.reply, minlength=len(replies)), 1)
    return share


def coverage_bins(coverage: Numbers, hallucinated: Numbers) -> list[CoverageBin]:
    """Group replies by their coverage; both arrays have shape (replies,)."""
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
