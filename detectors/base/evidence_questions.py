"""Ask one-token questions about a statement and evidence, and read the probability of Yes.

A small model's word is often useless where its probability is not. All questions of a turn begin with the
same system message and evidence, so the server computes that part once. A model's Yes is biased, differently
for each model and question. `calibration.yaml` holds logistic corrections, fitted on development data, by
model of the catalogue (`hallulab.agents.served_model`) and quantity: a question, or what a detector makes of
several.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml
from pydantic import TypeAdapter

from hallulab.agents.models.model import Session
from hallulab.agents.models.prompt import Prompt, load_prompt
from hallulab.agents.served_model import catalogue_name
from hallulab.scenarios.transcript import Frozen

_ALMOST = 1e-6
"""Probabilities are kept this far from 0 and 1, so that log-odds are finite."""


class Calibration(Frozen):
    """A correction of log-odds: scale * log-odds + shift."""

    scale: float = 1.0
    """Above 1: the model is surer than it says."""
    shift: float = 0.0
    """Above 0: the model says Yes too rarely."""

    def apply(self, probability: float) -> float:
        """Return the corrected probability, in (0, 1)."""
        kept = min(max(probability, _ALMOST), 1.0 - _ALMOST)
        odds = self.scale * math.log(kept / (1.0 - kept)) + self.shift
        return 1.0 / (1.0 + math.exp(-odds))


class Question:
    """A yes/no question about `{{statement}}`, mostly with `{{evidence}}`: a file in `detectors/prompts`."""

    def __init__(self, name: str, yes: str = "Yes", no: str = "No") -> None:
        self.name = name
        self._yes, self._no = yes, no
        self.prompt: Prompt = load_prompt("hallulab.detectors.base", name)

    async def ask(self, session: Session, evidence: str, statement: str) -> float:
        """Return the probability of Yes, corrected for the session's model. It takes one call of one token.

        Raises:
            UnparseableAnswer: the model says neither Yes nor No.
            ModelError: no answer.
        """
        values = {"evidence": evidence, "statement": statement}
        messages = self.prompt.fill({name: values[name] for name in self.prompt.placeholders})
        answer = await session.choose(self.name, messages, (self._yes, self._no))
        return calibration(catalogue_name(session.client), self.name).apply(answer[self._yes])


def calibration(model: str | None, quantity: str) -> Calibration:
    """Return the correction of a quantity for a model of the catalogue; none where nothing was fitted."""
    return _calibrations().get(model or "", {}).get(quantity, Calibration())


def calibrations_of(model: str | None) -> dict[str, dict[str, float]]:
    """Return all corrections for a model of the catalogue, by quantity; versions depend on them."""
    return {name: each.model_dump() for name, each in _calibrations().get(model or "", {}).items()}


@cache
def _calibrations() -> Mapping[str, Mapping[str, Calibration]]:
    text = files("hallulab.detectors.base").joinpath("calibration.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, dict[str, Calibration]]).validate_python(yaml.safe_load(text) or {})
