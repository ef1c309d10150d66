"""Compare runs with a reference: what differs, what changed, and why some cannot be compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import chain

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.text.wording import choose_noun, format_count, join_names
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.compare.differences import (
    DifferenceLine,
    adjust_lines,
    compare_tallies,
    count_summary,
)
from hallulab.simulator.compare.setup import SetupChange, list_changes
from hallulab.simulator.compare.summary import CostSummary, RunSummary
from hallulab.simulator.compare.turns import TurnChanges, list_changed_turns
from hallulab.simulator.metrics.hallucinations import Tally
from hallulab.simulator.metrics.spending import Spent, sum_spent
from hallulab.simulator.statistics.intervals import Rounded

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Names of runs, in the order in which they are given."""


class RunName(Frozen):
    """Letter and name of a run."""

    letter: str
    name: str
    conversations: int

    def __str__(self) -> str:
        return f"{self.letter} ({self.name})"


class Coverage(Frozen):
    """How much of a chatbot's turns a detector judged in one run."""

    turns: int
    """Turns of the chatbot's conversations."""
    scored: int
    """Those scored and localised."""
    failed: int
    """Turns on which the detector failed."""
    abstained: int
    """Turns on which it abstained."""
    not_localised: int
    """Turns scored without saying where."""
    missing: int
    """Turns without a verdict."""
    share: Rounded | None
    """scored / turns."""


class CoverageLine(Frozen):
    """How much was judged in both runs."""

    chatbot: str
    detector: str
    before: Coverage
    after: Coverage


class AverageCost(Frozen):
    """Cost of a chatbot or detector in a conversation of one run, on average."""

    conversations: int
    """Conversations averaged over; of a detector, those with a verdict of it."""
    calls: Rounded | None
    """Model calls a conversation."""
    tokens: Rounded | None
    """Tokens read and written; None: those of an answered call are not known."""
    seconds: Rounded | None
    """Sum of latencies. Calls run at the same time, so this is no wall time."""


class CostLine(Frozen):
    """Cost of a chatbot or detector in both runs, on conversations with chatbots and personas of both."""

    role: str
    name: str
    before: AverageCost
    after: AverageCost


class RunCompared(Frozen):
    """A run beside the reference."""

    run: RunName
    not_comparable: tuple[str, ...] = ()
    """Why it cannot be compared at all; then all but `changes` is empty."""
    warnings: tuple[str, ...] = ()
    """Failures of it and of the reference, where they are many."""
    left_out: tuple[str, ...] = ()
    """Parts that cannot be compared, or not in pairs, and why."""
    changes: tuple[SetupChange, ...] = ()
    """Changes between the runs, by their manifests."""
    has_manifests: bool
    """Both runs have an experiment.json; else `changes` has only what the journals show."""
    turns: TurnChanges = TurnChanges(conversations=0, counts=(), turns=())
    """Which hallucinated turns have changed."""
    differences: tuple[DifferenceLine, ...] = ()
    """Chatbots under detectors by metrics."""
    coverage: tuple[CoverageLine, ...] = ()
    costs: tuple[CostLine, ...] = ()


