"""The direct judge: is every piece of information in the reply supported? It reads token probabilities."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import Field

from hallulab.agents.models.prompt import Prompt, load_prompt
from hallulab.agents.models.session import Session
from hallulab.agents.served_model import EVEN_ODDS
from hallulab.detectors.base.judging import (
    Abstention,
    Scale,
    ServedDetector,
    format_evidence,
    gather_all,
    has_evidence,
    make_flagged_spans,
)
from hallulab.detectors.base.protocol import DetectorContext
from hallulab.scenarios.components import read_options
from hallulab.scenarios.text.spans import split_spoken_sentences
from hallulab.scenarios.transcript import Frozen, Judgement, Unit
from hallulab.scenarios.turn_views import TurnView


class DirectJudgeOptions(Frozen):
    """Options of the detector `direct-judge`."""

    threshold: float | None = Field(default=None, gt=0.0, le=1.0)
    """Probability of No from which a reply, or a sentence of it, is flagged. None: the one tuned for the
    model if there is one, else `EVEN_ODDS`."""
    sentences: bool = False
    """True if every sentence is asked about, too, which locates what is flagged. Each costs one more call.
    The reply's score stays that of the question about the whole reply."""
    max_evidence_characters: int = Field(default=12000, ge=100)
    """Longer evidence is cut here; the judgement is then marked truncated."""


class DirectJudgeDetector(ServedDetector):
    """One yes/no question about the whole reply, read off token probabilities: a cheap model judge.

    The score is the probability of No among Yes and No. Nothing is corrected for the model.

    Raises:
        UsageError: an option is unknown or wrong, or the model is not in the pool.
    """

    KIND = "direct-judge"
    OPTIONS = DirectJudgeOptions

    def __init__(self, name: str, context: DetectorContext) -> None:
        options = read_options(f"detector {name}", DirectJudgeOptions, context.options)
        self._options = options
        self._reply_prompt = load_prompt("hallulab.detectors.direct_judge", "reply")
        self._sentence_prompt = load_prompt("hallulab.detectors.direct_judge", "sentence")
        prompts = (self._reply_prompt, self._sentence_prompt)
        scale = Scale(prompts, untuned=EVEN_ODDS, tuned="reply")
        super().__init__(name, context, options, lambda: scale)

    async def _judge(self, session: Session, view: TurnView) -> Judgement:
        """See `ServedDetector`. Abstains when the reply has no words and when there is no evidence."""
        if not re.search(r"\w", view.reply):
            raise Abstention("the reply has no words")
        if not has_evidence(view.passages):
            raise Abstention("there is no evidence")
        evidence = format_evidence(
            view.own_passages, self._options.max_evidence_characters, view.earlier_passages
        )
        values = {"evidence": evidence.text, "reply": view.reply}
        regions = split_spoken_sentences(view.reply) if self._options.sentences else []
        score, *scores = await gather_all(
            [
                _probability_of_no(session, self._reply_prompt, values),
                *(
                    _probability_of_no(
                        session, self._sentence_prompt, {**values, "sentence": region.of(view.reply)}
                    )
                    for region in regions
                ),
            ]
        )
        units = tuple(
            Unit(kind="sentence", text=region.of(view.reply), start=region.start, end=region.end, score=of_it)
            for region, of_it in zip(regions, scores, strict=True)
        )
        spans = make_flagged_spans(units, self.threshold, _reason, evidence.passages)
        return Judgement(
            outcome="scored",
            score=score,
            flagged=score >= self.threshold,
            spans=spans if self._options.sentences else None,
            units=units,
            truncated=evidence.truncated,
        )


async def _probability_of_no(session: Session, prompt: Prompt, values: Mapping[str, str]) -> float:
    answer = await session.choose(prompt.name, prompt.fill(values), ("Yes", "No"))
    return answer["No"]


def _reason(unit: Unit) -> str:
    return f"supported by the evidence? No, with probability {unit.score:.2f}"
