"""Scores of one answer (RAG-Trust section 5): from its reply, its citations and what the judge said.

The judge: a model says whether an answer is right (RAG-Trust sections 5.1 and 5.2).
The paper asks for the word CORRECT or INCORRECT. We ask for Yes or No and read the probabilities of the first
token, because small models' probabilities separate better than their words. From 0.5 on, which decides as the
printed word does, the answer is correct. The two questions are the paper's, the words are ours: factuality's
judge sees the question, robustness's does not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hallulab.agents.models.prompt import load_prompt
from hallulab.agents.models.session import Session
from hallulab.scenarios.text.citations import read_citations
from hallulab.simulator.metrics.tokens import compute_token_f1, normalize_squad_text
from hallulab.simulator.rag_trust.config import Dimension, MeasuredAnswer, Weights
from hallulab.simulator.rag_trust.meteor import compute_meteor

_SPACE = re.compile(r"\s+([.,;:!?])")


def find_cited(reply: str, titles: Sequence[str]) -> frozenset[int]:
    """Return the numbers of the documents that a reply cites, each once.

    A number that no document has is a citation, too: a wrong one.
    """
    found = read_citations(reply, [(title,) for title in titles]).citations
    return frozenset(number for one in found for number in one.cited)


def remove_citations(reply: str, titles: Sequence[str]) -> str:
    """Return a reply without its citations, for comparing its words with the right answer's."""
    found = read_citations(reply, [(title,) for title in titles]).citations
    kept, at = "", 0
    for mark in sorted({mark for one in found for mark in one.marks}):
        kept, at = kept + reply[at : mark.start], mark.end
    return _SPACE.sub(r"\1", kept + reply[at:]).strip()


PROMPTS = (load_prompt(__package__, "judge_factual"), load_prompt(__package__, "judge_matching"))

CORRECT_FROM = 0.5
"""Probability of Yes from which an answer is correct."""


async def estimate_factuality(session: Session, question: str, expected: str, reply: str) -> float:
    """Return P(the reply is factually correct).

    Raises:
        ModelError: the model gave no answer, or neither Yes nor No.
    """
    messages = PROMPTS[0].fill(question=question, expected=expected, reply=reply)
    return (await session.choose("factual", messages, ["Yes", "No"]))["Yes"]


async def estimate_match(session: Session, expected: str, reply: str) -> float:
    """Return P(the reply matches the right answer, without noise); raises like `estimate_factuality`."""
    messages = PROMPTS[1].fill(expected=expected, reply=reply)
    return (await session.choose("matching", messages, ["Yes", "No"]))["Yes"]


@dataclass(frozen=True)
class Scored:
    """The score of an answer in one dimension."""

    refused: bool
    """True if it is a refusal, whose score and parts are all 1, as in the paper."""
    score: float
    """The weighted sum of the parts, in [0, 1]."""
    parts: dict[str, float]


PARTS: dict[Dimension, tuple[str, ...]] = {
    "factuality": ("judge", "fake_overlap", "meteor"),
    "robustness": ("judge", "similarity", "f1"),
    "accountability": ("precision", "recall"),
}


def score_answer(answer: MeasuredAnswer, dimension: Dimension, weights: Weights) -> Scored | None:
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
