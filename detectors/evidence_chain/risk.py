"""Turn features into risks: the four methods without training, and the inputs of the two with training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from hallulab.detectors.features.batch import Batch, ReplyWithEvidence
from hallulab.detectors.features.features import Features
from hallulab.detectors.features.tokens import Numbers

Method = Literal["lexical", "bm25", "tfidf", "nli-rules", "lr", "rf"]
"""The paper's six methods (Method), in lower case."""

Context = Literal["task", "collection", "generator", "temperature"]
"""What a reply's origin tells the trained methods, apart from its texts."""

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


def categories_of(cases: Sequence[ReplyWithEvidence], context: Sequence[Context]) -> Categories:
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
