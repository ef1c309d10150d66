"""Step 3 of MetaRAG (section 3.4): each variant against the context, as a penalty of Table 1."""

from __future__ import annotations

import re
from typing import Protocol

from agents.errors import UnparseableAnswer
from agents.model import Session
from agents.prompt import Prompt, load_prompt
from detectors.evidence_questions import Question, calibration
from detectors.judging import gather_all
from detectors.metarag.mutation import Variant
from detectors.metarag.scoring import Decision, decision_probabilities, expected_penalty
from scenarios.transcript import Frozen

_WORD = re.compile(r"\W*(yes|not[\s_-]+sure|no)\b", re.IGNORECASE)


class Check(Frozen):
    """What one verifier says of one variant."""

    decisions: dict[Decision, float]
    """Probability of each decision; 1 for the printed word."""
    penalty: float
    """Penalty of Table 1, or its expectation, in [0, 1]."""


class Verifier(Protocol):
    """A reading of a model's verdict on a variant."""

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompt files it uses."""

    async def check(self, session: Session, evidence: str, variant: Variant) -> Check:
        """The verdict of the session's model.

        Raises:
            ModelError: no verdict.
        """
        ...


class ProbabilityVerifier:
    """Expected penalty from two one-token questions: is it supported, is it contradicted? Two calls."""

    def __init__(self) -> None:
        self._supported = Question("supported")
        self._contradicted = Question("contradicted")
        self.prompts = (self._supported.prompt, self._contradicted.prompt)

    async def check(self, session: Session, evidence: str, variant: Variant) -> Check:
        """See `Verifier.check`."""
        supported, contradicted = await gather_all(
            [
                self._supported.ask(session, evidence, variant.text),
                self._contradicted.ask(session, evidence, variant.text),
            ]
        )
        correction = calibration(session.client.endpoint.model, "entailed")
        decisions = decision_probabilities(correction.apply(supported), contradicted)
        return Check(decisions=decisions, penalty=expected_penalty(variant.relation, decisions))


class WordVerifier:
    """The printed word, as in the paper: YES, NO or NOT SURE. One call."""

    def __init__(self, temperature: float) -> None:
        self._prompt = load_prompt("detectors.metarag", "verification")
        self._temperature = temperature
        self.prompts = (self._prompt,)

    async def check(self, session: Session, evidence: str, variant: Variant) -> Check:
        """See `Verifier.check`."""
        answer = await session.text(
            "verify",
            self._prompt.fill(evidence=evidence, statement=variant.text),
            temperature=self._temperature,
            max_tokens=6,
        )
        decision = read_decision(answer)
        return Check(decisions={decision: 1.0}, penalty=expected_penalty(variant.relation, {decision: 1.0}))


def read_decision(answer: str) -> Decision:
    """The decision that an answer begins with.

    Raises:
        UnparseableAnswer: it begins with none.
    """
    match = _WORD.match(answer)
    if match is None:
        raise UnparseableAnswer(f"verify: neither YES, NO nor NOT SURE: {answer[:80]!r}")
    word = match[1].lower()
    return "YES" if word == "yes" else "NO" if word == "no" else "NOT SURE"
