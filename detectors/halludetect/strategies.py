"""The protocol of HalluDetect's strategies, and the paper's: the model writes lists (section 3.2).

HalluDetect's steps as in the paper: lists that the model writes (appendix B.1.3 to B.1.5).
Self-consistency: the analysis is sampled several times, and each sample's quotations are mapped to sentences
of the reply. A sentence is kept if more than half of the samples object to it; the first of them gives the
reason. Quotations that the reply does not hold are compared with each other and kept as unlocated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Protocol

from pydantic import Field

from hallulab.agents.models.answers import ModelError, UnparseableAnswer
from hallulab.agents.models.prompt import Prompt, load_prompt
from hallulab.agents.models.session import Session
from hallulab.detectors.base.judging import ask_with, number_texts
from hallulab.detectors.halludetect.evidence import EvidenceContext, gather_grounds, repeats_user
from hallulab.scenarios.text.spans import Region, cut_region, locate_mentions, normalize_text, split_sentences
from hallulab.scenarios.transcript import Frozen
from hallulab.scenarios.turn_views import TurnView

HARMLESS, CRITICAL = 1.0, 5.0
"""Ends of the scale (B.1.4)."""
PAPER_THRESHOLD = 4.0
"""Severity from which a hallucination is kept (section 3.2)."""


def compute_severity(unsupported: float, consequence: float) -> float:
    """Return a sentence's severity from two probabilities (ours; in the paper the refiner writes a digit).

    Two kinds of sentence are harmless: unsupported without consequence (a polite offer), and supported. So
    the product of both counts, with `consequence` in full from even odds on. Three points fix the scale:
    nothing is 1, certainty is 5, and even odds that a claim is unsupported are 4, the severity from which a
    hallucination is kept.

    Args:
        unsupported: probability that the evidence does not support the sentence.
        consequence: probability that the sentence states something that can be right or wrong.
    """
    risk = unsupported * min(1.0, 2.0 * consequence)
    if risk <= 0.5:
        return HARMLESS + (PAPER_THRESHOLD - HARMLESS) * risk / 0.5
    return PAPER_THRESHOLD + (CRITICAL - PAPER_THRESHOLD) * (risk - 0.5) / 0.5


class RatedSentence(Frozen):
    """A possible hallucination after analysis and refinement."""

    text: str
    """The sentence, or the model's quotation if that is not in the reply."""
    region: Region | None
    """Where it stands in the reply."""
    severity: float
    """1 (harmless) to 5 (critical). Of readings that do not grade how much a sentence matters, it is only
    the scale for `probability`."""
    probability: float | None = None
    """Probability that the evidence does not support it, of such readings."""
    reason: str = ""
    """Why, if that is known already."""
    evidence: str | None = None
    """The passage that the reason is about, as `id: text`; None: the one that shares most words."""
    details: dict[str, float | str | None] = Field(default_factory=dict)

    def without_reason(self, error: ModelError, instead: str) -> RatedSentence:
        """Return the same with the reason `instead`: the step that words it failed.

        Details keep the error.

        The verdict does not depend on that step: what was rated stays rated.
        """
        return self.model_copy(update={"reason": instead, "details": {**self.details, "error": str(error)}})


class DoubledRetrieval:
    """Shared parts of the paper's steps: grounds by doubled retrieval and memory; the worst sentence decides.

    Args:
        factor: passages searched for, as a multiple of the turn's own.
        max_characters: most characters of evidence.
    """

    def __init__(self, factor: int, max_characters: int) -> None:
        self._factor = factor
        self._max_characters = max_characters
        self._memory = load_prompt("hallulab.detectors.halludetect", "memory")

    async def ground(self, session: Session, view: TurnView) -> EvidenceContext:
        """See `JudgingStrategy.ground`."""
        return await gather_grounds(
            session, view, self._memory, factor=self._factor, max_characters=self._max_characters
        )

    def overall(self, rated: list[RatedSentence], grounds: EvidenceContext, view: TurnView) -> float:
        """See `JudgingStrategy.overall`."""
        return max((item.severity for item in rated), default=HARMLESS)


