"""Hallucinations per turn and token accuracy of chatbots under detectors (HalluDetect section 4.3).

Only scored turns count: their verdict is `scored` and says where (`Judgement.localised`). Everything is first
counted in each conversation (`Tally`). A row adds the tallies up. Statistics add them up by persona and
leave these out one by one: conversations of one persona with several seeds are alike.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Literal

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.text.declining import classify_reply
from hallulab.scenarios.transcript import Conversation, Frozen, Pairing, Verdict
from hallulab.simulator.metrics.spending import Spent, count_read_and_written, sum_calls, sum_spent
from hallulab.simulator.metrics.tokens import count_hallucinated, count_tokens
from hallulab.simulator.statistics.intervals import Interval, Ratio, Rounded
from hallulab.simulator.statistics.sums import Person


class Row(Frozen):
    """One chatbot under one detector: a row of `report.json`."""

    chatbot: str
    detector: str
    conversations: int
    """Conversations of the chatbot. All that branch off from the same one count as one."""
    scored_conversations: int
    """Those with a scored turn; shares of conversations are over these."""
    personas: int
    """Their personas, whatever the number of seeds; intervals are over these."""
    turns: int
    scored_turns: int
    """Turns that the detector scored and localised: the turns behind every number below."""
    coverage: Rounded | None
    """scored_turns / turns."""
    failed: int
    """Turns on which the detector failed."""
    abstained: int
    """Turns on which the detector abstained."""
    not_localised: int
    """Turns scored without saying where; neither HPT nor TokAcc counts them."""
    missing: int
    """Turns without a verdict."""
    hallucinations: int
    """Spans in the scored turns, unlocated ones included."""
    unlocated: int
    """Spans whose text is not in the reply. They count in HPT, not in TokAcc."""
    hallucinated_chats: Rounded | None
    """Share of the conversations with a scored turn that have a hallucination."""
    calls_per_reply: Rounded | None
    """Mean number of model calls of the chatbot a turn (the paper's inferences per response)."""
    tokens_per_reply: Rounded | None = None
    """Mean number of tokens that the server read and wrote for the chatbot a turn, those out of its cache
    included. None: it did not give these counts for each answered call."""
    hpt_1: Rounded | None
    """Hallucinations / scored turns, over the whole set."""
    hpt_1_ci95: Interval
    """Over personas; None: see `no_interval`."""
    seed_share: Rounded | None
    """Share of the variance of HPT-1 that more seeds of the same personas can remove at most
    (`simulator/statistics/sums.py`); the rest takes more personas. None: no persona has two seeds."""
    hpt_2: Rounded | None
    """Mean over conversations of hallucinations / scored turns."""
    tokacc_1: Rounded | None
    """Share of reply tokens outside every flagged span, over the whole set."""
    tokacc_1_ci95: Interval
    no_interval: str | None
    """Why there are no intervals, or only one."""
    tokacc_2: Rounded | None
    """Mean over conversations of that share."""
    tokens: int
    """Reply tokens of the scored turns, by the shared tokenizer."""
    calls: int
    """Model calls of the detector on this chatbot, whatever their outcome."""
    prompt_tokens: int | None
    """Tokens that the detector's model read; None when no server reported them."""
    completion_tokens: int | None
    """Tokens that the detector's model wrote; None when no server reported them."""
    answered: Rounded | None = None
    """Share of the replies that answer or decline that answers, scored or not; None: there are none."""
    seconds: Rounded
    """Sum of the latencies of the detector's calls. Calls run at the same time, so this is no wall time."""
    self_judged: bool | None = None
    """True if a model that verifies the chatbot's claims is one that the detector judges by, or the detector
    is the chatbot's guard, see `self_judging`; None: not known."""
    self_judged_degree: Literal["same model", "same model and same question", "own guard"] | None = None
    """How far; the question is the same where the prompt file is the same."""
    self_judged_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of one detector in one conversation."""

    conversation: str
    pairing: Pairing
    """The key shared with other chatbots' conversations."""
    branched_at: int | None
    """The turn at which the conversation branches off from another one; None: it does not."""
    turns: int
    scored_turns: int
    """Turns scored and localised."""
    failed: int
    """Turns on which the detector failed."""
    abstained: int
    """Turns on which it abstained."""
    not_localised: int
    """Turns scored without saying where."""
    hallucinations: int
    """Spans in the scored turns."""
    unlocated: int
    """Spans without a place."""
    tokens: int
    """Reply tokens of the scored turns."""
    flagged_tokens: int
    """Tokens under a located span."""
    answers: int
    """Replies that answer, scored or not."""
    declines: int
    chatbot_calls: int
    chatbot_tokens: int
    """Tokens that the server read and wrote for them, as far as it told."""
    chatbot_untold: int
    """Answered calls of the chatbot for which it did not tell."""
    spent: Spent

    @property
    def person(self) -> Person:
        """Whom the chatbot talked to."""
        return self.pairing[:2]

    @property
    def hpt(self) -> Ratio:
        """Hallucinations over scored turns."""
        return Ratio(self.hallucinations, self.scored_turns)

    @property
    def tokacc(self) -> Ratio:
        """Tokens outside flagged spans over tokens."""
        return Ratio(self.tokens - self.flagged_tokens, self.tokens)

    @property
    def answered(self) -> Ratio:
        """Replies that answer over those that answer or decline."""
        return Ratio(self.answers, self.answers + self.declines)

    def __add__(self, other: Tally) -> Tally:
        """Add up two conversations that branch off from the same one."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in _COUNTS}
        return replace(self, branched_at=None, spent=sum_spent([self.spent, other.spent]), **sums)


_COUNTS = tuple(
    field.name
    for field in fields(Tally)
    if field.name not in ("conversation", "pairing", "branched_at", "spent")
)
"""Fields of a tally that are counts, and are added up."""


def merge_branches(tallies: Iterable[Tally]) -> list[Tally]:
    """Add up conversations that branch off from the same one; others stay.

    They share a history, so they depend on each other as the turns of one conversation do.
    """
    found: dict[tuple[Pairing, str], Tally] = {}
    for item in tallies:
        key = (item.pairing, item.conversation if item.branched_at is None else "")
        found[key] = found[key] + item if key in found else item
    return list(found.values())


ByDetector = Mapping[str, Mapping[int, Verdict]]
"""The verdicts on a conversation, by detector and turn."""


def index_by_detector(verdicts: Iterable[Verdict]) -> ByDetector:
    """Index the verdicts on a conversation by detector and turn.

    Raises:
        UsageError: a turn has two verdicts of one detector (two versions of it, or a doubled line).
    """
    index: dict[str, dict[int, Verdict]] = defaultdict(dict)
    for verdict in verdicts:
        turns = index[verdict.detector]
        if verdict.turn in turns:
            raise UsageError(
                f"turn {verdict.turn} of conversation {verdict.conversation} has two verdicts of "
                f"{verdict.detector} (versions {turns[verdict.turn].version} and {verdict.version}). "
                "Report on one version at a time."
            )
        turns[verdict.turn] = verdict
    return dict(index)


@lru_cache(maxsize=128)
def is_answer(reply: str) -> bool | None:
    """Return whether a reply answers (True) or declines (False), by rules; None: neither.

    Replies are kept for a while, since each detector counts them again.
    """
    return {"answers": True, "declines": False}.get(classify_reply(reply) or "")


def count_verdicts(conversation: Conversation, verdicts: Mapping[int, Verdict]) -> Tally:
    """Count one detector's `verdicts` (by turn) on `conversation`.

    Raises:
        UsageError: a verdict is about a turn that the conversation does not have.
    """
    unknown = sorted(set(verdicts) - {turn.index for turn in conversation.turns})
    if unknown:
        raise UsageError(
            f"there is a verdict on turn {unknown[0]} of conversation {conversation.id}, which has "
            f"{len(conversation.turns)} turns. The two journals are not of the same run."
        )
    hallucinations = unlocated = tokens = flagged = scored = 0
    for turn in conversation.turns:
        verdict = verdicts.get(turn.index)
        if verdict is None or verdict.spans is None or not verdict.localised:
            continue
        scored += 1
        hallucinations += len(verdict.spans)
        unlocated += sum(span.start is None for span in verdict.spans)
        tokens += count_tokens(turn.reply)
        flagged += count_hallucinated(turn.reply, verdict.spans)
    kinds = [is_answer(turn.reply) for turn in conversation.turns]
    asked = [call for turn in conversation.turns for call in turn.calls if call.role == "chatbot"]
    asked_tokens, untold = count_read_and_written(asked)
    return Tally(
        conversation=conversation.id,
        pairing=conversation.pairing,
        branched_at=None if conversation.branch is None else conversation.branch.turn,
        turns=len(conversation.turns),
        scored_turns=scored,
        failed=sum(verdict.outcome == "failed" for verdict in verdicts.values()),
        abstained=sum(verdict.outcome == "abstained" for verdict in verdicts.values()),
        not_localised=sum(v.outcome == "scored" and not v.localised for v in verdicts.values()),
        hallucinations=hallucinations,
        unlocated=unlocated,
        tokens=tokens,
        flagged_tokens=flagged,
        answers=kinds.count(True),
        declines=kinds.count(False),
        chatbot_calls=len(asked),
        chatbot_tokens=asked_tokens,
        chatbot_untold=untold,
        spent=sum_calls([call for verdict in verdicts.values() for call in verdict.calls]),
    )


def compute_mean(values: Sequence[float]) -> float | None:
    """Compute the arithmetic mean to 6 decimals, independent of order; None without values.

    >>> compute_mean([0.5, 0.25, 0.25])
    0.333333
    """
    return round(math.fsum(values) / len(values), 6) if values else None
