"""HalluDetect: analysis, filtering, aggregation for one turn (section 3.2, appendix B)."""

from __future__ import annotations

import re
from typing import ClassVar

from agents.model import Session
from agents.prompt import load_prompt
from agents.reformulation import reformulation_prompt
from detectors.halludetect.by_probability import ProbabilityReading
from detectors.halludetect.by_word import WordReading
from detectors.halludetect.grounds import Grounds, gather_grounds
from detectors.halludetect.options import HalluDetectOptions
from detectors.halludetect.reading import Rated, Reading
from detectors.halludetect.severity import HARMLESS, PAPER_THRESHOLD
from detectors.judging import Abstention, best_passage
from detectors.one_model import OneModelDetector
from detectors.protocol import DetectorContext
from scenarios.options import read_options
from scenarios.transcript import Judgement, Span, TurnView, Unit


class HalluDetectDetector(OneModelDetector):
    """Flags sentences that doubled evidence does not support and that would mislead (severity 1-5).

    The response's score is its highest severity. Units are the steps before the filter: the reformulated
    query and the memory, and every rated sentence with its severity.

    Raises:
        UsageError: an option is unknown or wrong, or the model is not in the pool.
    """

    scores_are_probabilities: ClassVar[bool] = False
    """See `detectors.protocol.scores_are_probabilities`: a severity is none."""

    def __init__(self, name: str, context: DetectorContext) -> None:
        options = read_options(f"detector {name}", HalluDetectOptions, context.options)
        self._options = options
        self._memory = load_prompt("detectors.halludetect", "memory")
        self._reading: Reading = (
            ProbabilityReading(options.samples, options.overlap, options.reasons)
            if options.reading == "probability"
            else WordReading(options.samples, options.temperature)
        )
        super().__init__(
            name,
            context,
            options,
            (reformulation_prompt(), self._memory, *self._reading.prompts),
            reading=("halludetect", options.reading),
            untuned=PAPER_THRESHOLD,
            corrects=options.reading == "probability",
        )

    async def _judge(self, session: Session, view: TurnView) -> Judgement:
        """See `OneModelDetector`. Abstains when the reply has no words and when there is no evidence."""
        if not re.search(r"\w", view.reply):
            raise Abstention("the reply has no words")
        grounds = await gather_grounds(
            session,
            view,
            self._memory,
            factor=self._options.retrieval_factor,
            max_characters=self._options.max_evidence_characters,
        )
        if not grounds.passages:
            raise Abstention("there is no evidence")
        rated = await self._reading.rate(session, grounds, view)
        kept = [item for item in rated if item.severity >= self._threshold]
        concluded = await self._reading.conclude(session, grounds, kept) if kept else []
        reasoned = iter(concluded)
        rated = [next(reasoned) if item.severity >= self._threshold else item for item in rated]
        score = max((item.severity for item in rated), default=HARMLESS)
        return Judgement(
            outcome="scored",
            score=score,
            flagged=score >= self._threshold,
            spans=tuple(_span(item, grounds) for item in concluded),
            units=(*_steps(grounds), *(_unit(item) for item in rated)),
            truncated=grounds.truncated,
        )


def _span(item: Rated, grounds: Grounds) -> Span:
    return Span(
        start=item.region.start if item.region else None,
        end=item.region.end if item.region else None,
        text=item.text,
        severity=item.severity,
        score=item.severity,
        reason=item.reason or "The evidence does not support this.",
        evidence=best_passage(item.text, grounds.passages),
    )


def _unit(item: Rated) -> Unit:
    return Unit(
        text=item.text,
        start=item.region.start if item.region else None,
        end=item.region.end if item.region else None,
        score=item.severity,
        details=item.details,
    )


def _steps(grounds: Grounds) -> list[Unit]:
    """The steps before the analysis, as units without a score."""
    steps = {"reformulated query": grounds.query, "memory": grounds.memory}
    return [Unit(text=text, details={"step": step}) for step, text in steps.items() if text is not None]
