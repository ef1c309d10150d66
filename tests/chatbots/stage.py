"""A small scenario, a knowledge base and a scripted model that plays every step of every chatbot."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hallulab.chatbots.protocol import ChatbotContext
from hallulab.scenarios.packs.pack import Document, Persona, Scenario, Specialist
from hallulab.scenarios.transcript import Message, Passage
from hallulab.testing.scripted import Script, ScriptedTransport, scripted_pool

SCENARIO = Scenario(
    name="pool",
    title="The pool",
    description="Swimming.",
    domain="the city's swimming pools",
    assistant="help people who want to swim",
    functions=("Tell opening hours", "Explain tickets"),
    specialists=(
        Specialist(name="attendant", title="Attendant", duty="tells opening hours"),
        Specialist(name="drafter", title="Clerk", duty="writes letters to the pool"),
    ),
    documents=(Document(name="hours", title="Opening hours", source="the pool", text="Opens at 7."),),
    personas=(
        Persona(id="p", name="P", grievance="wet", goals=("swim",), manner="short", summary="asked to swim"),
    ),
)

HOURS = Passage(id="hours#0", document="hours", text="Opening hours\nThe pool opens at 7.", score=0.9)

ASKED = (Message(role="user", text="When does it open?"),)

LATER = (
    Message(role="user", text="I want to swim."),
    Message(role="assistant", text="Which pool?"),
    Message(role="user", text="The indoor one. When does it open?"),
)


class Shelf:
    """A knowledge base that finds the same passage for everything, and remembers what was searched."""

    def __init__(self) -> None:
        self.searched: list[tuple[str, int]] = []

    async def search(self, query: str, k: int) -> tuple[Passage, ...]:
        self.searched.append((query, k))
        return (HOURS,)


def step_of(body: Mapping[str, Any]) -> str:
    """Which step of a chatbot a request belongs to."""
    system, last = body["messages"][0]["content"], body["messages"][-1]["content"]
    if last.endswith("Rewrite the last message:"):
        return "reformulate"
    if last.endswith("Letter:"):
        return "route"
    if last.endswith("Answer Yes or No."):
        return "verify"
    if "You take apart a reply" in system:
        return "split"
    if "You now edit drafts" in system:
        return "edit"
    if "You now correct a draft" in system:
        return "process"
    return "generate"


def script(changes: Mapping[str, Any] | None = None) -> Script:
    """A model that does every step well, but for `changes`: by step, a value or a function of the request."""
    answers: dict[str, Any] = {
        "reformulate": "When does the indoor pool open?",
        "generate": "It opens at 7. A ticket is 6 euros.",
        "edit": json.dumps({"problems": ["A ticket is 6 euros."], "reply": "It opens at 7."}),
        "split": json.dumps({"claims": ["The pool opens at 7.", "A ticket is 6 euros."], "other": []}),
        "verify": lambda body: (
            {"Yes": 0.9, "No": 0.1}
            if "Statement: The pool opens" in body["messages"][-1]["content"]
            else {"Yes": 0.2, "No": 0.8}
        ),
        "process": "It opens at 7.",
        "route": {"A": 0.8, "B": 0.2},
        **(changes or {}),
    }

    def answer(body: dict[str, Any]) -> Any:
        given = answers[step_of(body)]
        return given(body) if callable(given) else given

    return answer


def stage(
    changes: Mapping[str, Any] | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    scenario: Scenario = SCENARIO,
    seed: int = 0,
    served: str = "scripted",
) -> tuple[ChatbotContext, ScriptedTransport, Shelf]:
    """A context on the scripted model, served under that name."""
    pool, transport = scripted_pool(script(changes), served)
    shelf = Shelf()
    context = ChatbotContext(
        models=pool, knowledge=shelf, scenario=scenario, seed=seed, top_k=4, options=options or {}
    )
    return context, transport, shelf
