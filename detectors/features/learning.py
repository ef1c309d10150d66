"""What learning from labelled replies needs: parts by group, gold labels, counts of forms, thresholds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hallulab.detectors.features.batch import Batch, Pieces
from hallulab.detectors.features.matching import DocumentFrequency
from hallulab.detectors.features.tokens import Flags, Integers, Numbers
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.digest import digest
from hallulab.scenarios.labelled import LabelledReply

PARTS = 5
"""Number of parts of the training groups; the paper's calibration subset is 20 of 98 sources."""

RARE = 2
"""Forms found in fewer texts are dropped: they count as new ones."""


def assign_parts(replies: Sequence[LabelledReply], seed: int) -> Integers:
    """Return (replies,): the part of each reply, below `PARTS`. A group stays whole; hashes order the groups.

    Raises:
        UsageError: there are fewer than two groups.
    """
    groups = sorted({one.group for one in replies}, key=lambda group: digest([seed, group]))
    if len(groups) < 2:
        raise UsageError(
            "Training needs replies of two groups or more, to hold some out for the thresholds. Add some."
        )
    part = {group: place % PARTS for place, group in enumerate(groups)}
    return np.array([part[one.group] for one in replies], dtype=np.int64)


def count_forms(batch: Batch) -> DocumentFrequency:
    """Count in how many of the batch's chunks and sentences each form occurs, exact or as a stem."""
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
    """Return (pieces,): whether a piece meets a hallucinated span (the paper's overlap rule)."""
    found = np.zeros(len(pieces), dtype=bool)
    first = np.searchsorted(pieces.reply, np.arange(len(replies) + 1))
    for index, reply in enumerate(replies):
        at = slice(first[index], first[index + 1])
        for span in reply.spans or ():
            found[at] |= (pieces.start[at] < span.end) & (span.start < pieces.end[at])
    return found


def choose_threshold(labels: Flags, scores: Numbers) -> float:
    """Return the threshold with the largest F1; of equals, the highest.

    It lies half-way to the next lower score: that score is not flagged, and nothing is known between the two.

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
