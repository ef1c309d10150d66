"""Measure how many of a claim's words the evidence holds; a small model's Yes overlooks that. Ours, no
paper's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hallulab.detectors.base.statements import MIN_WORDS
from hallulab.detectors.features.tokens import Lexicon, find_content_stems
from hallulab.detectors.logic_graph.scorers import ChunkGroup
from hallulab.detectors.logic_graph.segmentation import Claim
from hallulab.scenarios.text.spans import split_words


class Overlap:
    """Shares of the words of claims that groups of the evidence hold.

    Args:
        groups: all groups of the evidence.
    """

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
            claim: what is claimed.
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
