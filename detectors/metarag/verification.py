"""Step 3 of MetaRAG (section 3.4): compare each variant with the context, for a penalty of Table 1.

Each variant is one question: YES, NO or NOT SURE? Six answered examples come first. Without them a small
model's three answers tell nothing apart. All questions about a reply begin alike, so a server that caches
prefixes reads examples and evidence once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from hallulab.agents.models.answers import UnparseableAnswer
from hallulab.agents.models.client import ModelClient
from hallulab.agents.models.model import Session
from hallulab.agents.models.prompt import load_prompt
from hallulab.agents.served_model import find_catalogue_name
from hallulab.detectors.base.judging import gather_all
from hallulab.detectors.base.questions import (
    VERIFICATION,
    VERIFICATION_WORDS,
    Calibration,
    find_calibration,
)
from hallulab.detectors.metarag.mutation import Variant
from hallulab.detectors.metarag.scoring import Decision, expected_penalty
from hallulab.scenarios.transcript import Frozen

DecisionReading = Literal["probability", "word"]
"""How a decision is read: from the probabilities of its first word, or as the printed word."""

_DECISIONS: tuple[Decision, ...] = ("YES", "NO", "NOT SURE")
FIRST_WORDS = dict(zip(VERIFICATION_WORDS, _DECISIONS, strict=True))
"""The first word of each decision. They are the shared ones: another order would be another request."""

SUPPORTED = "verified"
"""The probability of YES in `calibration.yaml`: a model may say it too easily."""

_WORD = re.compile(r"\W*(yes|not[\s_-]+sure|no)\b", re.IGNORECASE)


class Check(Frozen):
    """The result of one verifier for one variant."""

    decisions: dict[Decision, float]
    """Probability of each decision; 1 for the printed word."""
    penalty: float
    """Penalty of Table 1, or its expectation, in [0, 1]."""


def reading_for(client: ModelClient) -> DecisionReading:
    """Return how a model's decisions are best read.

    The models of the catalogue are small: what they print is often wrong where their probabilities still tell
    one case from another. They need an endpoint with log-probabilities. Any other model prints a word, as in
    the paper.
    """
    small = find_catalogue_name(client) is not None
    return "probability" if small and client.abilities.log_probabilities else "word"


class Verifier:
    """Asks a model for a decision on each variant. One call a variant.

    Args:
        reading: how decisions are read; None: as is best for the model that is asked.
        temperature: of printed words.
    """

    def __init__(self, reading: DecisionReading | None, temperature: float) -> None:
        self.prompt = load_prompt("hallulab.detectors.base", VERIFICATION)
        self._reading = reading
        self._temperature = temperature

    def reading_of(self, client: ModelClient) -> DecisionReading:
        """Return how the decisions of a model are read."""
        return self._reading or reading_for(client)

    async def check(self, session: Session, evidence: str, variants: Sequence[Variant]) -> list[Check]:
        """Return the results of the session's model, one a variant, in order.

        Raises:
            UnparseableAnswer: the model makes none of the three decisions.
            ModelError: no answer.
        """
        return await gather_all(self._check(session, evidence, variant) for variant in variants)

    async def _check(self, session: Session, evidence: str, variant: Variant) -> Check:
        messages = self.prompt.fill(evidence=evidence, statement=variant.text)
        if self.reading_of(session.client) == "probability":
            shares = await session.choose("verify", messages, tuple(FIRST_WORDS))
            decisions = correct_probability(
                {FIRST_WORDS[word]: share for word, share in shares.items()},
                find_calibration(find_catalogue_name(session.client), SUPPORTED),
            )
        else:
            answer = await session.text("verify", messages, temperature=self._temperature, max_tokens=6)
            decisions = {read_decision(answer): 1.0}
        return Check(decisions=decisions, penalty=expected_penalty(variant.relation, decisions))


def correct_probability(
    decisions: Mapping[Decision, float], correction: Calibration
) -> dict[Decision, float]:
    """Correct the probability of YES; the two others keep their ratio."""
    yes = correction.apply(decisions["YES"])
    others = decisions["NO"] + decisions["NOT SURE"]
    shares = {word: decisions[word] / others if others else 0.5 for word in ("NO", "NOT SURE")}
    return {"YES": yes, "NO": (1 - yes) * shares["NO"], "NOT SURE": (1 - yes) * shares["NOT SURE"]}


def read_decision(answer: str) -> Decision:
    """Return the decision that an answer begins with."""
    match = _WORD.match(answer)
    if match is None:
        raise UnparseableAnswer(f"verify: neither YES, NO nor NOT SURE: {answer[:80]!r}")
    word = match[1].lower()
    return "YES" if word == "yes" else "NO" if word == "no" else "NOT SURE"
