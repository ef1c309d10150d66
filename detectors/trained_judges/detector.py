"""Served models that were trained to detect hallucinations: `lettucedetect-v2` and `granite-guardian`.

Each has a form of its own, which its model card gives; the prompts here keep that form and are worded anew.
Neither has run on its weights here, because no model hub could be reached.

- LettuceDetect v2 (Kovács and Recski; `KRLabsOrg/lettucedect-v2-qwen-2b`, Apache-2.0) returns the unsupported
  spans as JSON, each with a category and a subcategory.
- Granite Guardian 4.1 (IBM; `ibm-granite/granite-guardian-4.1-8b`, Apache-2.0) says yes or no to a criterion
  about the last assistant's text, here that the documents do not support it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from hallulab.agents.models.answers import UnparseableAnswer
from hallulab.agents.models.prompt import ChatMessage, load_prompt
from hallulab.agents.models.session import Session
from hallulab.agents.served_model import EVEN_ODDS
from hallulab.detectors.base.judging import (
    CUT,
    Abstention,
    Scale,
    ServedDetector,
    cut_text,
    find_best_passage,
    has_evidence,
    take_whole,
)
from hallulab.detectors.base.protocol import DetectorContext
from hallulab.scenarios.components import read_options
from hallulab.scenarios.text.spans import locate_mentions
from hallulab.scenarios.transcript import Frozen, Judgement, Passage, Span
from hallulab.scenarios.turn_views import TurnView

SPAN_TOKENS = 1024
SCORE_TOKENS, THINKING_TOKENS = 32, 2048
"""Limits of Granite Guardian's answer, without its reasons and with them."""

THINK = (
    "<think>You are a judge. Decide whether the text meets the criteria, by the conversation and the "
    "documents. Reason step by step within <think></think>, then give the score within <score></score>."
)
NO_THINK = (
    "<no-think>You are a judge. Decide whether the text meets the criteria, by the conversation and the "
    "documents. Give the score at once and explain nothing: empty <think>\n</think> tags, then the score "
    "within <score></score>."
)
"""The two modes; each begins with the tag that the model knows it by."""

_SCORE = re.compile(r"<score>\s*(yes|no)\s*</score>", re.IGNORECASE)


class TrainedJudgeOptions(Frozen):
    """Options of the detector `lettucedetect-v2`."""

    threshold: float | None = Field(default=None, gt=0.0, le=1.0)
    """Score from which a reply is flagged. Scores are 0 or 1, so any threshold decides as the model does."""
    max_evidence_characters: int = Field(default=12000, ge=100)
    """Longer evidence is cut here; the judgement is then marked truncated."""


class GuardianOptions(TrainedJudgeOptions):
    """Options of the detector `granite-guardian`."""

    think: bool = False
    """True if the model reasons before it decides: better, says its card, and many times as long."""


class FoundSpan(Frozen):
    """A span as LettuceDetect v2 writes it."""

    text: str
    category: str = ""
    """`contradiction`, `fabricated_reference` or `unsupported_addition`."""
    subcategory: str = ""
    """One of 13 kinds, such as `numerical`."""


class FoundSpans(Frozen):
    """The answer of LettuceDetect v2."""

    hallucinated_spans: list[FoundSpan]
    """Possibly none."""


class _TrainedJudge(ServedDetector):
    """What the two models share: a prompt that they learnt, and no threshold to tune."""

    OPTIONS: ClassVar[type[TrainedJudgeOptions]]
    PROMPT: ClassVar[str]

    def __init__(self, name: str, context: DetectorContext) -> None:
        self._options = read_options(f"detector {name}", self.OPTIONS, context.options)
        self._prompt = load_prompt("hallulab.detectors.trained_judges", self.PROMPT)
        scale = Scale((self._prompt,), untuned=EVEN_ODDS)
        super().__init__(name, context, self._options, lambda: scale)


