"""Step 3 of MetaRAG (section 3.4): compare each variant with the context; the result is a penalty of Table
1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import fmean
from typing import Protocol

from agents.models.errors import UnparseableAnswer
from agents.models.model import Session
from agents.models.prompt import Prompt, load_prompt
from agents.served_model import catalogue_name
from detectors.base.evidence_questions import Question, calibration
from detectors.base.judging import gather_all
from detectors.metarag.mutation import Variant
from detectors.metarag.scoring import Decision, Relation, decision_probabilities, expected_penalty
from scenarios.transcript import Frozen

_WORD = re.compile(r"\W*(yes|not[\s_-]+sure|no)\b", re.IGNORECASE)


class Check(Frozen):
    """The result of one verifier for one variant."""

    decisions: dict[Decision, float]
    """Probability of each decision; 1 for the printed word."""
    penalty: float
    """Penalty of Table 1, or its expectation, in [0, 1]."""


class Verifier(Protocol):
    """A reading of a model's verdicts on the variants of a factoid."""

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompt files it uses."""

    async def check(self, session: Session, evidence: str, variants: Sequence[Variant]) -> list[Check]:
        """Return the verdicts of the session's model, one a variant, in order."""
        ...


class ProbabilityVerifier:
    """Expected penalties from one question of one token a variant: does the evidence say this?

    Whether the evidence contradicts a variant is not asked: small models answer such a question the wrong way
    round. What it says of the opposite variants tells: the mean of their support is the probability of NO
    where there is no support.
    """

    def __init__(self) -> None:
        self._stated = Question("stated")
        self.prompts = (self._stated.prompt,)

    async def check(self, session: Session, evidence: str, variants: Sequence[Variant]) -> list[Check]:
        """See `Verifier.check`."""
        stated = await gather_all(self._stated.ask(session, evidence, variant.text) for variant in variants)
        model = catalogue_name(session.client)
        support = [
            calibration(model, f"entailed {variant.relation}").apply(answer)
            for variant, answer in zip(variants, stated, strict=True)
        ]
        of = {
            relation: fmean(s for s, v in zip(support, variants, strict=True) if v.relation == relation)
            for relation in {variant.relation for variant in variants}
        }
        checks = []
        for supported, variant in zip(support, variants, strict=True):
            opposite: Relation = "antonym" if variant.relation == "synonym" else "synonym"
            decisions = decision_probabilities(supported, of.get(opposite, 0.0))
            checks.append(Check(decisions=decisions, penalty=expected_penalty(variant.relation, decisions)))
        return checks


class WordVerifier:
    """The printed word, as in the paper: YES, NO or NOT SURE. One call a variant."""

    def __init__(self, temperature: float) -> None:
        self._prompt = load_prompt("detectors.metarag", "verification")
        self._temperature = temperature
        self.prompts = (self._prompt,)

    async def check(self, session: Session, evidence: str, variants: Sequence[Variant]) -> list[Check]:
        """See `Verifier.check`."""
        return await gather_all(self._check(session, evidence, variant) for variant in variants)

    async def _check(self, session: Session, evidence: str, variant: Variant) -> Check:
        answer = await session.text(
            "verify",
            self._prompt.fill(evidence=evidence, statement=variant.text),
            temperature=self._temperature,
            max_tokens=6,
        )
        decision = read_decision(answer)
        return Check(decisions={decision: 1.0}, penalty=expected_penalty(variant.relation, {decision: 1.0}))


def read_decision(answer: str) -> Decision:
    """Return the decision that an answer begins with."""
    match = _WORD.match(answer)
    if match is None:
        raise UnparseableAnswer(f"verify: neither YES, NO nor NOT SURE: {answer[:80]!r}")
    word = match[1].lower()
    return "YES" if word == "yes" else "NO" if word == "no" else "NOT SURE"
