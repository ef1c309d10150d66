"""Searches that return little, nothing, or outdated passages.

Documents stay as they are, and detectors that search find everything. Changes of a search depend on the
attack's seed, the persona and the query alone, so all chatbots that ask the same get the same.
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Literal, NamedTuple

from pydantic import Field

from hallulab.scenarios.attacks.poison import Poison, plant_outdated
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.packs.pack import Document
from hallulab.scenarios.transcript import Frozen, Passage, Step
from hallulab.scenarios.turn_views import Retriever

SearchFate = Literal["whole", "empty", "outdated"]
"""Change of a search: it returns the passages found, none, or older versions of them."""

STEP = "attacked search"
"""Name of the steps of a turn that say what was done to its searches: the fate, a colon and the query."""


class RetrievalAttack(Frozen):
    """The knobs of an attack on searches; by default nothing is done."""

    top_k: int | None = Field(default=None, ge=1)
    """Passages that a search returns at most, whatever a chatbot asks for; None: what it asks for."""
    empty_ratio: float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of the searches that return nothing."""
    stale_ratio: float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of the other searches that return older versions of the passages."""


class OutdatedPassage(NamedTuple):
    """An older version of a passage."""

    passage: Passage
    """It, with other values; the same passage if it has none that a rule can change."""
    statements: tuple[Poison, ...]
    """The false statement in place of the truth."""


def draw_search_fate(knobs: RetrievalAttack, seed: int, persona: str, query: str) -> SearchFate:
    """Choose what is done to a search. Higher ratios do it to the same searches and more."""
    generator = random.Random(digest([seed, "search", persona, query]))  # noqa: S311 - a seeded choice of data
    # Both are drawn, also where the first decides: so one ratio does not move the choices of the other.
    empty, stale = generator.random(), generator.random()
    if empty < knobs.empty_ratio:
        return "empty"
    return "outdated" if stale < knobs.stale_ratio else "whole"


@lru_cache(maxsize=10_000)
def make_outdated(passage: Passage, seed: int) -> OutdatedPassage:
    """Return an older version of a passage: in each whole sentence with one, an amount or date is another.

    The title stays. Equal arguments give equal passages.

    Args:
        passage: as it is cut from a document, without a score.
    """
    title, line_end, body = passage.text.partition("\n")
    whole = Document(name=passage.id, title=title, source="", text=body)
    made, statements = plant_outdated(whole, seed)
    return OutdatedPassage(
        passage.model_copy(update={"text": f"{title}{line_end}{made.text}"}),
        tuple(one.model_copy(update={"document": passage.document}) for one in statements),
    )


class AttackedRetriever:
    """Does to the searches of one conversation what an attack says (a `Retriever`), and keeps what it did."""

    def __init__(self, retriever: Retriever, knobs: RetrievalAttack, seed: int, persona: str) -> None:
        self._retriever = retriever
        self._knobs = knobs
        self._seed = seed
        self._persona = persona
        self._done: list[Step] = []

    async def search(self, query: str, k: int) -> tuple[Passage, ...]:
        """See `Retriever.search`; there may be fewer passages, none, or outdated ones."""
        fate = draw_search_fate(self._knobs, self._seed, self._persona, query)
        self._done.append(Step(name=STEP, text=f"{fate}: {query}"))
        if fate == "empty":
            return ()
        found = await self._retriever.search(query, min(k, self._knobs.top_k or k))
        if fate == "whole":
            return found
        bare = (one.model_copy(update={"score": None}) for one in found)
        older = (make_outdated(one, self._seed).passage for one in bare)
        return tuple(
            one.model_copy(update={"score": given.score}) for one, given in zip(older, found, strict=True)
        )

    def take_steps(self) -> tuple[Step, ...]:
        """Return what was done to the searches since the last call, in their order."""
        done, self._done = self._done, []
        return tuple(done)


def read_search_fates(steps: tuple[Step, ...]) -> frozenset[str]:
    """Return what was done to the searches of a turn: see `SearchFate`; empty without an attack on them."""
    return frozenset(step.text.partition(":")[0] for step in steps if step.name == STEP)