class TrainedLettuceDetector(_TrainedJudge):
    """Spans that LettuceDetect v2, a served generative model, finds. Not yet run on its weights.

    The score is 1 if there is any span, else 0.

    Raises:
        UsageError: an option is unknown or wrong, or the model is not in the pool.
    """

    KIND = "lettucedetect-v2"
    OPTIONS = TrainedJudgeOptions
    PROMPT = "lettucedetect"

    async def _judge(self, session: Session, view: TurnView) -> Judgement:
        """See `ServedDetector`. Abstains when the reply has no words and when there is no evidence."""
        passages, truncated = take_evidence(view, self._options.max_evidence_characters)
        messages = self._prompt.fill(
            question=view.question,
            context="\n\n".join(passage.text for passage in passages),
            reply=view.reply,
        )
        found = await session.structured("spans", messages, FoundSpans, max_tokens=SPAN_TOKENS)
        spans = read_spans(found, view.reply, passages)
        score = 1.0 if spans else 0.0
        return Judgement(
            outcome="scored", score=score, flagged=score >= self.threshold, spans=spans, truncated=truncated
        )


class GraniteGuardianDetector(_TrainedJudge):
    """Granite Guardian 4.1, a served judge, calls a reply ungrounded or not. Not yet run on its weights.

    The score is 1 if it says yes to the criterion, that the reply is ungrounded, else 0. It gives no places.

    Raises:
        UsageError: an option is unknown or wrong, or the model is not in the pool.
    """

    KIND = "granite-guardian"
    OPTIONS = GuardianOptions
    PROMPT = "guardian"

    @property
    def _thinks(self) -> bool:
        return isinstance(self._options, GuardianOptions) and self._options.think

    async def _judge(self, session: Session, view: TurnView) -> Judgement:
        """See `ServedDetector`. Abstains when the reply has no words and when there is no evidence."""
        passages, truncated = take_evidence(view, self._options.max_evidence_characters)
        limit = THINKING_TOKENS if self._thinks else SCORE_TOKENS
        answer = await session.text("guardian", self._ask(view, passages), max_tokens=limit)
        score = read_guardian_score(answer)
        return Judgement(outcome="scored", score=score, flagged=score >= self.threshold, truncated=truncated)

    def _ask(self, view: TurnView, passages: Sequence[Passage]) -> list[ChatMessage]:
        """Return the messages; without a question the assistant speaks first, as in the card's example."""
        documents = "\n".join(
            json.dumps({"doc_id": str(number), "text": passage.text}, ensure_ascii=False)
            for number, passage in enumerate(passages)
        )
        messages = self._prompt.fill(
            documents=documents,
            question=view.question,
            reply=view.reply,
            mode=THINK if self._thinks else NO_THINK,
        )
        return [message for message in messages if message.text]


def take_evidence(view: TurnView, room: int) -> tuple[tuple[Passage, ...], bool]:
    """Return the passages that fit, the last one perhaps cut, and whether text of the turn's is left out.

    Raises:
        Abstention: the reply has no words, or there is no evidence.
    """
    if not re.search(r"\w", view.reply):
        raise Abstention("the reply has no words")
    if not has_evidence(view.passages):
        raise Abstention("there is no evidence")
    taken: list[Passage] = []
    for passage in view.own_passages:
        if len(passage.text) > room:
            if begun := cut_text(passage.text, room):
                taken.append(passage.model_copy(update={"text": f"{begun} {CUT}"}))
            return tuple(taken), True
        taken.append(passage)
        room -= len(passage.text)
    return (*taken, *take_whole(view.earlier_passages, room)), False


def read_spans(found: FoundSpans, reply: str, passages: Sequence[Passage]) -> tuple[Span, ...]:
    """Return the spans in their places: the n-th equal quotation is the n-th occurrence.

    A quotation that the reply does not have counts, without a place; an empty one does not.
    """
    quoted = [one for one in found.hallucinated_spans if one.text.strip()]
    places = locate_mentions([one.text for one in quoted], reply)
    return tuple(
        Span(
            start=place.start if place else None,
            end=place.end if place else None,
            text=place.of(reply) if place else one.text,
            score=1.0,
            reason=", ".join(filter(None, (one.category, one.subcategory))).replace("_", " "),
            evidence=find_best_passage(one.text, passages),
        )
        for one, place in zip(quoted, places, strict=True)
    )


def read_guardian_score(answer: str) -> float:
    """Return 1 for yes, that the reply is ungrounded, and 0 for no; the last score of the answer counts.

    Raises:
        UnparseableAnswer: there is no score.

    >>> read_guardian_score("<think>\\n</think>\\n<score> yes </score>")
    1.0
    """
    scores = _SCORE.findall(answer)
    if not scores:
        raise UnparseableAnswer(f"guardian: no <score> of yes or no: {answer[:80]!r}")
    return 1.0 if scores[-1].lower() == "yes" else 0.0
