"""What guarded chatbots did, and what it cost: counted from the records in the journal (MetaRAG section 3.6).

A refusal holds no hallucination, but no answer either. So the share of refusals stands beside every HPT, and
the detectors' HPT is also given over the replies that were not refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from chatbots.guarded.record import CALLS, Attempt, GuardRecord, record_of
from scenarios.transcript import Call, Conversation, Frozen, Turn, Verdict
from simulator.measure.metrics import index_verdicts, known_sum
from simulator.measure.numbers import Rounded


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


def safeguards(
    conversations: Sequence[Conversation],
    verdicts: Iterable[Verdict],
    chatbots: Sequence[str],
    detectors: Sequence[str],
) -> tuple[Safeguards, ...]:
    """Count each guarded chatbot under each detector; nothing for chatbots without a guard."""
    index = index_verdicts(verdicts)
    found = []
    for chatbot in chatbots:
        own = [held for held in conversations if held.chatbot == chatbot]
        guarded = [
            (held.id, turn, record)
            for held in own
            for turn in held.turns
            if (record := record_of(turn)) is not None
        ]
        if not guarded:
            continue
        for detector in detectors or ("",):
            judged = {
                (held.id, number): verdict
                for held in own
                for number, verdict in index.get((held.id, detector), {}).items()
            }
            found.append(_row(chatbot, detector, guarded, judged))
    return tuple(found)


def _row(
    chatbot: str,
    detector: str,
    guarded: Sequence[tuple[str, Turn, GuardRecord]],
    judged: Mapping[tuple[str, int], Verdict],
) -> Safeguards:
    records = [record for _, _, record in guarded]
    drafts = _localised(record.attempts[0] for record in records)
    shown = _localised(record.attempts[record.shown] for record in records if record.shown is not None)
    answers = [
        verdict.spans or ()
        for held, turn, record in guarded
        if not record.refused
        and (verdict := judged.get((held, turn.index))) is not None
        and verdict.localised
    ]
    calls = [call for _, turn, _ in guarded for call in turn.calls if call.purpose.startswith(CALLS)]
    refused = sum(record.refused for record in records)
    return Safeguards(
        chatbot=chatbot,
        detector=detector,
        replies=len(records),
        flagged=sum(record.attempts[0].flagged is True for record in records),
        unjudged=sum(record.attempts[0].flagged is None for record in records),
        again=sum(len(record.attempts) > 1 for record in records),
        cured=sum(record.action == "cured" for record in records),
        abstained=sum(record.action == "abstained" for record in records),
        human=sum(record.action == "human" for record in records),
        refused=refused,
        refused_share=refused / len(records),
        judged_drafts=len(drafts),
        hpt_before=_per(sum(map(len, drafts)), len(drafts)),
        judged_shown=len(shown),
        hpt_after=_per(sum(map(len, shown)), len(shown)),
        answers=len(answers),
        hpt_answers=_per(sum(map(len, answers)), len(answers)),
        calls_per_reply=len(calls) / len(records),
        tokens_per_reply=_per(_tokens(calls), len(records)),
        seconds_per_reply=math.fsum(call.latency_s for call in calls) / len(records),
    )


def _localised(attempts: Iterable[Attempt]) -> list[tuple[object, ...]]:
    """Return the spans of the attempts that were judged and say where, as `Judgement.localised`."""
    return [
        attempt.spans
        for attempt in attempts
        if attempt.spans is not None and (attempt.spans or not attempt.flagged)
    ]


def _tokens(calls: Sequence[Call]) -> int | None:
    return known_sum([count for call in calls for count in (call.prompt_tokens, call.completion_tokens)])


def _per(total: int | None, of: int) -> float | None:
    return None if total is None or not of else total / of
