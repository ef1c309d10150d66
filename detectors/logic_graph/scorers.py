"""Scorers of how far evidence entails a claim, and how relevant it is: one protocol for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hallulab.agents.models.model import Session
from hallulab.agents.models.prompt import ChatMessage, Prompt, load_prompt
from hallulab.detectors.base.judging import gather_all
from hallulab.detectors.logic_graph.segmentation import Claim
from hallulab.detectors.logic_graph.vectors import Vectors


@dataclass(frozen=True)
class ChunkGroup:
    """D_k: chunks that are read together."""

    chunks: tuple[str, ...]
    """Their texts, in document order."""

    @property
    def text(self) -> str:
        """The chunks as they read as evidence: one a line."""
        return "\n".join(self.chunks)

    def cut(self, characters: int) -> ChunkGroup:
        """Return the group, or as one chunk the part of it that fits."""
        return self if len(self.text) <= characters else ChunkGroup((self.text[:characters],))


@dataclass(frozen=True)
class Pair:
    """A group of chunks and a claim to compare with it."""

    group: ChunkGroup
    """The evidence."""
    claim: Claim
    """The claim."""


class Scorer(Protocol):
    """One of R and NLI in section 3.2.3."""

    prompts: tuple[Prompt, ...]
    """Prompt files of its questions to a served model; none if it asks none."""

    async def score(self, session: Session, pairs: Sequence[Pair]) -> list[float]:
        """Return a number for each pair, in order: entailments in [0, 1], relevances any (below 0: none).

        Raises:
            HallulabError: a model gave no answer, or its weights cannot be had.
        """
        ...


class ServedScorer:
    """The probability of Yes to a question about evidence and claim: one call of one token a pair.

    The prompt has the evidence first, then the claim, then the question, so that the server computes a group
    once. For the same reason, pairs with the same evidence are asked one after the other.

    Args:
        step: name of the question in the ledger.
        of_statement: prompt with `{{evidence}}` and `{{statement}}`, for claims without a question.
        of_answer: prompt that has `{{question}}`, too.
    """

    def __init__(self, step: str, of_statement: Prompt, of_answer: Prompt) -> None:
        self._step = step
        self._of_statement = of_statement
        self._of_answer = of_answer
        self.prompts: tuple[Prompt, ...] = (of_statement, of_answer)

    async def score(self, session: Session, pairs: Sequence[Pair]) -> list[float]:
        """See `Scorer.score`.

        Raises:
            UnparseableAnswer: the model says neither Yes nor No.
            ModelError: no answer.
        """
        return await gather_all(self._ask(session, pair) for pair in pairs)

    async def _ask(self, session: Session, pair: Pair) -> float:
        answer = await session.choose(self._step, self._messages(pair), ("Yes", "No"))
        return answer["Yes"]

    def _messages(self, pair: Pair) -> list[ChatMessage]:
        values = {"evidence": pair.group.text, "statement": pair.claim.text}
        if not pair.claim.question:
            return self._of_statement.fill(values)
        return self._of_answer.fill(values, question=pair.claim.question)


def ask_entailment() -> ServedScorer:
    """Make the scorer of entailment by the served model."""
    return ServedScorer(
        "entailed",
        load_prompt("hallulab.detectors.base", "supported"),
        load_prompt("hallulab.detectors.logic_graph", "entailed_answer"),
    )


def ask_relevance() -> ServedScorer:
    """Make the scorer of relevance by the served model."""
    return ServedScorer(
        "relevant",
        load_prompt("hallulab.detectors.logic_graph", "relevant_statement"),
        load_prompt("hallulab.detectors.logic_graph", "relevant_answer"),
    )


class EmbeddingRelevance:
    """Cosine of the claim and the nearest chunk of the group.

    It compares chunks, not the group's whole text: an embedding model reads little more than a chunk. A claim
    with a question is embedded with it, because a short answer alone is near to nothing.
    """

    prompts: tuple[Prompt, ...] = ()

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    async def score(self, session: Session, pairs: Sequence[Pair]) -> list[float]:
        """See `Scorer.score`; in [-1, 1]. Raises like `Vectors.of`."""
        texts = list(
            dict.fromkeys(
                text for pair in pairs for text in (*pair.group.chunks, word_hypothesis(pair.claim))
            )
        )
        vectors = dict(zip(texts, await self._vectors.of(texts), strict=True))
        return [
            max(float(vectors[chunk] @ vectors[word_hypothesis(pair.claim)]) for chunk in pair.group.chunks)
            for pair in pairs
        ]


def word_hypothesis(claim: Claim) -> str:
    """Return H, the question followed by the answer, for models that take one text."""
    return f"{claim.question} {claim.text}".strip()
