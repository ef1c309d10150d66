"""HalluDetect and its options: analysis, filtering, aggregation for one turn (section 3.2, appendix B)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from pydantic import Field

from hallulab.agents.models.session import Session
from hallulab.agents.retrieval.knowledge import load_reformulation_prompt
from hallulab.agents.served_model import find_catalogue_name, is_small_model
from hallulab.detectors.base.judging import Abstention, Scale, ServedDetector, find_best_passage, has_evidence
from hallulab.detectors.base.protocol import DetectorContext, Traits
from hallulab.detectors.base.questions import list_calibrations
from hallulab.detectors.halludetect.evidence import EvidenceContext
from hallulab.detectors.halludetect.mixture import MixtureReading, find_mixture
from hallulab.detectors.halludetect.strategies import (
    PAPER_THRESHOLD,
    JudgingStrategy,
    RatedSentence,
    WordReading,
)
from hallulab.detectors.halludetect.token_probability import ProbabilityReading
from hallulab.scenarios.components import read_options
from hallulab.scenarios.text.courtesies import claims_nothing
from hallulab.scenarios.text.spans import split_sentences
from hallulab.scenarios.transcript import Frozen, Judgement, Span, Unit
from hallulab.scenarios.turn_views import TurnView

Kind = Literal["mixture", "probability", "word"]


FAILS_AT_WORD = frozenset({"qwen2.5-coder-1.5b"})
"""Models of the catalogue that were measured with `word` and do not follow it (docs/studies/methods.md)."""


class HalluDetectOptions(Frozen):
    """Options of the detector `halludetect`."""

    threshold: float | None = Field(default=None, gt=1.0, le=5.0)
    """Severity from which a hallucination is kept. None: the paper's 4."""
    reading: Literal["auto"] | Kind = "auto"
    """How the analysis is done. `word`: the model writes a list of hallucinations, as in the paper, which
    takes a capable model. `mixture`: one question a sentence on the turn's own passages, weighed with its
    words. `probability`: the paper's steps with questions about each sentence. `auto`: `mixture` where its
    weights were learnt for the model, `probability` for other models that the catalogue calls small, else
    `word`."""
    samples: int = Field(default=3, ge=1, le=9)
    """Samples of the analysis for self-consistency: differently worded questions (at most as many as there
    are wordings; `probability`) or sampled lists (`word`). One list is no vote, and so not as published; it
    takes half the tokens."""
    temperature: float = Field(default=0.7, ge=0.0, le=2.0)
    """Temperature of sampled lists; the paper's text has lost its value."""
    examples: bool = True
    """True if the prompts of the analysis and of the refiner show answered examples (`word`). A capable model
    follows the schema without them, and reads about an eighth less."""
    overlap: bool = True
    """True if overlap of words and numbers with the evidence counts as much as the questions together
    (`probability`; ours, see `evidence.py`)."""
    retrieval_factor: int = Field(default=2, ge=1)
    """Passages searched for, as a multiple of the turn's own. `mixture` asks about the further passages only
    if the own ones say nothing."""
    reasons: bool = True
    """True if a model states the reason of each hallucination (`probability`; one short call each). `word`
    always has reasons."""
    max_evidence_characters: int = Field(default=12000, ge=100)
    """Longer evidence is cut here; the judgement is then marked truncated (`probability`, `word`)."""
    near_evidence_characters: int = Field(default=4000, ge=100)
    """Characters of the passages nearest to the reply, which are shown with a question (`mixture`)."""


