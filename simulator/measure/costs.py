"""Costs of a run by role and detector, and what guarded chatbots did and what that cost.

What guarded chatbots did, and what it cost: counted from the records in the journal (MetaRAG section 3.6).
A refusal holds no hallucination, but no answer either. So the share of refusals stands beside every HPT, and
the detectors' HPT is also given over the replies that were not refused.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from typing import Literal

from hallulab.chatbots.guarded.record import CALLS, Attempt, GuardRecord, record_of
from hallulab.scenarios.transcript import Call, Conversation, Frozen
from hallulab.simulator.measure.hallucinations import ByDetector
from hallulab.simulator.measure.intervals import Rounded
from hallulab.simulator.measure.spending import Spending, Spent, sum_calls

BASELINE = "vanilla"
"""The chatbot that costs are relative to (HalluDetect B.8)."""


class Cost(Frozen):
    """Costs of one role over the whole run: a line of `ledger` in `report.json`."""

    role: str
    """`user`, `chatbot` or `detector`, or the role that the call itself names."""
    name: str
    """Name of the chatbot or detector; for `user`, of the chatbot it talked to."""
    calls: int
    """Model calls, failed and replayed ones included."""
    failed: int
    """Calls without an answer."""
    replayed: int
    """Calls answered from a recording or an equal request; their recorded cost is counted here."""
    uncounted: int
    """Calls whose tokens the server did not report; the sums lack them."""
    prompt_tokens: int | None
    """Tokens read; None when no server reported them."""
    completion_tokens: int | None
    """Tokens written; None when no server reported them."""
    cached_tokens: int | None
    """Prompt tokens from the server's prefix cache; None when no server reported them."""
    seconds: Rounded
    """Sum of latencies. Calls run at the same time, so this is no wall time."""


class Efficiency(Frozen):
    """Average cost a conversation: the table of HalluDetect B.8."""

    role: Literal["chatbot", "detector"]
    """`chatbot` or `detector`."""
    name: str
    """Its name."""
    conversations: int
    """Conversations averaged over."""
    on: str
    """Whose conversations: a chatbot's own; for a detector Vanilla's, or `all` in a run without Vanilla."""
    calls_per_chat: Rounded | None
    """Mean number of model calls."""
    tokens_per_chat: Rounded | None
    """Mean of prompt plus completion tokens; None when no server reported them."""
    seconds_per_chat: Rounded | None
    """Mean sum of latencies."""
    relative_to_vanilla: Rounded | None
    """tokens_per_chat over the Vanilla chatbot's (the user's calls count in neither); None without it."""


class CostCounter:
    """Adds up the costs of a run, conversation by conversation."""

    def __init__(self, chatbots: Sequence[str], detectors: Sequence[str]) -> None:
        self._chatbots, self._detectors = chatbots, detectors
        self._roles: dict[tuple[str, str], Spending] = defaultdict(Spending)
        """By role and name."""
        self._own: dict[str, Spending] = defaultdict(Spending)
        """Chatbot → what it cost itself."""
        self._judging: dict[tuple[str, bool], Spending] = defaultdict(Spending)
        """Detector, and whether on Vanilla's conversations alone."""
        self._judged: dict[str, Spending] = defaultdict(Spending)
        """Detector → what Vanilla cost on the conversations that it judged."""

    def add(self, conversation: Conversation, verdicts: ByDetector) -> None:
        """Add the calls of a conversation and of the verdicts on it."""
        calls: dict[str, list[Call]] = defaultdict(list)
        for call in collect_calls(conversation):
            calls[call.role].append(call)
        for role, found in calls.items():
            self._roles[role, conversation.chatbot].add(sum_calls(found))
        own = sum_calls(calls.get("chatbot", ()))
        self._own[conversation.chatbot].add(own)
        for detector, turns in verdicts.items():
            judging = sum_calls([call for verdict in turns.values() for call in verdict.calls])
            self._roles["detector", detector].add(judging)
            self._judging[detector, False].add(judging)
            if conversation.chatbot == BASELINE:
                self._judging[detector, True].add(judging)
                self._judged[detector].add(own)

    def ledger(self) -> tuple[Cost, ...]:
        """Return the costs by who made the calls, sorted by role and name."""
        return tuple(
            _build_cost(role, name, self._roles[role, name].total()) for role, name in sorted(self._roles)
        )

    def efficiency(self) -> tuple[Efficiency, ...]:
        """Average the cost of a conversation for each chatbot and detector, relative to the Vanilla chatbot.

        The paper measures detectors on the Vanilla chatbot's conversations, and so do we. Only conversations
        with a verdict of the detector count, and Vanilla's own cost is that of the same conversations.
        """
        vanilla = BASELINE in self._chatbots and BASELINE in self._own
        average = _compute_tokens_per_chat(self._own[BASELINE]) if vanilla else None
        lines = [
            _build_efficiency("chatbot", name, name, self._own[name], average) for name in self._chatbots
        ]
        for name in self._detectors:
            same = _compute_tokens_per_chat(self._judged[name]) if vanilla else None
            on = BASELINE if vanilla else "all"
            lines.append(_build_efficiency("detector", name, on, self._judging[name, vanilla], same))
        return tuple(lines)


def collect_calls(conversation: Conversation) -> list[Call]:
    """Return every call of a conversation but those of detectors, the turns' first."""
    return [call for turn in conversation.turns for call in turn.calls] + list(conversation.calls)


def _build_cost(role: str, name: str, total: Spent) -> Cost:
    return Cost(role=role, name=name, **asdict(total))


def _build_efficiency(
    role: Literal["chatbot", "detector"], name: str, on: str, spending: Spending, baseline: float | None
) -> Efficiency:
    tokens, total, chats = _compute_tokens_per_chat(spending), spending.total(), spending.chats
    return Efficiency(
        role=role,
        name=name,
        conversations=chats,
        on=on,
        calls_per_chat=round(total.calls / chats, 6) if chats else None,
        tokens_per_chat=tokens,
        seconds_per_chat=round(total.seconds / chats, 6) if chats else None,
        relative_to_vanilla=tokens / baseline if tokens is not None and baseline else None,
    )


def _compute_tokens_per_chat(spending: Spending) -> float | None:
    total = spending.total().tokens
    return None if total is None or not spending.chats else total / spending.chats


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
