"""What guarded chatbots did, and what it cost: counted from the records in the journal (MetaRAG section 3.6).

A refusal holds no hallucination, but no answer either. So the share of refusals stands beside every HPT, and
the detectors' HPT is also given over the replies that were not refused.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from hallulab.chatbots.guarded.record import CALLS, Attempt, GuardRecord, record_of
from hallulab.scenarios.transcript import Conversation, Frozen
from hallulab.simulator.measure.metrics import ByDetector
from hallulab.simulator.measure.numbers import Rounded
from hallulab.simulator.measure.spending import Spending, sum_calls


class Safeguards(Frozen):
    """A guarded chatbot under a detector of the run: a line of `safeguards` in `report.json`."""

    chatbot: str
    """Name of the chatbot."""
    detector: str
    """Name of the detector that judges what was shown; empty in a run without detectors."""
    replies: int
    """Guarded replies."""
    flagged: int
    """Those whose first draft the guard flagged."""
    unjudged: int
    """Those whose first draft the guard could not judge; they are never counted as clean."""
    again: int
    """Those that were made again."""
    cured: int
    """Those that were not flagged any more when made again."""
    abstained: int
    """Those withheld without calling a human."""
    human: int
    """Those handed to a human."""
    refused: int
    """Those for which the user got no answer of the bot."""
    refused_share: Rounded | None
    """refused / replies."""
    judged_drafts: int
    """First drafts that the guard scored and localised."""
    hpt_before: Rounded | None
    """Spans that the guard flagged in them / judged_drafts."""
    judged_shown: int
    """Replies of the bot that were shown, as far as the guard scored and localised them."""
    hpt_after: Rounded | None
    """Spans that the guard flagged in them / judged_shown."""
    answers: int
    """Replies that were not refused, as far as the detector scored and localised them."""
    hpt_answers: Rounded | None
    """The detector's hallucinations in them / answers."""
    calls_per_reply: Rounded | None
    """Model calls of the guard, and for replies made again, over the replies."""
    tokens_per_reply: Rounded | None
    """Tokens of these calls over the replies; None when no server reported them."""
    seconds_per_reply: Rounded | None
    """Sum of the latencies of these calls over the replies."""


class Guarding:
    """Counts what guarded chatbots did, conversation by conversation."""

    def __init__(self, detectors: Sequence[str]) -> None:
        self._detectors = detectors
        self._done: dict[str, Counter[str]] = defaultdict(Counter)
        """Chatbot → what was done."""
        self._spending: dict[str, Spending] = defaultdict(Spending)
        """Chatbot → calls of the guard, and for replies made again."""
        self._answers: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        """Chatbot and detector → answers, and hallucinations in them."""

    def add(self, conversation: Conversation, verdicts: ByDetector) -> None:
        """Count a conversation."""
        for turn in conversation.turns:
            record = record_of(turn)
            if record is None:
                continue
            self._done[conversation.chatbot].update(_count_outcomes(record))
            calls = [call for call in turn.calls if call.purpose.startswith(CALLS)]
            self._spending[conversation.chatbot].add(sum_calls(calls))
            for detector in self._detectors:
                verdict = verdicts.get(detector, {}).get(turn.index)
                if not record.refused and verdict is not None and verdict.localised:
                    found = {"answers": 1, "hallucinations": len(verdict.spans or ())}
                    self._answers[conversation.chatbot, detector].update(found)

    def safeguards(self, chatbots: Sequence[str]) -> tuple[Safeguards, ...]:
        """Return each guarded chatbot under each detector; nothing for chatbots without a guard."""
        return tuple(
            self._row(chatbot, detector)
            for chatbot in chatbots
            if chatbot in self._done
            for detector in self._detectors or ("",)
        )

    def _row(self, chatbot: str, detector: str) -> Safeguards:
        done, cost = self._done[chatbot], self._spending[chatbot].total()
        answers = self._answers[chatbot, detector]
        return Safeguards(
            chatbot=chatbot,
            detector=detector,
            **{name: done[name] for name in _COUNTED},
            refused_share=done["refused"] / done["replies"],
            hpt_before=_divide_known(done["draft spans"], done["judged_drafts"]),
            hpt_after=_divide_known(done["shown spans"], done["judged_shown"]),
            answers=answers["answers"],
            hpt_answers=_divide_known(answers["hallucinations"], answers["answers"]),
            calls_per_reply=cost.calls / done["replies"],
            tokens_per_reply=_divide_known(cost.tokens, done["replies"]),
            seconds_per_reply=cost.seconds / done["replies"],
        )


_COUNTED = (
    "replies",
    "flagged",
    "unjudged",
    "again",
    "cured",
    "abstained",
    "human",
    "refused",
    "judged_drafts",
    "judged_shown",
)
"""Fields of a row that count what a guard did."""


def _count_outcomes(record: GuardRecord) -> dict[str, int]:
    """Return what a guard did about one reply, as numbers to add up."""
    draft = _count_spans(record.attempts[0])
    shown = None if record.shown is None else _count_spans(record.attempts[record.shown])
    return {
        "replies": 1,
        "flagged": record.attempts[0].flagged is True,
        "unjudged": record.attempts[0].flagged is None,
        "again": len(record.attempts) > 1,
        "cured": record.action == "cured",
        "abstained": record.action == "abstained",
        "human": record.action == "human",
        "refused": record.refused,
        "judged_drafts": draft is not None,
        "draft spans": draft or 0,
        "judged_shown": shown is not None,
        "shown spans": shown or 0,
    }


def _count_spans(attempt: Attempt) -> int | None:
    """Return the spans of an attempt that was judged and says where, as `Judgement.localised`; else None."""
    if attempt.spans is None or (attempt.flagged and not attempt.spans):
        return None
    return len(attempt.spans)


def _divide_known(total: int | None, of: int) -> float | None:
    return None if total is None or not of else total / of
