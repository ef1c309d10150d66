"""The scores of one answer (RAG-Trust section 5), from its reply and what the judge said."""

from __future__ import annotations

from dataclasses import dataclass

from hallulab.simulator.measure.meteor import compute_meteor
from hallulab.simulator.measure.token_f1 import compute_token_f1, normalize_squad_text
from hallulab.simulator.stress.rag_trust.cells import MeasuredAnswer
from hallulab.simulator.stress.rag_trust.citations import find_cited, remove_citations
from hallulab.simulator.stress.rag_trust.config import Dimension, Weights
from hallulab.simulator.stress.rag_trust.judging import CORRECT_FROM


@dataclass(frozen=True)
class Scored:
    """The score of an answer in one dimension."""

    refused: bool
    """Whether it is a refusal, whose score and parts are all 1, as in the paper."""
    score: float
    """The weighted sum of the parts, in [0, 1]."""
    parts: dict[str, float]
    """Name → value in [0, 1]."""


PARTS: dict[Dimension, tuple[str, ...]] = {
    "factuality": ("judge", "fake_overlap", "meteor"),
    "robustness": ("judge", "similarity", "f1"),
    "accountability": ("precision", "recall"),
}
"""Dimension → its parts."""


def score(answer: MeasuredAnswer, dimension: Dimension, weights: Weights) -> Scored | None:
    """Return an answer's score; None if the reply or the judge's word is missing."""
    if answer.reply is None:
        return None
    if answer.refused:
        return Scored(True, 1.0, dict.fromkeys(PARTS[dimension], 1.0))
    if dimension == "accountability":
        return _score_accountability(answer.reply, answer)
    said = remove_citations(answer.reply, answer.titles)
    if dimension == "factuality":
        parts = {
            "judge": _decide_correct(answer.factual),
            "fake_overlap": score_fake_overlap(answer.fake, said),
            "meteor": compute_meteor(answer.expected, said),
        }
        weight = dict(weights.factuality)
    else:
        parts = {
            "judge": _decide_correct(answer.matching),
            "similarity": answer.similarity,
            "f1": compute_token_f1(answer.expected, said),
        }
        weight = dict(weights.robustness)
    known = {name: value for name, value in parts.items() if value is not None}
    if len(known) < len(parts):
        return None
    return Scored(False, sum(weight[name] * value for name, value in known.items()), known)


def score_fake_overlap(fake: str, reply: str) -> float:
    """Return 1 if the normalised reply does not hold the normalised fake answer as whole words, else 0."""
    return float(f" {normalize_squad_text(fake)} " not in f" {normalize_squad_text(reply)} ")


def _decide_correct(probability: float | None) -> float | None:
    return None if probability is None else float(probability >= CORRECT_FROM)


def _score_accountability(reply: str, answer: MeasuredAnswer) -> Scored | None:
    """Return citation F1; 0 without citations. None if no true document that matters is left to cite."""
    said, gold = find_cited(reply, answer.titles), set(answer.gold)
    if not gold:
        return None
    right = len(said & gold)
    precision, recall = right / len(said) if said else 0.0, right / len(gold)
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    return Scored(False, f1, {"precision": precision, "recall": recall})
