"""A gate for changes: whether a run is worse than a baseline beyond the noise.

A persona's conversations of the run and of the baseline are a pair. If nothing was changed but seeds, the two
could be exchanged; the paired test of `hallulab.simulator.statistics.differences` asks how often flipped
signs of the pairs give a difference as large. Flipping all turns the sign of the difference, so the
distribution is symmetric, and half of the two-sided p-value is the one-sided one. It is compared with half of
the two-sided 5% that all other tests here use. So a chatbot that nobody changed is blocked for its
hallucinations in at most 2.5% of runs, however many lines are tested, and for the replies that it no longer
answers in at most 2.5%; in up to 5% where conversations of run and baseline differ in length
(docs/studies/gate.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hallulab.scenarios.text.wording import format_count, join_names
from hallulab.simulator.compare.differences import DifferenceLine, find_harm
from hallulab.simulator.compare.gate_answered import (
    AnsweredLine,
    check_answered,
    check_least_answered,
    compare_answered,
)
from hallulab.simulator.compare.gate_checks import (
    LineKey,
    Totals,
    check_calibrated,
    check_comparable,
    check_limits,
    check_severe,
    check_worse,
    count_totals,
    find_severe,
)
from hallulab.simulator.compare.gate_result import GateCheck, GateLine, GateResult, GateRules, conclude
from hallulab.simulator.compare.runs import compare_runs
from hallulab.simulator.compare.sentences import render_changes
from hallulab.simulator.compare.summary import RunSummary, read_summary, summarize_run
from hallulab.simulator.compare.texts import quote_turns
from hallulab.simulator.compare.turns import ChangedTurn, TurnChanges, index_conversations
from hallulab.simulator.records.folder import RunFolder

QUOTED = 10
"""Turns of each kind that are quoted."""


def gate_folder(folder: RunFolder, baseline: Path, rules: GateRules) -> GateResult:
    """Judge a run folder by a baseline file or another run folder, and quote the turns that became worse.

    Raises:
        UsageError: one of them is neither, or is damaged.
    """
    result = judge_run(summarize_run(folder), read_summary(baseline), rules)
    severe = [turn for turn in result.severe if not turn.noise][:QUOTED]
    changed = [
        turn
        for kind in ("new", "worse")
        for turn in [one for one in result.changed if one.kind == kind][:QUOTED]
    ]
    turns = quote_turns([*result.severe, *result.changed], folder, [*severe, *changed])
    number = len(result.severe)
    return result.model_copy(update={"severe": tuple(turns[:number]), "changed": tuple(turns[number:])})


def judge_run(now: RunSummary, before: RunSummary, rules: GateRules) -> GateResult:
    """Judge a run by a baseline.

    Raises:
        UsageError: the file of planted errors cannot be used, or a run has two conversations of a chatbot
            with the same scenario, persona and seed.
    """
    old_totals, totals = count_totals(before), count_totals(now)
    [compared] = compare_runs([before, now]).runs
    answered = compare_answered(compared.differences)
    lines = build_lines(compared.differences, answered, old_totals, totals)
    changed = compared.turns.turns
    guard = rules.severity_guard
    severe = () if guard is None else find_severe(before, now, guard, lines)
    checks: Sequence[GateCheck] = [
        *check_comparable(before, now, compared, lines, old_totals, totals),
        *(check_calibrated(now, rules.planted) if rules.require_calibrated else ()),
        *map(check_worse, lines),
        *check_answered(answered, totals),
        *(check_severe((before, now), guard, lines, severe) if guard is not None else ()),
        *check_limits(totals, rules),
        *(check_least_answered(totals, rules.min_answered) if rules.min_answered is not None else ()),
    ]
    return GateResult(
        verdict=conclude(checks),
        run=now.name,
        baseline=before.name,
        lines=lines,
        checks=tuple(checks),
        severe=severe,
        changed=changed,
        setup=tuple(render_changes(compared.changes)),
        warnings=tuple(list_warnings(before, now, lines, severe, compared.turns)),
    )


def build_lines(
    differences: Sequence[DifferenceLine],
    answered: Mapping[str, AnsweredLine],
    before: Mapping[LineKey, Totals],
    now: Mapping[LineKey, Totals],
) -> tuple[GateLine, ...]:
    """Build a line for each chatbot under each detector that both runs have.

    Args:
        answered: of them, by chatbot.
    """
    compared = [line for line in differences if line.metric == "hpt_1"]
    needed, harm = find_harm(compared)
    lines = [
        GateLine(
            chatbot=line.chatbot,
            detector=line.detector,
            personas=line.pairs,
            personas_needed=needed,
            before=line.before,
            now=line.after,
            difference=line.difference,
            ci95=line.ci95,
            p_worse=p_worse,
            hpt_1=now[line.chatbot, line.detector].hpt_1,
            coverage_before=before[line.chatbot, line.detector].coverage,
            coverage=now[line.chatbot, line.detector].coverage,
            answered_before=answered[line.chatbot].line.before,
            answered=answered[line.chatbot].line.after,
            p_answered=answered[line.chatbot].p_less,
        )
        for line, p_worse in zip(compared, harm, strict=True)
    ]
    order = list(now)
    return tuple(sorted(lines, key=lambda line: order.index((line.chatbot, line.detector))))


def list_warnings(
    before: RunSummary,
    now: RunSummary,
    lines: Sequence[GateLine],
    severe: Sequence[ChangedTurn],
    changes: TurnChanges,
) -> Iterator[str]:
    """Yield the warnings, a sentence each.

    Args:
        lines: chatbots under detectors that both have.
        severe: turns with new severe hallucinations.
        changes: turns whose verdicts changed.
    """
    yield from now.failures.warnings
    yield from _warn_of_blindness(lines)
    for line in lines:
        before_share, share = line.coverage_before, line.coverage
        if before_share is not None and share is not None and share < before_share:
            yield f"{line.chatbot} by {line.detector}: coverage fell from {before_share:.1%} to {share:.1%}."
    held, own = index_conversations(before), index_conversations(now)
    for chatbot in now.chatbots:
        new, old = (
            sum(chat.failed for chat in some.values() if chat.chatbot == chatbot) for some in (own, held)
        )
        if new > old:
            yield f"{chatbot}: {format_count(new, 'conversation')} failed, {old} in the baseline."
        missing = sum(key[0] == chatbot for key in held.keys() - own.keys())
        if missing:
            yield f"{chatbot}: {format_count(missing, 'conversation')} of the baseline missing in the run."
    for words, names, known in (
        ("missing in the baseline", now.chatbots, before.chatbots),
        ("which did not judge the baseline", now.detectors, before.detectors),
    ):
        others = [name for name in names if name not in known]
        if others:
            yield f"not compared: {join_names(others)}, {words}."
    excused = sum(turn.noise for turn in severe)
    if excused:
        yield (
            f"new severe hallucinations in {format_count(excused, 'turn')} with the same dialogue, passages "
            "and reply as in the baseline: the chatbot did not change there, so this does not block."
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


def _warn_of_blindness(lines: Sequence[GateLine]) -> Iterator[str]:
    placeless = [f"{line.chatbot} by {line.detector}" for line in lines if line.coverage_before == 0]
    if placeless:
        yield (
            f"HPT-1 is not compared of {join_names(placeless)}: no reply of the baseline was scored with the "
            "places of hallucinations. Let a detector judge that gives them, such as halludetect."
        )
    blind = [line for line in lines if line.is_blind and line.coverage_before != 0]
    counts = list(dict.fromkeys(line.describe_pairs() for line in blind))
    if blind and len(blind) == len(lines) and len(counts) == 1:
        yield (
            f"not enough personas to detect a regression: {counts[0]}. "
            "Add personas and recreate the baseline."
        )
        return
    for count in counts:
        names = [f"{line.chatbot} by {line.detector}" for line in blind if line.describe_pairs() == count]
        yield f"not enough personas to detect a regression of {join_names(names)}: {count}."
