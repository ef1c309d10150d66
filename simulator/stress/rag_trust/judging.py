"""The judge: a model says whether an answer is right (RAG-Trust sections 5.1 and 5.2).

The paper asks for the word CORRECT or INCORRECT. We ask for Yes or No and read the probabilities of the first
token, because small models' probabilities separate better than their words. From 0.5 on, which decides as the
printed word does, the answer is correct. The two questions are the paper's, the words are ours: factuality's
judge sees the question, robustness's does not.
"""

from __future__ import annotations

from hallulab.agents.models.model import Session
from hallulab.agents.models.prompt import load_prompt

PROMPTS = (load_prompt(__package__, "judge_factual"), load_prompt(__package__, "judge_matching"))
"""The prompt files."""

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
