"""How like two sentences are: by words, by vectors, or by a model of entailment."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from hallulab.agents.models.prompt import ChatMessage, Prompt, load_prompt
from hallulab.agents.models.recording import Recording
from hallulab.agents.models.session import Session
from hallulab.agents.retrieval.embeddings import Batches, Embedder, SentenceEmbedder
from hallulab.detectors.base.judging import gather_all
from hallulab.detectors.base.questions import MIN_WORDS
from hallulab.detectors.features.batch import Lexicon, find_content_stems
from hallulab.detectors.logic_graph.segmentation import Claim
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.text.spans import split_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

VECTOR = "vector"
"""Kind of the vectors' entries in a recording."""

_LARGEST_BATCH = 32
"""Most texts embedded together."""

_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="vectors")
"""One for all detectors: they share the embedder, which computes for one caller at a time."""


class Vectors:
    """Unit vectors by text.

    They are rounded to 16 bits, even when just computed. Then other texts of a batch change nothing, a replay
    has the same vectors, and an entry of the recording has 1 kB. A vector that the recording lacks is
    computed, also in a replay.

    Args:
        recording: where they are kept and looked up.
    """

    def __init__(self, embedder: Embedder, recording: Recording) -> None:
        self._name = embedder.name
        self._recording = recording
        self._batches: Batches[str, NDArray[Any]] = Batches(
            lambda texts: list(embedder.passages(texts)), _THREAD, _LARGEST_BATCH
        )
        self._under_way: dict[str, asyncio.Task[str]] = {}

    async def of(self, texts: Sequence[str]) -> NDArray[Any]:
        """Return the texts' vectors, shape (texts, dimensions), in float32.

        Raises:
            UsageError: the embedding model's folder does not exist.
            OperationalError: its weights cannot be fetched or loaded.
        """
        import numpy

        packed = await asyncio.gather(*(self._packed(text) for text in texts))
        return numpy.stack([numpy.frombuffer(base64.b64decode(each), "<f2") for each in packed]).astype("f4")

    async def _packed(self, text: str) -> str:
        key = digest([self._name, text])
        known: str | None = self._recording.get(VECTOR, key)
        if known is not None:
            return known
        if key not in self._under_way:
            task = asyncio.create_task(self._computed(key, text))
            task.add_done_callback(lambda _: self._under_way.pop(key))
            self._under_way[key] = task
        # A cancelled caller leaves the vector to the others that wait for it.
        return await asyncio.shield(self._under_way[key])

    async def _computed(self, key: str, text: str) -> str:
        vector = await asyncio.wrap_future(self._batches.submit(text))
        packed: str = self._recording.put(
            VECTOR, key, base64.b64encode(vector.astype("<f2").tobytes()).decode("ascii")
        )
        return packed


@cache
def get_shared_embedder(model: str) -> Embedder:
    """Return the embedder of that name, one for all detectors: its weights are loaded once."""
    return SentenceEmbedder(model)


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
    claim: Claim


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


class Overlap:
    """Shares of the words of claims that each of all groups of the evidence holds."""

    def __init__(self, groups: Sequence[ChunkGroup]) -> None:
        self._groups = groups
        self._lexicon = Lexicon()
        self._stems: dict[str, set[int]] = {}

    def share(self, claim: Claim, counted: Iterable[int]) -> float:
        """Return the share of the claim's different content words, by stems, that some groups hold together.

        An answer too short to be a statement (`MIN_WORDS`) says something only with its question: `Bonn`
        somewhere in the evidence supports no answer. Its share is multiplied by that of the question.

        In [0, 1]; 1 for a claim without content words.

        Args:
            counted: places of the groups.
        """
        there = set[int]().union(*(self._of(self._groups[place].text) for place in counted))
        said = self._held(claim.text, there)
        return said * self._held(claim.question, there) if len(split_words(claim.text)) < MIN_WORDS else said

    def _held(self, text: str, there: set[int]) -> float:
        wanted = self._of(text)
        return len(wanted & there) / len(wanted) if wanted else 1.0

    def _of(self, text: str) -> set[int]:
        if text not in self._stems:
            self._stems[text] = find_content_stems(text, self._lexicon)
        return self._stems[text]
