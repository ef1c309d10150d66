"""A knowledge base of three short documents."""

from __future__ import annotations

from pathlib import Path

from hallulab.agents.retrieval.knowledge import KnowledgeBase
from hallulab.scenarios.packs.pack import Document, Persona, Scenario, Specialist
from hallulab.testing.tiny_pack import HashedWords

TEXTS = {
    "fees": "A complaint over five lakh rupees costs a fee of two hundred rupees.",
    "limitation": "A complaint is filed within two years of the day on which the harm was done.",
    "mediation": "With consent of both sides the commission sends them to a mediator.",
}


def scenario(texts: dict[str, str] = TEXTS) -> Scenario:
    return Scenario(
        name="tiny",
        title="Tiny",
        description="Tiny.",
        domain="law",
        assistant="help",
        specialists=(Specialist(name="guide", title="Guide", duty="guides"),),
        documents=tuple(
            Document(name=name, title=name.title(), source="Act", topic="law", text=text)
            for name, text in texts.items()
        ),
        personas=(
            Persona(id="p", name="P", grievance="g", goals=("know",), manner="short", summary="asked"),
        ),
    )


def knowledge(cache: Path, embedder: HashedWords | None = None, **options: object) -> KnowledgeBase:
    return KnowledgeBase(scenario(), embedder=embedder or HashedWords(), cache=cache, **options)  # type: ignore[arg-type]
