"""What an endpoint can do besides answering, and so how its model's answers are read."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from scenarios.transcript import Frozen


class Abilities(Frozen):
    """What `agents.models.probing` found out about one model at its endpoint."""

    log_probabilities: bool = True
    """Whether it tells the log-probabilities of tokens. Without them a decision is the printed word."""
    seed: Literal["kept", "ignored", "refused"] = "kept"
    """Whether equal seeds give equal answers, make no difference, or must not be sent."""
    json_schema: bool = True
    """Whether it makes answers follow a JSON schema. Else JSON is asked for in the prompt, and looked for in
    the answer."""
    asked: bool = False
    """Whether the endpoint was asked. Else it is assumed to be able to do all: a recording that is replayed
    may be older than the question, and an endpoint may have failed to answer it."""


class ReadHow(Abilities):
    """How a model's answers were read in a run: an entry of `read_how` in `experiment.json`."""

    model: str
    """The name it is served under."""
    decision_samples: int = Field(default=1, ge=1)
    """Printed words that made up a decision, where log-probabilities were not told."""
