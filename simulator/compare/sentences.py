"""Sentences on a comparison of runs: differences found and not found, and changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from hallulab.scenarios.text.wording import choose_noun, format_count, format_number, join_names
from hallulab.simulator.compare.differences import DifferenceLine
from hallulab.simulator.compare.runs import RunCompared, RunsCompared
from hallulab.simulator.compare.setup import SetupChange
from hallulab.simulator.compare.turns import KINDS
from hallulab.simulator.statistics.answering import answers_less
from hallulab.simulator.statistics.intervals import LEAST_FOR_INTERVAL
from hallulab.simulator.statistics.planning import compute_least_pairs

MOST_CHANGES = 8
"""Changes of the setup that one sentence names."""

_BY_HASH = ("prompt", "document", "persona", "scenario", "version")
"""Changes whose values are hashes, which no reader needs."""


def describe_run(compared: RunsCompared, run: RunCompared) -> list[str]:
    """Say what failed, what was found of a run, what was not, and what was changed."""
    if run.not_comparable:
        return [*run.warnings, compared.explain(run)]
    same = all(line.difference in (0.0, None) for line in run.differences) and _is_same(run)
    found = [line for line in run.differences if line.is_significant]
    return [
        *run.warnings,
        *dict.fromkeys(_describe_found(line, run) for line in found),
        *(() if same else _describe_not_found(compared, run)),
        *describe_changed_turns(run),
        describe_changes(run),
        *(f"Not in both: {reason}." for reason in run.left_out),
    ]


def describe_changed_turns(run: RunCompared) -> list[str]:
    """Say how many hallucinated turns have changed, how many by noise, and how many are not judged."""
    counts = run.turns.counts
    if not run.turns.conversations:
        return [
            "No conversation has the same chatbot, persona and seed in both runs, so no turns are compared."
        ]
    if _is_same(run):
        compared = sum(one.compared for one in counts)
        return [f"Every reply that both runs have is the same, and so is every verdict ({compared})."]
    numbers = {kind: sum(getattr(one, kind) for one in counts) for kind in KINDS}
    compared, same, noise, unjudged, new = (
        sum(getattr(one, name) for one in counts)
        for name in ("compared", "same_reply", "by_noise", "unjudged", "new_unjudged")
    )
    numbers["new"] -= new
    of = f"of {format_count(compared, 'verdict')} on turns judged in both runs"
    changed = ", ".join(f"{number} {kind}" for kind, number in numbers.items())
    said = [f"Hallucinated turns: {changed}, {of}."]
    if new:
        turns = choose_noun(new, "is new, on a turn", "are new, on turns")
        said[0] += f" {new} more {turns} without a verdict in the reference."
    if same:
        said.append(
            f"The detectors' noise: {format_count(same, 'verdict')} {choose_noun(same, 'is', 'are')} on the "
            "same reply after the same history, and "
            f"{noise} of the changes {choose_noun(noise, 'is', 'are')} among these."
        )
    if unjudged:
        said.append(
            f"{unjudged} hallucinated {choose_noun(unjudged, 'turn')} of the reference "
            f"{choose_noun(unjudged, 'is', 'are')} not judged in {run.run.letter}, or not there."
        )
    return said


def _is_same(run: RunCompared) -> bool:
    """Return whether the turns that both runs have are the same, with their verdicts."""
    counts = run.turns.counts
    return any(one.compared for one in counts) and not any(
        one.unlike or one.same_reply != one.compared for one in counts
    )


def describe_changes(run: RunCompared) -> str:
    """Say what was changed between the runs, in one sentence."""
    listed = [*dict.fromkeys(render_changes(run.changes))]
    known = (
        "" if run.has_manifests else " One of the runs has no experiment.json, so more may have been changed."
    )
    if not listed:
        return (
            f"By their manifests, nothing was changed between the runs.{known}"
            if run.has_manifests
            else known[1:]
        )
    more = f"; and {len(listed) - MOST_CHANGES} more" if len(listed) > MOST_CHANGES else ""
    return f"Changed between the runs: {'; '.join(listed[:MOST_CHANGES])}{more}.{known}"


def render_changes(changes: Iterable[SetupChange]) -> list[str]:
    """Return each change in a few words, one that several components share once."""
    owners: dict[tuple[str, str, str | None, str | None], list[str]] = defaultdict(list)
    for one in changes:
        values = (None, None) if one.what == "version" else (one.before, one.after)
        owners[one.what, one.name, *values].append(one.of)
    listed = []
    for (what, name, before, after), own in owners.items():
        change = f"{what} {name}" if name else what
        if any(own):
            change += f" of {_join_owners([*filter(None, own)])}"
        if what not in _BY_HASH:
            change += f": {before or 'none'} → {after or 'none'}"
        elif what != "version" and None in (before, after):
            change += f" ({'added' if before is None else 'removed'})"
        listed.append(change)
    return listed


def _join_owners(owners: Sequence[str]) -> str:
    """Join names such as `chatbot vanilla`, those of one kind together."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for owner in owners:
        kind, _, name = owner.partition(" ")
        kinds[owner if owner == "simulated user" else kind].append("" if owner == "simulated user" else name)
    return join_names([f"{kind} {join_names(names)}".strip() for kind, names in kinds.items()])


