"""The abilities of a model at its endpoint, and how its answers were read in a run."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hallulab.agents.models.answers import RefusedRequest
from hallulab.scenarios.transcript import Frozen

SeedUse = Literal["kept", "ignored", "refused"]

Ability = Literal["log_probabilities", "json_schema"]
"""An ability without which a question is another one: it is asked in other words, or read in another way."""


class LackingAbility(RefusedRequest):
    """The endpoint refused a request because it lacks an ability: ask without it."""

    def __init__(self, reason: str, status: int, ability: Ability) -> None:
        super().__init__(reason, status)
        self.ability = ability


class Capabilities(Frozen):
    """The abilities of one model at its endpoint, as found by `hallulab.agents.models.probe`."""

    log_probabilities: bool = True
    """True if it gives log-probabilities of tokens. Without them a decision is the printed word."""
    seed: SeedUse = "kept"
    """Effect of seeds: equal ones give equal answers, have no effect, or must not be sent."""
    json_schema: bool = True
    """True if it can make answers follow a JSON schema. Else the prompt asks for JSON, and the answer is
    searched for it."""
    function_calls: bool = False
    """True if its model hands messages over by calling functions; assumed only where it was seen."""
    asked: bool = False
    """True if the endpoint was asked. Else it is assumed to have all abilities: a replayed recording may be
    older than the question, or the endpoint did not answer it."""


class ReadHow(Capabilities):
    """How a model's answers were read in a run: an entry of `read_how` in `experiment.json`."""

    model: str
    decision_samples: int = Field(default=1, ge=1)
    """Printed words per decision, if the endpoint gives no log-probabilities."""
    asked_with: tuple[str, ...] = ()
    """Special needs of its endpoint (`hallulab.agents.models.needs`), in words."""
    under_test: bool = False
    """True if it is a chatbot behind an endpoint of its own, of which only texts are read."""
