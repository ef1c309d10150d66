"""Floors without a detector: flag everything, and always predict the more frequent class."""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Judgement, Span
from hallulab.simulator.bench.evaluate import Evaluation
from hallulab.simulator.bench.levels import Level, get_gold_labels

FLAG_ALL = "flag-all"
MAJORITY = "majority"


def flag_all(replies: Sequence[LabelledReply]) -> Evaluation:
    """Flag every reply, from its first to its last character."""
    return _build_constant(FLAG_ALL, replies, True)


def predict_majority(replies: Sequence[LabelledReply], level: Level) -> Evaluation:
    """Predict the more frequent class of that level, as known from these very labels; a tie is clean."""
    labels = [found for reply in replies if (found := get_gold_labels(reply, level)) is not None]
    positive = sum(int(found.sum()) for found in labels)
    return _build_constant(MAJORITY, replies, 2 * positive > sum(map(len, labels)))


def _build_constant(name: str, replies: Sequence[LabelledReply], flagged: bool) -> Evaluation:
    return Evaluation(
        detector=name,
        threshold=None,
        threshold_protocol="given",
        replies=tuple(replies),
        judgements=tuple(_build_judgement(reply.reply, flagged) for reply in replies),
        seconds=0.0,
    )


def _build_judgement(text: str, flagged: bool) -> Judgement:
    spans = (Span(start=0, end=len(text), text=text),) if flagged else ()
    return Judgement(outcome="scored", score=float(flagged), flagged=flagged, spans=spans)