class HalluDetectDetector(ServedDetector):
    """Flags sentences that the evidence does not support (severity 1-5).

    The reply's score is its severity as a whole (`JudgingStrategy.overall`). Units are the steps before the
    filter (reformulated query and memory) and every rated sentence with its severity.

    Raises:
        UsageError: an option is unknown or wrong, or the model is not in the pool.
    """

    KIND = "halludetect"
    OPTIONS = HalluDetectOptions
    VARIANTS = (
        "`word`, the paper's; `word, one list`, without its vote (`samples: 1`); `mixture` (ours) for the "
        "default model; `probability` for other small ones"
    )
    traits = Traits(probabilities=False)
    """A severity is no probability."""

    def __init__(self, name: str, context: DetectorContext) -> None:
        options = read_options(f"detector {name}", HalluDetectOptions, context.options)
        self._options = options
        self._client = context.models.get(context.model)
        super().__init__(name, context, options, self._scale_of_model)

    @cached_property
    def _kind(self) -> Kind:
        """The reading in force with the served model."""
        given = self._options.reading
        if given != "auto":
            return given
        model = find_catalogue_name(self._client)
        if find_mixture(model) is not None:
            return "mixture"
        return "probability" if is_small_model(self._client) else "word"

    def _find_warnings(self) -> tuple[str, ...]:
        """Return a warning if the paper's pipeline shall be followed by a model that was measured to fail."""
        model = find_catalogue_name(self._client)
        if self._kind != "word" or model not in FAILS_AT_WORD:
            return ()
        return (
            f"{self.name}: {model} is too small for `reading: word`, whose filter it does not follow: most "
            "clean replies are flagged (docs/studies/published-methods.md). Leave `reading` out.",
        )

    warnings = cached_property(_find_warnings)

    @cached_property
    def _reading(self) -> JudgingStrategy:
        options = self._options
        factor, room = options.retrieval_factor, options.max_evidence_characters
        if self._kind == "word":
            return WordReading(options.samples, options.temperature, factor, room, options.examples)
        if self._kind == "probability":
            return ProbabilityReading(options.samples, options.overlap, options.reasons, factor, room)
        mixture = find_mixture(find_catalogue_name(self._client))
        return MixtureReading(mixture, factor, options.near_evidence_characters)

    def _scale_of_model(self) -> Scale:
        """Return the paper's scale if lists are written as in the paper."""
        model = find_catalogue_name(self._client)
        corrections: Frozen | Mapping[str, Any] | None = None
        if self._kind == "mixture":
            corrections = find_mixture(model)
        elif self._kind == "probability":
            corrections = list_calibrations(model)
        one_list = self._kind == "word" and self._options.samples == 1
        return Scale(
            (load_reformulation_prompt(), *self._reading.prompts),
            untuned=PAPER_THRESHOLD,
            published=self._kind == "word" and not one_list,
            corrections=corrections,
            in_force={"reading": self._kind},
            variant="word, one list" if one_list else self._kind,
        )

    async def _judge(self, session: Session, view: TurnView) -> Judgement:
        """Judge a reply; abstain if it has no words, or claims something and there is no evidence."""
        if not re.search(r"\w", view.reply):
            raise Abstention("the reply has no words")
        grounds = await self._reading.ground(session, view)
        claims = not all(claims_nothing(region.of(view.reply)) for region in split_sentences(view.reply))
        if claims and not has_evidence((*grounds.passages, *grounds.found)):
            raise Abstention("there is no evidence")
        rated = await self._reading.rate(session, grounds, view)
        score = self._reading.overall(rated, grounds, view)
        places = choose_kept_places([item.severity for item in rated], score, self.threshold)
        kept = [rated[place] for place in places]
        concluded = await self._reading.conclude(session, grounds, kept) if kept else []
        for place, item in zip(places, concluded, strict=True):
            rated[place] = item
        before = {"reformulated query": grounds.query, "memory": grounds.memory}
        steps = [Unit(text=text, details={"step": step}) for step, text in before.items() if text is not None]
        return Judgement(
            outcome="scored",
            score=score,
            flagged=score >= self.threshold,
            spans=tuple(_span(item, grounds) for item in concluded),
            units=(*steps, *(_unit(item) for item in rated)),
            truncated=grounds.truncated,
        )


def choose_kept_places(severities: Sequence[float], score: float, threshold: float) -> list[int]:
    """Return which sentences are hallucinations: those of a flagged reply that reach the threshold.

    If the reply's own severity `score` stays below the threshold, there are none. If it reaches the threshold
    and no sentence does, it is the worst sentence.
    """
    if score < threshold or not severities:
        return []
    reached = [place for place, severity in enumerate(severities) if severity >= threshold]
    return reached or [max(range(len(severities)), key=lambda place: severities[place])]


def _span(item: RatedSentence, grounds: EvidenceContext) -> Span:
    return Span(
        start=item.region.start if item.region else None,
        end=item.region.end if item.region else None,
        text=item.text,
        severity=item.severity if item.probability is None else None,
        probability=item.probability,
        score=item.severity,
        reason=item.reason or "The evidence does not support this.",
        evidence=find_best_passage(item.text, (*grounds.passages, *grounds.found))
        if item.evidence is None
        else item.evidence,
    )


def _unit(item: RatedSentence) -> Unit:
    return Unit(
        text=item.text,
        start=item.region.start if item.region else None,
        end=item.region.end if item.region else None,
        score=item.severity,
        details=item.details,
    )
