"""What a chatbot needs to answer a question from given documents: a retriever and a scenario."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hallulab.scenarios.packs.pack import Document, Persona, Scenario, Specialist
from hallulab.scenarios.transcript import Passage

_WORD = re.compile(r"\w+")


class GivenPassages:
    """A `hallulab.scenarios.transcript.Retriever` over a few passages: retrieval is simulated, as in the
    paper.

    A search for all of them gives them in their order. A search for fewer, as FactChecker's for a claim,
    gives those with the most words of the query, ties in their order.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = tuple(passages)

    async def search(self, query: str, k: int) -> tuple[Passage, ...]:
        """See `hallulab.scenarios.transcript.Retriever.search`."""
        if k >= len(self._passages):
            return self._passages
        asked = set(_WORD.findall(query.lower()))

        def shared(passage: Passage) -> int:
            return len(asked.intersection(_WORD.findall(passage.text.lower())))

        return tuple(sorted(self._passages, key=shared, reverse=True)[:k])


def build_scenario(passages: Sequence[Passage]) -> Scenario:
    """Return a scenario without a subject, for chatbots that answer a question from these passages."""
    return Scenario(
        name="rag-trust",
        title="Questions on given documents",
        description="Single questions, each with its documents.",
        domain="questions of all kinds",
        assistant="answer questions from documents",
        functions=("answer a question from the documents",),
        specialists=(
            Specialist(name="researcher", title="researcher", duty="answer the question from the documents"),
        ),
        documents=tuple(
            Document(name=passage.document, title=passage.document, source="HotpotQA", text=passage.text)
            for passage in passages
        ),
        personas=(
            Persona(
                id="asker",
                name="Somebody",
                grievance="wants an answer",
                goals=("get the answer",),
                manner="asks a single question",
                summary="Somebody asks a single question.",
            ),
        ),
    )