def _describe_found(line: DifferenceLine, run: RunCompared) -> str:
    letter, numbers = run.run.letter, f"{render_line(line)}{'' if line.paired else ', other personas'}"
    if line.metric == "answered":
        return f"{line.chatbot} answers {'less' if line.harm > 0 else 'more'} in {letter}: {numbers}."
    if line.metric == "hpt_1":
        verb = f"hallucinates {'more' if line.harm > 0 else 'less'} in {letter}"
    else:
        verb = f"has a {'lower' if line.harm > 0 else 'higher'} token accuracy in {letter}"
    buts = [
        _say_that_it_answers_less(line, run) if line.harm < 0 else "",
        *_say_what_was_judged(line, run),
    ]
    but = "; ".join(filter(None, buts))
    return f"By {line.detector}, {line.chatbot} {verb}: {numbers}{but and f'; but {but}'}."


def _say_that_it_answers_less(line: DifferenceLine, run: RunCompared) -> str:
    """Say so behind what became better; empty where it answers about as much."""
    own = next(
        one
        for one in run.differences
        if (one.metric, one.chatbot, one.detector) == ("answered", line.chatbot, line.detector)
    )
    if not answers_less(own.after, own.before):
        return ""
    before, after = (format_number(value, 1, 100) for value in (own.before, own.after))
    return f"it answers {after}% of replies, {before}% before, and is not better by that alone"


def _say_what_was_judged(line: DifferenceLine, run: RunCompared) -> Iterator[str]:
    """Say that other shares of the turns were judged in the two runs, and that only the detector changed."""
    of = (line.chatbot, line.detector)
    own = next(one for one in run.coverage if (one.chatbot, one.detector) == of)
    shares = own.before.share, own.after.share
    if answers_less(*shares) or answers_less(*reversed(shares)):
        before, after = (format_number(share, 1, 100) for share in shares)
        yield f"{line.detector} scored {after}% of its turns, {before}% before"
    counts = next(one for one in run.turns.counts if (one.chatbot, one.detector) == of)
    if counts.same_reply == counts.compared >= own.after.scored:
        yield f"all its replies that {line.detector} scored are those of the reference"


def render_line(line: DifferenceLine) -> str:
    """Return the numbers of a line: `0.50 → 1.10 a turn, +0.60 [0.21, 0.98], p = 0.012`."""
    digits, scale, unit = (2, 1, " a turn") if line.metric == "hpt_1" else (1, 100, "%")
    signed = build_signed_format(digits, scale)
    before, after = (format_number(value, digits, scale) for value in (line.before, line.after))
    interval = "" if line.ci95 is None else f" [{', '.join(map(signed, line.ci95))}]"
    p = "" if line.p_holm is None else f", p = {line.p_holm:.3g}"
    return f"{before} → {after}{unit}, {signed(line.difference)}{interval}{p}"


def build_signed_format(digits: int, scale: float = 1) -> Callable[[float | None], str]:
    """Return a format for differences: `+0.25`; None is a dash.

    >>> [build_signed_format(2)(value) for value in (0.251, -0.5, 0.0, -0.001, None)]
    ['+0.25', '-0.50', '0.00', '0.00', '–']
    """

    def render(value: float | None) -> str:
        text = format_number(value, digits, scale)
        if value is None or not float(text):
            return text.removeprefix("-")
        return f"+{text}" if value > 0 else text

    return render


def _describe_not_found(compared: RunsCompared, run: RunCompared) -> list[str]:
    """Name the chatbots without a difference in HPT, and say how large a difference is still possible."""
    lines = [line for line in run.differences if line.metric == "hpt_1" and not line.is_significant]
    if not lines:
        return []
    unscored = [line for line in lines if line.difference is None]
    bounded = [line for line in lines if line.ci95 is not None]
    unbounded = [line for line in lines if line.difference is not None and line.ci95 is None]
    short = [line for line in unbounded if line.personas < LEAST_FOR_INTERVAL]
    alike = [line for line in unbounded if line.personas >= LEAST_FOR_INTERVAL]
    said = []
    if bounded:
        bound = max(max(abs(low), abs(high)) for low, high in (line.ci95 for line in bounded if line.ci95))
        said.append(
            f"No difference found in hallucinations: {_name_lines(bounded, run)}. "
            f"A difference of up to {bound:.2f} a turn is still possible."
        )
    if alike:
        said.append(
            f"No difference found in hallucinations: {_name_lines(alike, run)}. No interval: "
            "it is identical for every persona."
        )
    if short:
        personas = max(line.personas for line in short)
        tests = sum(line.metric != "answered" for one in compared.runs for line in one.differences)
        least = compute_least_pairs(tests)
        are = choose_noun(personas, "is", "are")
        said.append(
            f"No difference found in hallucinations: {_name_lines(short, run)}. "
            f"{format_count(personas, 'persona')} {are} too few to detect any difference; "
            f"{format_count(tests, 'comparison')} need{'s' if tests == 1 else ''} at least {least}."
        )
    if unscored:
        said.append(f"Nothing was scored in one of the runs: {_name_lines(unscored, run)}.")
    return said


def _name_lines(lines: Sequence[DifferenceLine], run: RunCompared) -> str:
    """Name chatbots by detector; all of them are `all 5 chatbots`."""
    everybody = {line.chatbot for line in run.differences}
    chatbots: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for detector in dict.fromkeys(line.detector for line in lines):
        named = tuple(line.chatbot for line in lines if line.detector == detector)
        chatbots[named].append(detector)
    parts = []
    for named, detectors in chatbots.items():
        whole = len(named) > 2 and set(named) == everybody
        parts.append(
            f"{f'all {len(named)} chatbots' if whole else join_names(named)} by {join_names(detectors)}"
        )
    return "; ".join(parts)
