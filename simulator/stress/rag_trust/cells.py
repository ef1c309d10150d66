"""What is asked: each question under each attack with each strategy; and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from hallulab.agents.models.model import DEFAULT_MODEL
from hallulab.chatbots.strategies import Strategy, is_refusal
from hallulab.scenarios.attacks.attack import Attack
from hallulab.scenarios.attacks.questions import Composition, assemble_passages
from hallulab.scenarios.datasets.hotpotqa import HotpotQuestion
from hallulab.scenarios.transcript import Call, Count, Frozen, Number
from hallulab.simulator.experiment.config import Component
from hallulab.simulator.stress.rag_trust.config import DIMENSIONS, Dimension, StressConfig


@dataclass(frozen=True)
class Task:
    """An answer to be had."""

    question: HotpotQuestion
    """The question."""
    composition: Composition
    """The documents that the chatbot is given."""
    attack: Attack
    """What was done to them."""
    chatbot: Component
    """Who answers."""
    model: str
    """The name of the model that it asks."""
    strategy: Strategy
    """How it is told to deal with wrong documents."""
    dimensions: tuple[Dimension, ...]
    """What the answer is scored for."""


class MeasuredAnswer(Frozen):
    """An answer and what was measured on it: a line of `answers.jsonl`."""

    id: str
    """Hash of everything that decides it; the key for resuming."""
    question_id: str
    """The data set's identifier of the question."""
    question: str
    """The question."""
    expected: str
    """The right answer."""
    fake: str
    """The false answer of the poisoned documents."""
    chatbot: str
    """Name of the chatbot."""
    model: str = DEFAULT_MODEL
    """Name of the model that it asked."""
    strategy: Strategy
    """The prompt strategy."""
    poison: Number
    """Share of the documents that matter that are false."""
    distractors: Count
    """Number of documents beside the point."""
    titles: tuple[str, ...]
    """The documents in their order; [1] cites the first."""
    gold: tuple[Count, ...]
    """Numbers of the true documents that matter."""
    reply: str | None
    """What the chatbot said; None: it failed."""
    factual: Number | None = None
    """Judge: P(the reply is factually correct), given the question; None: not asked, or it failed."""
    matching: Number | None = None
    """Judge: P(the reply matches the right answer without noise); None likewise."""
    similarity: Number | None = None
    """Cosine similarity of reply and right answer, at least 0; None: not asked for."""
    error: str | None = None
    """Why something is missing."""
    calls: tuple[Call, ...] = ()
    """The model calls, the judge's included."""

    @property
    def refused(self) -> bool:
        """Whether the reply is a refusal."""
        return self.reply is not None and is_refusal(self.reply)


def list_tasks(
    config: StressConfig, questions: Sequence[HotpotQuestion], everything: Sequence[HotpotQuestion]
) -> Iterator[Task]:
    """Yield the answers to be had. Those that share documents follow each other, for the server's cache.

    Raises:
        UsageError: the data set is too small for the attacks.
    """
    wanted: dict[Attack, list[Dimension]] = {}
    for dimension in DIMENSIONS:
        for attack in config.grid(dimension).attacks:
            wanted.setdefault(attack, []).append(dimension)
    for question in questions:
        for attack, dimensions in wanted.items():
            composition = assemble_passages(question, everything, attack, config.seed)
            for model, chatbot, strategy in product(config.answering, config.chatbots, config.strategies):
                yield Task(question, composition, attack, chatbot, model, strategy, tuple(dimensions))
