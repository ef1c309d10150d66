"""Ablation, attribution and coverage bins."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.papers.evidence_chain.analysis import (
    ABLATIONS,
    CoverageBin,
    ablate,
    attributed,
    coverage_bins,
    hallucinated_share,
    source_coverage,
)
from hallulab.detectors.evidence_chain.training import train
from hallulab.detectors.features.batch import ReplyWithEvidence, make_case
from tests.detectors.features.material import corpus, passages


def test_every_variant_is_trained_and_calibrated_apart_from_the_test_part() -> None:
    replies = corpus(10)
    found = ablate(replies[:16], replies[16:])
    assert [one.variant for one in found] == list(ABLATIONS)
    # 2 groups of 2 replies of 2 sentences, of which one is invented
    assert all(one.labels.tolist() == [False, False, False, True] * 2 for one in found)
    assert all(((one.scores >= one.threshold) == one.labels).all() for one in found)


def test_variants_leave_their_features_out() -> None:
    assert ABLATIONS["No retrieval scores"] == (
        "lexical_coverage",
        "max_chunk_overlap",
        "numeric_mismatches",
        "entity_mismatches",
    )
    assert [len(names) for names in ABLATIONS.values()] == [6, 5, 4, 4, 1]


def test_sentences_are_attributed_to_the_passage_of_their_best_chunk() -> None:
    model = train("tfidf", corpus(4))
    evidence = passages("Bread costs 3 euros.", "The bakery opens at 6.")
    reply = "The bakery opens. Bread costs money. Zebras gallop."
    scores = model.score([ReplyWithEvidence(reply, evidence, "qa")])
    places = np.array([0, 18, 37])
    for method in ("lexical", "bm25", "tfidf"):
        found = attributed(scores, method, np.zeros(3, dtype=np.int64), places)
        assert found.tolist() == [1, 0, -1]


def test_coverage_is_the_share_of_words_that_are_not_novel() -> None:
    clean, wrong = corpus(4)[:2]
    scores = train("lexical", corpus(4)).score([make_case(clean), make_case(wrong)])
    # 13 words; moved, Springfield and 2077. are new
    assert source_coverage(scores).tolist() == [1.0, pytest.approx(10 / 13)]
    assert hallucinated_share(scores.batch, [clean, wrong]).tolist() == [0.0, pytest.approx(5 / 13)]


def test_bins_are_closed_above() -> None:
    bins = coverage_bins(np.array([0.0, 0.2, 0.8, 1.0]), np.array([1.0, 0.5, 0.25, 0.0]))
    assert bins == [
        CoverageBin(0.0, 0.2, 2, 0.1, 0.75),
        CoverageBin(0.2, 0.4, 0, None, None),
        CoverageBin(0.4, 0.6, 0, None, None),
        CoverageBin(0.6, 0.8, 1, 0.8, 0.25),
        CoverageBin(0.8, 1.0, 1, 1.0, 0.0),
    ]
