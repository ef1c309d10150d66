"""Costs of a run: calls, tokens and seconds by role, and each detector relative to the Vanilla chatbot."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from scenarios.transcript import Call, Conversation, Frozen, Verdict
from simulator.measure.metrics import known_sum, mean
from simulator.measure.numbers import Rounded

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


def ledger(conversations: Iterable[Conversation], verdicts: Iterable[Verdict]) -> tuple[Cost, ...]:
    """Add up the run's calls by who made them, sorted by role and name."""
    spent: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for conversation in conversations:
        for call in _calls(conversation):
            spent[call.role, conversation.chatbot].append(call)
    for verdict in verdicts:
        spent["detector", verdict.detector].extend(verdict.calls)
    return tuple(_cost(role, name, spent[role, name]) for role, name in sorted(spent))


def efficiency(
    conversations: Sequence[Conversation],
    verdicts: Sequence[Verdict],
    chatbots: Sequence[str],
    detectors: Sequence[str],
) -> tuple[Efficiency, ...]:
    """Average the cost of a conversation for each chatbot and detector, relative to the Vanilla chatbot.

    The paper measures detectors on the Vanilla chatbot's conversations, and so do we. Only conversations with
    a verdict of the detector count, and Vanilla's own cost is that of the same conversations.
    """
    own: dict[str, dict[str, list[Call]]] = {name: {} for name in chatbots}
    for conversation in conversations:
        if conversation.chatbot in own:
            own[conversation.chatbot][conversation.id] = [
                call for call in _calls(conversation) if call.role == "chatbot"
            ]
    baseline = own.get(BASELINE) or None
    average = _tokens_per_chat(baseline) if baseline else None
    lines = [_efficiency("chatbot", name, name, own[name], average) for name in chatbots]
    for detector in detectors:
        judged: dict[str, list[Call]] = defaultdict(list)
        for verdict in verdicts:
            if verdict.detector == detector and (baseline is None or verdict.conversation in baseline):
                judged[verdict.conversation].extend(verdict.calls)
        same = {key: baseline[key] for key in judged} if baseline else {}
        on = BASELINE if baseline else "all"
        lines.append(_efficiency("detector", detector, on, judged, _tokens_per_chat(same)))
    return tuple(lines)


def _calls(conversation: Conversation) -> list[Call]:
    return [call for turn in conversation.turns for call in turn.calls] + list(conversation.calls)


def _cost(role: str, name: str, calls: Sequence[Call]) -> Cost:
    return Cost(
        role=role,
        name=name,
        calls=len(calls),
        failed=sum(call.error is not None for call in calls),
        replayed=sum(call.replayed for call in calls),
        uncounted=sum(call.prompt_tokens is None or call.completion_tokens is None for call in calls),
        prompt_tokens=known_sum([call.prompt_tokens for call in calls]),
        completion_tokens=known_sum([call.completion_tokens for call in calls]),
        cached_tokens=known_sum([call.cached_tokens for call in calls]),
        seconds=math.fsum(call.latency_s for call in calls),
    )


def _efficiency(
    role: Literal["chatbot", "detector"],
    name: str,
    on: str,
    chats: Mapping[str, Sequence[Call]],
    baseline: float | None,
) -> Efficiency:
    tokens = _tokens_per_chat(chats)
    return Efficiency(
        role=role,
        name=name,
        conversations=len(chats),
        on=on,
        calls_per_chat=mean([float(len(calls)) for calls in chats.values()]),
        tokens_per_chat=tokens,
        seconds_per_chat=mean([math.fsum(call.latency_s for call in calls) for calls in chats.values()]),
        relative_to_vanilla=tokens / baseline if tokens is not None and baseline else None,
    )


def _tokens_per_chat(chats: Mapping[str, Sequence[Call]]) -> float | None:
    counts = [
        count
        for calls in chats.values()
        for call in calls
        for count in (call.prompt_tokens, call.completion_tokens)
    ]
    total = known_sum(counts)
    return None if total is None or not chats else total / len(chats)
