"""How a method learns: on sentences of the training part, with thresholds from the calibration part.

Protocol of the paper: parts are split by source, thresholds are chosen "on a calibration subset carved
deterministically from the training split by source", one for all tasks and generators, and frozen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from detectors.evidence_chain.batch import Batch, Case, Pieces, make_batch, make_case
from detectors.evidence_chain.features import FeatureSet, measure
from detectors.evidence_chain.matching import DocumentFrequency
from detectors.evidence_chain.model import ChainModel, Scores, Thresholds
from detectors.evidence_chain.risk import Context, Method, categories_of, model_inputs
from detectors.evidence_chain.tokens import Flags, Numbers
from detectors.origin import origin_of
from scenarios.errors import UsageError
from scenarios.labelled import LabelledReply
from scenarios.recording import digest

CALIBRATION_SHARE = 0.2
"""Share of the training groups that thresholds are chosen on; the paper's is 20 of 98 sources."""


class Forest(NamedTuple):
    """Size of a random forest; the paper says "bounded depth"."""

    trees: int
    """How many."""
    depth: int
    """Largest depth."""
    leaf: int
    """Fewest sentences in a leaf."""


SHALLOW = Forest(trees=100, depth=8, leaf=6)
"""For labels of people, which are noisy; its file is below 1 MB."""

DEEP = Forest(trees=200, depth=12, leaf=1)
"""For the audit corpus, whose labels are exact; chosen on its calibration part."""

RARE = 2
"""Forms of fewer texts are not kept: they count as new ones."""


def case_of(reply: LabelledReply) -> Case:
    """The reply as the detector sees it, with its origin."""
    return make_case(reply, origin_of(reply))


def train(
    method: Method,
    replies: Sequence[LabelledReply],
    seed: int = 0,
    features: FeatureSet = "paper",
    context: Sequence[Context] = ("task",),
    forest: Forest = SHALLOW,
) -> ChainModel:
    """Train a method; of one without training, choose the thresholds and count the forms.

    Args:
        replies: those without spans that are not clean are left out: nobody knows where they are wrong.
        seed: of the calibration part and the forest.
        features: read by `lr` and `rf`; the rules read the paper's.
        context: read by `lr` and `rf`.
        forest: how large `rf` is.

    Raises:
        UsageError: the replies have no spans, only one class, or fewer than two groups.
    """
    known = [one for one in replies if one.spans is not None or one.label is False]
    if not any(one.spans for one in known):
        raise UsageError(
            f"evidence-chain-{method} learns from hallucinated spans, and the labelled replies have none. "
            "Give replies with spans."
        )
    trained, held_out = calibration_split(known, seed)
    batch = make_batch([case_of(one) for one in trained])
    supervised = method in ("lr", "rf")
    read: tuple[Context, ...] = tuple(context) if supervised else ()
    learnt_from = sorted(one.model_dump_json() for one in known)
    model = ChainModel(
        method=method,
        features=features if supervised else "paper",
        frequency=count_forms(batch),
        thresholds=Thresholds(word=1.0, sentence=1.0, response=1.0),
        identity=digest([method, features, read, forest, seed, learnt_from])[:16],
        context=read,
        categories=categories_of(batch.cases, read),
    )
    if supervised:
        model = _with_classifiers(model, trained, batch, _forest(forest, seed) if method == "rf" else None)
    scores = model.score([case_of(one) for one in held_out])
    return replace(model, thresholds=_chosen_thresholds(scores, held_out, method))


def calibration_split(
    replies: Sequence[LabelledReply], seed: int
) -> tuple[list[LabelledReply], list[LabelledReply]]:
    """The replies to learn from, and those to choose thresholds on; no group is in both.

    Replies whose `meta` says `split: calibration` are the latter where there are any; else those of
    `CALIBRATION_SHARE` of the groups, drawn by hash.

    Raises:
        UsageError: there are fewer than two groups.
    """
    chosen = {one.group for one in replies if one.meta.get("split") == "calibration"}
    groups = sorted({one.group for one in replies}, key=lambda group: digest([seed, group]))
    if not chosen:
        chosen = set(groups[: max(1, round(CALIBRATION_SHARE * len(groups)))])
    if len(groups) < 2 or len(chosen) == len(groups):
        raise UsageError(
            "Training needs replies of two groups or more, one of them for the thresholds. Add some."
        )
    return (
        [one for one in replies if one.group not in chosen],
        [one for one in replies if one.group in chosen],
    )