class JudgingStrategy(Protocol):
    """Analysis and filtering (B.1.3, B.1.4), done in one of several ways."""

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompt files it uses."""

    async def ground(self, session: Session, view: TurnView) -> EvidenceContext:
        """Gather the evidence for the reply.

        Raises:
            OperationalError: a model or the knowledge base failed.
        """
        ...

    async def rate(self, session: Session, grounds: EvidenceContext, view: TurnView) -> list[RatedSentence]:
        """Return everything that may be hallucinated, harmless things included, in order.

        Raises:
            ModelError: a step got no usable answer.
        """
        ...

    def overall(self, rated: list[RatedSentence], grounds: EvidenceContext, view: TurnView) -> float:
        """Return the reply's severity, 1 to 5, from what `rate` returned."""
        ...

    async def conclude(
        self, session: Session, grounds: EvidenceContext, kept: list[RatedSentence]
    ) -> list[RatedSentence]:
        """Return the same hallucinations in order, each with its reason (B.1.5); `kept` is not empty.

        If the model gives none, that is no failure: see `RatedSentence.without_reason`.
        """
        ...


LIST_TOKENS = 1024
"""Limit of a list (B.5)."""


class Objection(Frozen):
    """A line of the rough analysis."""

    reason: str
    """The error; requested before the quotation."""
    sentence: str


class RoughAnalysis(Frozen):
    """What the analysis prompt asks for."""

    hallucinations: list[Objection]
    """Possibly none."""


class Grade(Frozen):
    """A line of the fine analysis."""

    number: Annotated[int, Field(ge=1)]
    """Of the hallucination in the list that was shown, from 1."""
    explanation: str
    """Why this severe."""
    severity: Annotated[int, Field(ge=1, le=5)]
    """1 (harmless) to 5 (critical)."""


class FineAnalysis(Frozen):
    """What the refiner prompt asks for."""

    grades: list[Grade]
    """One for each hallucination shown."""


class Conclusion(Frozen):
    """A line of the final result."""

    number: Annotated[int, Field(ge=1)]
    """Of the hallucination in the list that was shown, from 1."""
    reason: str
    """Contradiction or missing evidence, in one sentence."""


class Result(Frozen):
    """What the result prompt asks for."""

    hallucinations: list[Conclusion]
    """One for each hallucination shown."""


class WordReading(DoubledRetrieval):
    """As many calls as samples, then one for the refiner and one for the result.

    Args:
        temperature: of the sampled analyses.
        factor, max_characters: see `DoubledRetrieval`.
        examples: whether the prompts of analysis and refiner keep their answered examples.
    """

    def __init__(
        self, samples: int, temperature: float, factor: int, max_characters: int, examples: bool = True
    ) -> None:
        super().__init__(factor, max_characters)
        self._samples = samples
        self._temperature = temperature
        self._analysis = load_prompt("hallulab.detectors.halludetect", "analysis")
        self._refiner = load_prompt("hallulab.detectors.halludetect", "refiner")
        if not examples:
            self._analysis, self._refiner = (
                self._analysis.without_examples(),
                self._refiner.without_examples(),
            )
        self._result = load_prompt("hallulab.detectors.halludetect", "result")
        self.prompts = (self._memory, self._analysis, self._refiner, self._result)

    async def rate(self, session: Session, grounds: EvidenceContext, view: TurnView) -> list[RatedSentence]:
        """See `JudgingStrategy.rate`: what a majority of the samples objects to."""
        analyses = await self.analyse(session, grounds, view)
        voted = vote(analyses, view.reply)
        cleared = [repeats_user(rated.text, grounds.user_statements) for rated in voted]
        open_cases = [rated for rated, harmless in zip(voted, cleared, strict=True) if not harmless]
        graded = iter(await self._grade(session, grounds, open_cases) if open_cases else ())
        rule = {"rule": "repeats what the user said"}
        return [
            rated.model_copy(update={"details": {**rated.details, **rule}}) if harmless else next(graded)
            for rated, harmless in zip(voted, cleared, strict=True)
        ]

    async def analyse(
        self, session: Session, grounds: EvidenceContext, view: TurnView
    ) -> list[RoughAnalysis]:
        """Return the sampled lists that parse (B.1.3).

        Raises:
            ModelError: most of them do not, or there is no answer.
        """
        messages = self._analysis.fill(
            evidence=grounds.text, asked=ask_with(view.question, "Question:\n", "\n\n"), reply=view.reply
        )
        outcomes = await asyncio.gather(
            *(
                session.structured(
                    "analysis",
                    messages,
                    RoughAnalysis,
                    temperature=self._temperature,
                    max_tokens=LIST_TOKENS,
                    sample=sample,
                )
                for sample in range(self._samples)
            ),
            return_exceptions=True,
        )
        checked = [_require_quotations(outcome) for outcome in outcomes]
        parsed = [outcome for outcome in checked if isinstance(outcome, RoughAnalysis)]
        failures = [outcome for outcome in checked if isinstance(outcome, BaseException)]
        fatal = [failure for failure in failures if not isinstance(failure, ModelError)]
        if fatal or not find_majority(len(parsed), self._samples):
            raise [*fatal, *failures][0]
        return parsed

    async def _grade(
        self, session: Session, grounds: EvidenceContext, cases: Sequence[RatedSentence]
    ) -> list[RatedSentence]:
        messages = self._refiner.fill(evidence=grounds.text, hallucinations=_number(cases))
        fine = await session.structured("refiner", messages, FineAnalysis, max_tokens=LIST_TOKENS)
        grades = {grade.number: grade for grade in fine.grades}
        if missing := [number for number in range(1, len(cases) + 1) if number not in grades]:
            raise UnparseableAnswer(f"refiner: no severity for hallucination {missing[0]} of {len(cases)}")
        return [
            case.model_copy(
                update={
                    "severity": float(grades[number].severity),
                    "details": {**case.details, "refiner": grades[number].explanation},
                }
            )
            for number, case in enumerate(cases, start=1)
        ]

    async def conclude(
        self, session: Session, grounds: EvidenceContext, kept: list[RatedSentence]
    ) -> list[RatedSentence]:
        """Word the reasons by the result prompt, which cannot drop a hallucination.

        If it has no answer, the reasons of the analysis stay.
        """
        messages = self._result.fill(evidence=grounds.text, hallucinations=_number(kept))
        try:
            result = await session.structured("result", messages, Result, max_tokens=LIST_TOKENS)
        except ModelError as error:
            return [rated.without_reason(error, rated.reason) for rated in kept]
        reasons = {line.number: line.reason for line in result.hallucinations}
        return [
            rated.model_copy(update={"reason": reasons.get(number) or rated.reason})
            for number, rated in enumerate(kept, start=1)
        ]


