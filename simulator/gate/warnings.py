"""What a gate's verdict does not say by itself: what it cannot see, what failed, what changed by noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hallulab.scenarios.text.wording import format_count, join_names
from hallulab.simulator.compare.summary import RunSummary
from hallulab.simulator.compare.turns import ChangedTurn, TurnChanges
from hallulab.simulator.gate.result import GateLine


def list_warnings(
    before: RunSummary,
    now: RunSummary,
    lines: Sequence[GateLine],
    severe: Sequence[ChangedTurn],
    changes: TurnChanges,
) -> Iterator[str]:
    """Yield the warnings, a sentence each.

    Args:
        before: the baseline.
        now: the run.
        lines: chatbots under detectors that both have.
        severe: turns with new severe hallucinations.
        changes: turns whose verdicts changed.
    """
    yield from now.failures.warnings
    yield from _warn_of_blindness(lines)
    for line in lines:
        old, new = line.coverage_before, line.coverage
        if old is not None and new is not None and new < old:
            yield f"{line.chatbot} by {line.detector}: coverage fell from {old:.1%} to {new:.1%}."
    for chatbot in now.chatbots:
        yield from _warn_of_failures(before, now, chatbot)
    yield from _warn_of_others(before, now)
    excused = sum(turn.noise for turn in severe)
    if excused:
        yield (
            f"new severe hallucinations in {format_count(excused, 'turn')} with the same dialogue, passages "
            "and reply as in the baseline: the detector changed its mind there, so this does not block."
        )
    noisy = sum(count.by_noise for count in changes.counts)
    same = sum(count.same_reply for count in changes.counts)
    if noisy:
        yield (
            f"{noisy} of {format_count(same, 'verdict')} on turns with the same dialogue, passages and reply "
            "changed: this is the detectors' noise."
        )
    unjudged = sum(count.unjudged for count in changes.counts)
    if unjudged:
        yield f"not judged now: {format_count(unjudged, 'turn')} with hallucinations in the baseline."


def describe_blindness(line: GateLine) -> str:
    """Say how many personas a line has, and how many it needs."""
    return f"{format_count(line.personas, 'persona')}, {line.personas_needed} needed"


def _warn_of_blindness(lines: Sequence[GateLine]) -> Iterator[str]:
    blind = [line for line in lines if line.is_blind]
    counts = list(dict.fromkeys(map(describe_blindness, blind)))
    if blind and len(blind) == len(lines) and len(counts) == 1:
        yield f"this gate cannot see a regression: {counts[0]}. Run more, and make the baseline anew."
        return
    for count in counts:
        names = [f"{line.chatbot} by {line.detector}" for line in blind if describe_blindness(line) == count]
        yield f"this gate cannot see a regression of {join_names(names)}: {count}."


def _warn_of_failures(before: RunSummary, now: RunSummary, chatbot: str) -> Iterator[str]:
    old, new = (_count_failed(run, chatbot) for run in (before, now))
    if new > old:
        yield f"{chatbot}: {format_count(new, 'conversation')} failed, {old} in the baseline."
    missing = _list_places(before, chatbot) - _list_places(now, chatbot)
    if missing:
        yield f"{chatbot}: the run lacks {format_count(len(missing), 'conversation')} of the baseline."


def _count_failed(run: RunSummary, chatbot: str) -> int:
    return sum(one.failed for one in run.conversations if one.chatbot == chatbot)


def _list_places(run: RunSummary, chatbot: str) -> set[tuple[str, str, int, int | None]]:
    return {
        (one.scenario, one.persona, one.seed, one.branch)
        for one in run.conversations
        if one.chatbot == chatbot
    }


def _warn_of_others(before: RunSummary, now: RunSummary) -> Iterator[str]:
    chatbots = [name for name in now.chatbots if name not in before.chatbots]
    if chatbots:
        yield f"not compared: the baseline lacks {join_names(chatbots)}."
    detectors = [name for name in now.detectors if name not in before.detectors]
    if detectors:
        yield f"not compared: the baseline was not judged by {join_names(detectors)}."