def count_forms(batch: Batch) -> DocumentFrequency:
    """In how many of the batch's chunks and sentences each form occurs, exact or as a stem."""
    forms = batch.lexicon.forms
    counts = np.zeros(len(forms), dtype=np.int64)
    for tokens, owner in (
        (batch.chunk_tokens, batch.chunk_tokens.text),
        (batch.tokens, batch.token_sentence),
    ):
        keys = [owner * len(forms) + form for form in (tokens.exact, tokens.stem)]
        counts += np.bincount(np.unique(np.concatenate(keys)) % max(len(forms), 1), minlength=len(forms))
    kept = {form: int(count) for form, count in zip(forms, counts, strict=True) if count >= RARE}
    return DocumentFrequency(texts=len(batch.chunks) + len(batch.sentences), counts=kept)


def gold(pieces: Pieces, replies: Sequence[LabelledReply]) -> Flags:
    """(pieces,): whether a piece meets a hallucinated span (the paper's overlap rule)."""
    found = np.zeros(len(pieces), dtype=bool)
    first = np.searchsorted(pieces.reply, np.arange(len(replies) + 1))
    for index, reply in enumerate(replies):
        at = slice(first[index], first[index + 1])
        for span in reply.spans or ():
            found[at] |= (pieces.start[at] < span.end) & (span.start < pieces.end[at])
    return found


def best_threshold(labels: Flags, scores: Numbers) -> float:
    """Where flagging has the largest F1; of equals, the highest.

    Half-way to the next lower score, for that one is not flagged and nothing is known between the two.

    Raises:
        ValueError: nothing is positive.
    """
    if not labels.any():
        raise ValueError("there is no positive label")
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(labels[order])
    flagged = np.arange(1, len(order) + 1)
    f1 = 2 * hits / (flagged + labels.sum())
    last = np.append(np.diff(scores[order]) != 0, True)  # a threshold cannot part equal scores
    levels = scores[order][last]
    best = int(np.argmax(f1[last]))
    return float(levels[best : best + 2].mean())


def _with_classifiers(
    model: ChainModel, replies: Sequence[LabelledReply], batch: Batch, forest: Any | None
) -> ChainModel:
    """The model with classifiers fitted to `batch`, which holds `replies`; without a forest, regressions."""
    labels = gold(batch.sentences, replies)
    if labels.all() or not labels.any():
        raise UsageError(
            f"evidence-chain-{model.method}: of the sentences to learn from, "
            f"{'all' if labels.all() else 'none'} are hallucinated. Add groups where that is not so."
        )
    features = measure(batch, model.frequency, model.features)
    inputs = model_inputs(batch, features, model.context, model.categories)
    numeric = len(features.columns) + ("temperature" in model.context)
    classifier = forest if forest is not None else regression(numeric)
    words = None
    if features.words is not None:
        wrong = labels[batch.word_sentence]
        at_word = gold(batch.words, replies)[wrong]
        if not at_word.all():  # where spans are whole sentences, there is nothing to tell words apart by
            words = _word_regression().fit(features.words[wrong], at_word)
    return replace(model, sentence_classifier=classifier.fit(inputs, labels), word_classifier=words)


def regression(numeric: int) -> Any:
    """Logistic regression: balanced class weights; the first `numeric` inputs are standardised."""
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scaled = ColumnTransformer([("numeric", StandardScaler(), list(range(numeric)))], remainder="passthrough")
    return make_pipeline(scaled, LogisticRegression(class_weight="balanced", max_iter=2000))


def _word_regression() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))


def _forest(forest: Forest, seed: int) -> Any:
    """Balanced subsampling, bounded depth."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(
        forest.trees,
        max_depth=forest.depth,
        min_samples_leaf=forest.leaf,
        class_weight="balanced_subsample",
        random_state=seed,
        n_jobs=1,
    )


def _chosen_thresholds(scores: Scores, replies: Sequence[LabelledReply], method: Method) -> Thresholds:
    labels = np.array([bool(one.label) or bool(one.spans) for one in replies])
    if not labels.any():
        raise UsageError(
            f"evidence-chain-{method}: no reply of the calibration part is hallucinated. Add more groups."
        )
    return Thresholds(
        word=best_threshold(gold(scores.batch.words, replies), scores.words),
        sentence=best_threshold(gold(scores.batch.sentences, replies), scores.sentences),
        response=best_threshold(labels, scores.replies),
    )