def _require_quotations(outcome: RoughAnalysis | BaseException) -> RoughAnalysis | BaseException:
    """Return an analysis as it is, or an error if it objects to something that it does not quote."""
    if isinstance(outcome, RoughAnalysis) and any(
        not objection.sentence.strip() for objection in outcome.hallucinations
    ):
        return UnparseableAnswer("analysis: a hallucination without its sentence.")
    return outcome


def find_majority(votes: int, samples: int) -> bool:
    """Return whether more than half of the samples agree."""
    return 2 * votes > samples


def vote(analyses: Sequence[RoughAnalysis], reply: str) -> list[RatedSentence]:
    """Return what more than half of the analyses object to, not yet graded.

    Sentences come in order, then unlocated quotations. Details hold the share of votes.
    """
    regions = split_sentences(reply)
    votes: dict[Region | str, list[Objection]] = {}
    for analysis in analyses:
        quotes = [objection.sentence for objection in analysis.hallucinations]
        own: dict[Region | str, Objection] = {}
        for objection, found in zip(analysis.hallucinations, locate_mentions(quotes, reply), strict=True):
            keys = (
                [normalize_text(objection.sentence)]
                if found is None
                else [r for r in regions if cut_region(r, found)]
            )
            for key in keys:
                own.setdefault(key, objection)
        for key, objection in own.items():
            votes.setdefault(key, []).append(objection)
    kept = {key: cast for key, cast in votes.items() if key and find_majority(len(cast), len(analyses))}
    located: list[Region | str] = [key for key in regions if key in kept]
    return [
        RatedSentence(
            text=key.of(reply) if isinstance(key, Region) else kept[key][0].sentence,
            region=key if isinstance(key, Region) else None,
            severity=HARMLESS,
            reason=kept[key][0].reason,
            details={"votes": len(kept[key]) / len(analyses), "analysis": kept[key][0].reason},
        )
        for key in (*located, *(key for key in kept if isinstance(key, str)))
    ]


def _number(cases: Sequence[RatedSentence]) -> str:
    return number_texts([f"{case.text} (objection: {case.reason})" for case in cases])
