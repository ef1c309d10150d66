"""What an endpoint can do besides answering; it decides how its model's answers are read."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hallulab.scenarios.transcript import Frozen

SeedUse = Literal["kept", "ignored", "refused"]


class Capabilities(Frozen):
    """The abilities of one model at its endpoint, as found by `hallulab.agents.models.probing`."""

    log_probabilities: bool = True
    """Whether it gives log-probabilities of tokens. Without them a decision is the printed word."""
    seed: SeedUse = "kept"
    """Whether equal seeds give equal answers, have no effect, or must not be sent."""
    json_schema: bool = True
    """Whether it can make answers follow a JSON schema. Else the prompt asks for JSON, and the answer is
    searched for it."""
    function_calls: bool = False
    """Whether its model hands messages over by calling functions; assumed only where it was seen."""
    asked: bool = False
    """Whether the endpoint was asked. Else it is assumed to have all abilities: a replayed recording may be
    older than the question, or the endpoint did not answer it."""


class ReadHow(Capabilities):
    """How a model's answers were read in a run: an entry of `read_how` in `experiment.json`."""

    model: str
    """Its served name."""
    decision_samples: int = Field(default=1, ge=1)
    """Printed words per decision, if the endpoint gives no log-probabilities."""
