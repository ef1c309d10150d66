"""Search of documents by their words, which takes neither an embedding model nor a database."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from importlib.util import find_spec

from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.text.chunking import DEFAULT_CHUNKING, Chunking, cut_into_passages
from hallulab.scenarios.text.spans import split_words
from hallulab.scenarios.text.words import STOP_WORDS, read_word
from hallulab.scenarios.transcript import Passage

K1 = 1.5
"""BM25's term saturation."""
B = 0.75
"""BM25's length normalisation."""

_SCORE_DIGITS = 6


SEARCHED_BY_WORDS = (
    "the documents are searched by their words (BM25): search by vectors needs pip install 'hallulab[local]'"
)


def can_search_by_vectors() -> bool:
    """Return whether the packages that search by vectors are installed. It imports none of them."""
    return all(find_spec(module) is not None for module in ("lancedb", "sentence_transformers"))


class WordSearch:
    """A `hallulab.scenarios.transcript.Retriever` by BM25 over the stems of the passages' words.

    BM25 is Lucene's: Robertson's with idf = ln(1 + (N - df + 0.5) / (df + 0.5)).

    Args:
        chunking: how documents are cut; by default as `KnowledgeBase` cuts them.
    """

    def __init__(self, scenario: Scenario, *, chunking: Chunking = DEFAULT_CHUNKING) -> None:
        self.passages: tuple[Passage, ...] = tuple(
            passage for document in scenario.documents for passage in cut_into_passages(document, chunking)
        )
        """All passages, in the order of the documents."""
        counts = [Counter(list_stems(passage.text)) for passage in self.passages]
        mean = max(sum(count.total() for count in counts) / max(len(counts), 1), 1e-12)
        self._weights: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for number, count in enumerate(counts):
            saturation = K1 * (1 - B + B * count.total() / mean)
            for stem, times in count.items():
                self._weights[stem].append((number, times / (times + saturation)))

    async def search(self, query: str, k: int) -> tuple[Passage, ...]:
        """Return the `k` passages nearest to `query`, best first, ties by identifier.

        A passage that has no word of the query is left out, so there may be fewer.
        """
        by_id = {passage.id: passage for passage in self.passages}
        return tuple(by_id[name].model_copy(update={"score": score}) for name, score in self.rank(query, k))

    def rank(self, query: str, k: int) -> list[tuple[str, float]]:
        """Return identifiers and scores of the passages that `search` returns."""
        if k < 1:
            raise ValueError(f"k is {k}; a search asks for at least one passage")
        scores: dict[int, float] = defaultdict(float)
        for stem, times in Counter(list_stems(query)).items():
            holding = self._weights.get(stem, ())
            idf = math.log1p((len(self.passages) - len(holding) + 0.5) / (len(holding) + 0.5))
            for number, weight in holding:
                scores[number] += times * idf * weight
        found = [(self.passages[number].id, round(score, _SCORE_DIGITS)) for number, score in scores.items()]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:k]


def list_stems(text: str) -> list[str]:
    """Return the stems of a text's words, without stop words and marks.

    >>> list_stems("The fees are 200 rupees, paid in court.")
    ['fee', '200', 'rupe', 'paid', 'court']
    """
    words = (word for word in split_words(text) if word[0].isalnum())
    return [read_word(word).stem for word in words if word.lower() not in STOP_WORDS]
