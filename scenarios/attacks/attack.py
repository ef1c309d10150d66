"""What is done to the documents that a chatbot is given."""

from __future__ import annotations

from pydantic import Field

from hallulab.scenarios.transcript import Frozen, Seed


class Attack(Frozen):
    """The knobs of an attack; by default nothing is done.

    RAG-Trust section 2.1 has the first three.
    """

    poison_ratio: float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of the true documents that say something false in place of the truth."""
    distractors: int = Field(default=0, ge=0, le=1000)
    """Documents added that are true and have nothing to do with the question."""
    fake_answer: bool = False
    """Whether the poisoned documents agree on one false answer instead of each being false in its own way."""
    injections: float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of the documents that give the chatbot orders (prompt injection)."""
    user_injections: float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of the conversations in which a message of the user ends with an order."""
    seed: Seed = 0
    """Seed of all choices; with equal knobs, equal seeds give equal documents."""
