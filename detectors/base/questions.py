"""Questions about statements and evidence that several detectors ask.

Ask one-token questions about a statement and evidence, and read the probability of Yes.
A small model's word is often useless where its probability is not. All questions of a turn begin with the
same system message and evidence, so the server computes that part once. `verification` is asked by
HalluDetect and MetaRAG: what one of them has asked about a reply's evidence is not read again for the other.
A model's Yes is biased, differently for each model and question. `calibration.yaml` holds logistic
corrections, fitted on development data, by model of the catalogue (`hallulab.agents.served_model`) and
quantity: a question, or what a detector makes of several.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import yaml
from pydantic import TypeAdapter

from hallulab.agents.models.prompt import Prompt, load_prompt
from hallulab.agents.models.session import Session
from hallulab.agents.served_model import find_catalogue_name
from hallulab.scenarios.text.courtesies import claims_nothing
from hallulab.scenarios.text.spans import Region, split_sentences, split_words
from hallulab.scenarios.transcript import Frozen

VERIFICATION = "verification"
"""The question that HalluDetect asks of sentences and MetaRAG of variants of facts."""
VERIFICATION_WORDS = ("YES", "NO", "NOT")
"""The first word of each of its answers; NOT begins NOT SURE."""

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
    """A question about `{{statement}}`, mostly with `{{evidence}}`: a file in `detectors/base/prompts`.

    Args:
        words: the first words of its answers; the first one of them is the Yes.
    """

    def __init__(self, name: str, words: Sequence[str] = ("Yes", "No")) -> None:
        self.name = name
        self._words = words
        self.prompt: Prompt = load_prompt("hallulab.detectors.base", name)

    async def ask(self, session: Session, evidence: str, statement: str) -> float:
        """Return the probability of Yes, corrected for the session's model. It takes one call of one token.

        Raises:
            UnparseableAnswer: the model says none of the words.
            ModelError: no answer.
        """
        values = {"evidence": evidence, "statement": statement}
        messages = self.prompt.fill({name: values[name] for name in self.prompt.placeholders})
        answer = await session.choose(self.name, messages, self._words)
        return find_calibration(find_catalogue_name(session.client), self.name).apply(answer[self._words[0]])


def find_calibration(model: str | None, quantity: str) -> Calibration:
    """Return the correction of a quantity for a model of the catalogue; none where nothing was fitted."""
    return _load_calibrations().get(model or "", {}).get(quantity, Calibration())


def list_calibrations(model: str | None) -> dict[str, dict[str, float]]:
    """Return all corrections for a model of the catalogue, by quantity; versions depend on them."""
    return {name: each.model_dump() for name, each in _load_calibrations().get(model or "", {}).items()}


@cache
def _load_calibrations() -> Mapping[str, Mapping[str, Calibration]]:
    text = files("hallulab.detectors.base").joinpath("calibration.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, dict[str, Calibration]]).validate_python(yaml.safe_load(text) or {})


MIN_WORDS = 4
"""Shorter sentences are not judged alone."""


def split_statements(reply: str) -> list[Region]:
    """Return the sentences with words in them; one with fewer than `MIN_WORDS` words joins the next one.

    `Yes!` alone says nothing that evidence could support.
    """
    joined: list[Region] = []
    start: int | None = None
    for region in split_sentences(reply):
        first = region.start if start is None else start
        text = reply[first : region.end]
        if not split_words(text):
            continue
        if len(split_words(text)) < MIN_WORDS and not claims_nothing(text):
            start = first
            continue
        joined.append(Region(first, region.end))
        start = None
    if start is not None:
        last = joined.pop().start if joined else start
        joined.append(Region(last, len(reply.rstrip())))
    return joined
