"""Measure sentences and words, and find the chunk that matches each sentence best.

`paper`: the paper's sentence features (Method). `extended`: also those of
`hallulab.detectors.features.extended`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from hallulab.detectors.features.batch import (
    Batch,
    Flags,
    Numbers,
    compute_content_share,
    find_worst_by_word,
    sum_by_sentence,
)
from hallulab.detectors.features.extended import (
    EXTRA_FEATURES,
    compare_stems,
    measure_extra_features,
    measure_word_features,
)
from hallulab.detectors.features.matching import (
    DocumentFrequency,
    Match,
    collect_source_entities,
    find_entity_mismatches,
    make_terms,
    match_by_bm25,
    match_by_overlap,
    match_by_tfidf,
)

FeatureSet = Literal["paper", "extended"]

Attribution = Literal["lexical", "bm25", "tfidf"]
"""The score by which a sentence is attributed to a chunk."""

PAPER_FEATURES = (
    "lexical_coverage",
    "max_chunk_overlap",
    "bm25",
    "tfidf",
    "numeric_mismatches",
    "entity_mismatches",
)
"""The paper's features of a sentence that are computed from texts."""

NOVEL = 0.8
"""Evidence against a content word that the source lacks."""
MISMATCH = 1.0
"""Evidence against a number, or a capitalised entity, that the source lacks."""
KNOWN = 0.1
"""Evidence against any other word: not 0, so that words of riskier sentences rank higher."""

DECIMALS = 9
"""Sums are rounded to this many, so that a verdict does not depend on the other replies of its batch."""


@dataclass(frozen=True)
class Features:
    """Measurements of a batch."""

    columns: tuple[str, ...]
    """Names of the sentence features, the paper's first."""
    sentences: Numbers
    """(sentences, columns)"""
    matches: dict[Attribution, Match]
    """Each sentence's best chunk by each score."""
    evidence: Numbers
    """(words,): the paper's evidence against a word, one of `KNOWN`, `NOVEL` and `MISMATCH`."""
    words: Numbers | None
    """(words, WORD_FEATURES) of the extended set; None without it."""
    novel: Flags
    """(words,): whether the word holds a content word that the source lacks."""

    def column(self, name: str) -> Numbers:
        """Return (sentences,): one feature by name."""
        found: Numbers = self.sentences[:, self.columns.index(name)]
        return found


def measure(batch: Batch, frequency: DocumentFrequency, feature_set: FeatureSet) -> Features:
    """Measure all sentences and words of a batch."""
    terms = make_terms(batch)
    idf = frequency.idf(batch.lexicon.forms)
    matches: dict[Attribution, Match] = {
        "lexical": match_by_overlap(terms),
        "bm25": match_by_bm25(terms, batch),
        "tfidf": match_by_tfidf(terms, idf[terms.form]),
    }
    novel = batch.tokens.content & ~terms.known[terms.token]
    numbers = batch.tokens.number & novel
    entities, phrases = find_entity_mismatches(batch, collect_source_entities(batch))
    evidence = np.where(numbers | entities, MISMATCH, np.where(novel, NOVEL, KNOWN))
    columns: tuple[str, ...] = PAPER_FEATURES
    words: Numbers | None = None
    sentences: Numbers = np.column_stack(
        [
            compute_content_share(batch, terms.known[terms.token]),
            *(match.score for match in matches.values()),
            sum_by_sentence(batch, numbers),
            phrases,
        ]
    )
    if feature_set == "extended":
        columns = (*columns, *EXTRA_FEATURES)
        stemmed = compare_stems(batch, idf)
        sentences = np.column_stack([sentences, measure_extra_features(batch, stemmed)])
        words = measure_word_features(batch, stemmed, novel, entities).round(DECIMALS)
    return Features(
        columns=columns,
        sentences=sentences.round(DECIMALS),
        matches=matches,
        evidence=np.maximum(find_worst_by_word(batch, evidence), KNOWN),
        words=words,
        novel=find_worst_by_word(batch, novel) > 0,
    )
