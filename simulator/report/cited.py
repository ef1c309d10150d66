"""Where the evidence of a judgement comes from: its turn, another turn of the conversation, or a search."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from hallulab.scenarios.transcript import Conversation, Span, Verdict

_PASSAGE = re.compile(r"([^\n]{1,200}?#\d{1,9})(?:: (.*))?", re.DOTALL)
"""A passage as detectors cite it: `document#position`, and its text."""
QUERY = "reformulated query"
"""Step of a detector that searched: the query."""


@dataclass(frozen=True)
class CitedEvidence:
    """The evidence that a judgement cites."""

    name: str
    """Identifier of the passage; empty: it is no passage."""
    text: str
    """Its text; empty: only the identifier is known."""
    turn: int | None
    """Turn whose passages have it; None: none up to the one that is judged."""
    place: int
    """Its place among them, from 0."""
    origin: str
    """Where it comes from, for a person."""


@dataclass(frozen=True)
class EvidenceFinder:
    """Finds the evidence that judgements of one conversation cite."""

    chat: Conversation

    @cached_property
    def _places(self) -> Mapping[int, Mapping[str, int]]:
        return {
            turn.index: {one.id: place for place, one in reversed([*enumerate(turn.passages)])}
            for turn in self.chat.turns
        }

    def find(self, span: Span, verdict: Verdict) -> CitedEvidence | None:
        """Return the evidence of a judgement; None: it cites none."""
        if not span.evidence:
            return None
        names = (span.evidence, span.evidence.partition(": ")[0])  # alone, or before its text
        for turn in range(verdict.turn, -1, -1):
            name = next((one for one in names if one in self._places.get(turn, {})), None)
            if name is not None:
                return self._describe(name, turn, verdict.turn)
        passage = _PASSAGE.fullmatch(span.evidence)
        if passage is None:
            return CitedEvidence("", span.evidence, None, 0, f"as {verdict.detector} quotes it")
        query = next((unit.text for unit in verdict.units if unit.details.get("step") == QUERY), None)
        origin = (
            f"not among the passages of this conversation; {verdict.detector} found it by a search of its own"
        )
        origin += f", for “{query}”" if query else ""
        return CitedEvidence(passage[1], passage[2] or "", None, 0, origin)

    def _describe(self, name: str, turn: int, judged: int) -> CitedEvidence:
        place = self._places[turn][name]
        shown = self.chat.turns[turn].passages
        origin = f"passage {place + 1} of {len(shown)} of "
        origin += "this turn" if turn == judged else f"turn {self.chat.depth(turn) + 1}, not of this one"
        return CitedEvidence(name, shown[place].text, turn, place, origin)


def is_passage(evidence: str) -> bool:
    """Return whether evidence is a passage: its identifier, perhaps with its text.

    >>> is_passage("fees#0: The fee is Rs 200."), is_passage("The fee is Rs 200.")
    (True, False)
    """
    return _PASSAGE.fullmatch(evidence) is not None
