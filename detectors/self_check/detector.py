"""SelfCheckGPT, the prompt variant (Manakul, Liusie and Gales, EMNLP 2023, section 5.5).

The question is answered N more times, with sampling. Each sentence of the reply is checked against each of
these samples. A sentence's score is its mean inconsistency with the samples; a reply's score is the mean over
its sentences (the paper's passage level).

A check that is answered neither Yes nor No counts half, as in the paper, and is counted in its sentence's
details. A sentence without a readable check has no score; a reply without any fails.

Ours: the samples see the evidence that the reply was given, because in the paper they see the same prompt. A
check is read off token probabilities instead of a printed word (Yes 0, No 1). The prompts have our wording.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from pydantic import Field

from hallulab.agents.models.answers import UnparseableAnswer
from hallulab.agents.models.prompt import format_dialogue, load_prompt
from hallulab.agents.models.session import Session
from hallulab.agents.served_model import EVEN_ODDS
from hallulab.detectors.base.judging import (
    Abstention,
    Scale,
    ServedDetector,
    format_evidence,
    gather_all,
    make_flagged_spans,
)
from hallulab.detectors.base.protocol import DetectorContext
from hallulab.scenarios.components import read_options
from hallulab.scenarios.text.spans import Region, split_spoken_sentences
from hallulab.scenarios.transcript import Frozen, Judgement, Unit
from hallulab.scenarios.turn_views import TurnView

UNDECIDED = 0.5
"""Score of a check that is answered neither Yes nor No, as in the paper."""


class SelfCheckOptions(Frozen):
    """Options of the detector `self-check`."""

    samples: int = Field(default=5, ge=1, le=20)
    """N: further answers to the question. The paper draws 20; a reply costs N + N × sentences calls."""
    temperature: float = Field(default=1.0, gt=0.0, le=2.0)
    """Temperature of the samples; the paper samples at 1.0, too."""
    threshold: float | None = Field(default=None, gt=0.0, le=1.0)
    """Mean inconsistency from which a reply, or a sentence of it, is flagged. None: `EVEN_ODDS` (the
    paper ranks and has none)."""
    max_tokens: int = Field(default=256, ge=16)
    max_evidence_characters: int = Field(default=12000, ge=100)
    """Longer evidence is cut here; the judgement is then marked truncated."""


class SelfCheckDetector(ServedDetector):
    """SelfCheckGPT: asks the question again and scores what the further answers do not support.

    Raises:
        UsageError: an option is unknown or wrong, or the model is not in the pool.
    """

    KIND = "self-check"
    OPTIONS = SelfCheckOptions

    def __init__(self, name: str, context: DetectorContext) -> None:
        options = read_options(f"detector {name}", SelfCheckOptions, context.options)
        self._options = options
        self._sample_prompt = load_prompt("hallulab.detectors.self_check", "sample")
        self._check_prompt = load_prompt("hallulab.detectors.self_check", "check")
        prompts = (self._sample_prompt, self._check_prompt)
        scale = Scale(prompts, untuned=EVEN_ODDS)
        super().__init__(name, context, options, lambda: scale)

    async def _judge(self, session: Session, view: TurnView) -> Judgement:
        """See `ServedDetector`. Abstains when the reply has no words and when it answers no question."""
        regions = split_spoken_sentences(view.reply)
        if not regions:
            raise Abstention("the reply has no words")
        if not view.question.strip():
            raise Abstention("the reply answers no question, so nothing can be asked again")
        evidence = format_evidence(
            view.own_passages, self._options.max_evidence_characters, view.earlier_passages
        )
        samples = await self._samples(session, view, evidence.text)
        checks = await gather_all(
            self._inconsistency(session, sample, region.of(view.reply))
            for region in regions
            for sample in samples
        )
        if all(check is None for check in checks):
            raise UnparseableAnswer(f"check: none of {len(checks)} answers is Yes or No.")
        step = len(samples)
        units = tuple(
            _unit(region, view.reply, checks[at : at + step])
            for region, at in zip(regions, range(0, len(checks), step), strict=True)
        )
        score = _mean(checks)
        return Judgement(
            outcome="scored",
            score=score,
            flagged=score >= self.threshold,
            spans=make_flagged_spans(units, self.threshold, _reason, evidence.passages),
            units=(
                *(Unit(text=text, details={"step": f"sample {n}"}) for n, text in enumerate(samples, 1)),
                *units,
            ),
            truncated=evidence.truncated,
        )

    async def _samples(self, session: Session, view: TurnView, evidence: str) -> list[str]:
        messages = self._sample_prompt.fill(
            evidence=evidence or "(none)",
            history=format_dialogue(view.history) or "(none)",
            question=view.question,
        )
        return await gather_all(
            session.text(
                "sample",
                messages,
                temperature=self._options.temperature,
                max_tokens=self._options.max_tokens,
                sample=sample,
            )
            for sample in range(self._options.samples)
        )

    async def _inconsistency(self, session: Session, sample: str, sentence: str) -> float | None:
        """Return the probability that the sample does not support the sentence; None: neither Yes nor No."""
        messages = self._check_prompt.fill(sample=" ".join(sample.split()), sentence=sentence)
        try:
            return (await session.choose("check", messages, ("Yes", "No")))["No"]
        except UnparseableAnswer:
            return None


def _unit(region: Region, reply: str, checks: Sequence[float | None]) -> Unit:
    """Return a sentence with its checks, without a score if no check could be read."""
    details: dict[str, float | str | None] = {f"sample {n} P(No)": each for n, each in enumerate(checks, 1)}
    unread = sum(check is None for check in checks)
    if unread:
        details["unreadable checks"] = float(unread)
    return Unit(
        kind="sentence",
        text=region.of(reply),
        start=region.start,
        end=region.end,
        score=_mean(checks) if unread < len(checks) else None,
        details=details,
    )


def _mean(checks: Sequence[float | None]) -> float:
    return fmean(UNDECIDED if check is None else check for check in checks)


def _reason(unit: Unit) -> str:
    return f"further answers to the question do not support this: {unit.score:.2f} on average"