class RunsCompared(Frozen):
    """Runs beside a reference: what `hallulab compare --json` writes."""

    reference: RunName
    runs: tuple[RunCompared, ...]
    lines: int
    """Differences in hallucinations that Holm's correction covers."""
    failed: tuple[str, ...] = ()
    """Runs without a conversation, or in which a detector failed on every reply that it judged, and why."""

    @property
    def not_comparable(self) -> tuple[str, ...]:
        """A sentence for each run that cannot be compared."""
        return tuple(self.explain(one) for one in self.runs if one.not_comparable)

    def explain(self, run: RunCompared) -> str:
        """Say why a run cannot be compared."""
        return f"{run.run} cannot be compared with {self.reference}: {'; '.join(run.not_comparable)}."

    def text(self) -> str:
        """Return it as JSON."""
        values = self.model_dump(mode="json")
        return json.dumps(values, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def compare_runs(summaries: Sequence[RunSummary]) -> RunsCompared:
    """Compare runs with the first of them.

    Raises:
        UsageError: there are fewer than two runs or more than there are letters, or a run has two
            conversations of a chatbot with the same scenario, persona and seed.
    """
    if not 2 <= len(summaries) <= len(LETTERS):
        raise UsageError(
            f"{format_count(len(summaries), 'run')}: give 2 to {len(LETTERS)}, the reference first."
        )
    reference, *others = summaries
    compared = [
        _compare_run(reference, one, letter) for one, letter in zip(others, LETTERS[1:], strict=False)
    ]
    lines = adjust_lines([line for one in compared for line in one.differences])
    rest = iter(lines)
    return RunsCompared(
        reference=_name_run(reference, LETTERS[0]),
        runs=tuple(
            one.model_copy(update={"differences": tuple(next(rest) for _ in one.differences)})
            for one in compared
        ),
        lines=sum(line.p_value is not None and line.metric != "answered" for line in lines),
        failed=tuple(
            f"{_name_run(one, letter)}: {one.failures.failed}"
            for one, letter in zip(summaries, LETTERS, strict=False)
            if one.failures.failed is not None
        ),
    )


def explain_not_comparable(before: RunSummary, after: RunSummary) -> list[str]:
    """Say why two runs cannot be compared at all; nothing where they can be."""
    reasons = []
    if before.setup.scenario != after.setup.scenario:
        reasons.append(f"other scenarios ({before.setup.scenario} and {after.setup.scenario})")
    if _is_branched(before) != _is_branched(after):
        reasons.append("the conversations of one run branch off from others, those of the other do not")
    if not _find_shared(before.chatbots, after.chatbots):
        reasons.append(f"no common chatbot ({_contrast(before.chatbots, after.chatbots)})")
    if not _find_shared_detectors(before, after):
        shared = _find_shared(before.detectors, after.detectors)
        reasons.append(
            f"no detector in the same version ({join_names(shared)} changed; `hallulab detect` judges a run "
            "again)"
            if shared
            else f"no common detector ({_contrast(before.detectors, after.detectors)})"
        )
    if not _list_persons(before) & _list_persons(after) and not reasons:
        reasons.append("no common persona")
    return reasons


def _compare_run(reference: RunSummary, run: RunSummary, letter: str) -> RunCompared:
    name = _name_run(run, letter)
    changes = list_changes(reference.setup, run.setup)
    manifests = bool(reference.setup.settings and run.setup.settings)
    reasons = explain_not_comparable(reference, run)
    warnings = tuple(
        f"{_name_run(one, side)}: {warning}"
        for one, side in ((reference, LETTERS[0]), (run, letter))
        for warning in one.failures.warnings
    )
    if reasons:
        return RunCompared(
            run=name,
            not_comparable=tuple(reasons),
            warnings=warnings,
            changes=changes,
            has_manifests=manifests,
        )
    chatbots = _find_shared(reference.chatbots, run.chatbots)
    detectors = _find_shared_detectors(reference, run)
    held = {one: (count_summary(reference, one), count_summary(run, one)) for one in detectors}
    differences = [compare_tallies(*held[detector], chatbots, detector) for detector in detectors]
    coverage = [
        CoverageLine(
            chatbot=chatbot,
            detector=detector,
            before=_measure_coverage(held[detector][0][chatbot]),
            after=_measure_coverage(held[detector][1][chatbot]),
        )
        for detector in detectors
        for chatbot in chatbots
    ]
    return RunCompared(
        run=name,
        warnings=warnings,
        left_out=tuple(_list_left_out(reference, run, name.letter)),
        changes=changes,
        has_manifests=manifests,
        turns=list_changed_turns(reference, run, chatbots, detectors),
        differences=tuple(chain.from_iterable(differences)),
        coverage=tuple(coverage),
        costs=tuple(_compare_costs(reference, run, chatbots, detectors)),
    )


def _name_run(summary: RunSummary, letter: str) -> RunName:
    return RunName(letter=letter, name=summary.name, conversations=len(summary.conversations))


def _is_branched(summary: RunSummary) -> bool:
    return any(one.branch is not None for one in summary.conversations)


def _list_persons(summary: RunSummary) -> set[tuple[str, str]]:
    return {one.pairing[:2] for one in summary.conversations}


def _list_meetings(summary: RunSummary) -> set[tuple[str, str, str]]:
    """Return which chatbot talked to whom."""
    return {(one.chatbot, one.scenario, one.persona) for one in summary.conversations}


def _find_shared(before: Iterable[str], after: Iterable[str]) -> list[str]:
    there = set(after)
    return [name for name in before if name in there]


def _find_shared_detectors(before: RunSummary, after: RunSummary) -> list[str]:
    """Return the detectors that judged in both runs, in the same version."""
    one, other = before.setup.detectors, after.setup.detectors
    return [
        name
        for name in _find_shared(before.detectors, after.detectors)
        if name in one and name in other and one[name].version == other[name].version
    ]


def _contrast(before: Sequence[str], after: Sequence[str]) -> str:
    return f"{join_names(before) or 'none'} in one, {join_names(after) or 'none'} in the other"


def _list_left_out(before: RunSummary, after: RunSummary, letter: str) -> list[str]:
    """Say of each chatbot and detector that is not compared why."""
    said = []
    comparable = _find_shared_detectors(before, after)
    for what, one, other in (
        ("chatbot", before.chatbots, after.chatbots),
        ("detector", before.detectors, after.detectors),
    ):
        for side, names, there in ((LETTERS[0], one, other), (letter, other, one)):
            said += [f"{what} {name} is only in {side}" for name in names if name not in there]
    met, met_after = _list_persons(before), _list_persons(after)
    for side, number in ((LETTERS[0], len(met - met_after)), (letter, len(met_after - met))):
        if number:
            said.append(
                f"{format_count(number, 'persona')} {choose_noun(number, 'is', 'are')} only in {side}"
            )
    said += [
        f"detector {name} in the same version; its verdicts are not compared"
        for name in _find_shared(before.detectors, after.detectors)
        if name not in comparable
    ]
    return said


def _measure_coverage(tallies: Sequence[Tally]) -> Coverage:
    turns, scored, failed, abstained, not_localised = (
        sum(getattr(one, field) for one in tallies)
        for field in ("turns", "scored_turns", "failed", "abstained", "not_localised")
    )
    return Coverage(
        turns=turns,
        scored=scored,
        failed=failed,
        abstained=abstained,
        not_localised=not_localised,
        missing=turns - scored - failed - abstained - not_localised,
        share=scored / turns if turns else None,
    )


def _compare_costs(
    before: RunSummary, after: RunSummary, chatbots: Sequence[str], detectors: Sequence[str]
) -> list[CostLine]:
    shared = _list_meetings(before) & _list_meetings(after)
    held = [
        [one for one in run.conversations if (one.chatbot, one.scenario, one.persona) in shared]
        for run in (before, after)
    ]
    lines = []
    for chatbot in chatbots:
        one, other = (_average([chat.cost for chat in run if chat.chatbot == chatbot]) for run in held)
        lines.append(CostLine(role="chatbot", name=chatbot, before=one, after=other))
    for detector in detectors:
        one, other = (
            _average([chat.judging[detector] for chat in run if detector in chat.judging]) for run in held
        )
        lines.append(CostLine(role="detector", name=detector, before=one, after=other))
    return lines


def _average(costs: Sequence[CostSummary]) -> AverageCost:
    total: Spent = sum_spent(cost.spent() for cost in costs)
    number = len(costs)
    return AverageCost(
        conversations=number,
        calls=total.calls / number if number else None,
        tokens=None if total.all_tokens is None or not number else total.all_tokens / number,
        seconds=total.seconds / number if number else None,
    )
