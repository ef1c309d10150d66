"""The checks of a gate: whether a run can be judged at all, and what blocks it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hallulab.scenarios.text.wording import format_count
from hallulab.simulator.compare.gate_result import LEVEL, GateCheck, GateLine, GateRules, Outcome
from hallulab.simulator.compare.runs import RunCompared
from hallulab.simulator.compare.summary import RunSummary
from hallulab.simulator.compare.turns import ChangedTurn, index_conversations, pair_turns
from hallulab.simulator.metrics.hallucinations import merge_branches
from hallulab.simulator.metrics.known_errors import (
    Accuracy,
    derive_from_planted_errors,
    read_accuracies,
    require_measured,
)
from hallulab.simulator.report.facts import derive_detector_errors

RECREATE = "recreate the baseline with `hallulab compare RUN --save FILE`"
REMEDY = "fit it with `hallulab calibrate`, or measure it on planted errors and give --planted (docs/gate.md)"


LineKey = tuple[str, str]


@dataclass(frozen=True)
class Totals:
    """Counts of a chatbot under a detector."""

    failed: int
    """Conversations that ended with an error."""
    turns: int
    scored: int
    hallucinations: int
    personas: int
    """Personas with such a turn."""
    answers: int
    """Replies that answer, scored or not."""
    declines: int

    @property
    def answered(self) -> float | None:
        """Share of these that answer; None: there are none."""
        number = self.answers + self.declines
        return self.answers / number if number else None

    @property
    def hpt_1(self) -> float | None:
        """Hallucinations a scored turn."""
        return self.hallucinations / self.scored if self.scored else None

    @property
    def coverage(self) -> float | None:
        """Scored turns over all turns and the missing replies of failed conversations."""
        asked = self.turns + self.failed
        return self.scored / asked if asked else None


def count_totals(run: RunSummary) -> dict[LineKey, Totals]:
    """Count each chatbot under each detector of a run."""
    found = {}
    for chatbot in run.chatbots:
        own = [one for one in run.conversations if one.chatbot == chatbot]
        for detector in run.detectors:
            tallies = merge_branches(one.tally(detector) for one in own)
            found[chatbot, detector] = Totals(
                failed=sum(one.failed for one in own),
                turns=sum(tally.turns for tally in tallies),
                scored=sum(tally.scored_turns for tally in tallies),
                hallucinations=sum(tally.hallucinations for tally in tallies),
                answers=sum(tally.answers for tally in tallies),
                declines=sum(tally.declines for tally in tallies),
                personas=len({tally.person for tally in tallies if tally.scored_turns}),
            )
    return found


def check_comparable(
    before: RunSummary,
    now: RunSummary,
    compared: RunCompared,
    lines: Sequence[GateLine],
    old_totals: Mapping[LineKey, Totals],
    totals: Mapping[LineKey, Totals],
) -> Iterator[GateCheck]:
    """Yield a check for everything of the baseline that is missing in the run, or one that nothing is.

    A gate that passes what it could not measure would be none: a chatbot that is gone because it failed
    looks like one that nobody asked for.

    Args:
        lines: chatbots under detectors that both have.
    """
    if compared.not_comparable:
        refused = [_refuse(f"{reason}: {RECREATE}") for reason in compared.not_comparable]
    else:
        refused = [*_list_missing(before, now), *_list_unmeasured(lines, old_totals, totals)]
    yield from refused or [
        GateCheck(rule="comparable", outcome="passed", message="all that the baseline has was measured again")
    ]


def _list_missing(before: RunSummary, now: RunSummary) -> Iterator[GateCheck]:
    """Yield a refusal for each chatbot and detector of the baseline that the run has not, or not so."""
    for chatbot in before.chatbots:
        if chatbot not in now.chatbots:
            yield _refuse(f"the baseline has it, the run does not: run it, or {RECREATE}", chatbot)
        elif _has_held(before, chatbot) and not _has_held(now, chatbot):
            yield _refuse("every conversation of the run failed, and a failure is never clean", chatbot)
    for detector in before.detectors:
        if detector not in now.detectors:
            message = f"it judged the baseline, not the run: `hallulab detect` judges it, or {RECREATE}"
            yield _refuse(message, detector=detector)
        elif different := _explain_versions(before, now, detector):
            yield _refuse(different, detector=detector)


def _has_held(run: RunSummary, chatbot: str) -> bool:
    return any(not one.failed for one in run.conversations if one.chatbot == chatbot)


def _explain_versions(before: RunSummary, now: RunSummary, detector: str) -> str:
    """Say that a detector judged in another version; nothing where it did not."""
    one, two = (run.setup.detectors.get(detector) for run in (before, now))
    if one is not None and two is not None and one.version == two.version:
        return ""
    old, new = ("unknown" if made is None else made.version or "unknown" for made in (one, two))
    return (
        f"version {new} judged the run, {old} the baseline (other options, "
        f"prompts, threshold, model or code), so their numbers mean different things: {RECREATE}"
    )


def _list_unmeasured(
    lines: Sequence[GateLine], old_totals: Mapping[LineKey, Totals], totals: Mapping[LineKey, Totals]
) -> Iterator[GateCheck]:
    """Yield a refusal for each line that has enough personas in the baseline, and too few in the run."""
    for line in lines:
        key = (line.chatbot, line.detector)
        if old_totals[key].scored and not totals[key].scored:
            yield _refuse("no turn of the run is scored, and a failure is never clean", *key)
        elif line.is_blind and old_totals[key].personas >= line.personas_needed:
            # Where few are in both, the runs are compared unpaired, and the line counts no persona.
            few = f"only {line.personas}" if line.personas else "too few"
            yield _refuse(
                f"of the baseline's {old_totals[key].personas} personas {few} are scored in "
                f"the run, {line.personas_needed} needed: run them, or {RECREATE}",
                *key,
            )


def _refuse(message: str, chatbot: str | None = None, detector: str | None = None) -> GateCheck:
    return GateCheck(
        rule="comparable", chatbot=chatbot, detector=detector, outcome="not comparable", message=message
    )


def check_calibrated(now: RunSummary, planted: Path | None) -> Iterator[GateCheck]:
    """Yield a check for each detector of a run.

    Args:
        planted: JSON of `hallulab bench` on planted errors; None: calibrations of this machine count.

    Raises:
        UsageError: the file cannot be read, or measures another version of a detector.
    """
    judged = {name: now.setup.detectors[name].version for name in now.detectors}
    measured: Mapping[str, Accuracy] = {}
    if planted is not None:
        measured = read_accuracies(planted)
        require_measured(measured, judged.items())
    known = derive_detector_errors(judged.items()) | {
        name: derive_from_planted_errors(accuracy) for name, accuracy in measured.items()
    }
    for name in now.detectors:
        errors = known.get(name)
        outcome: Outcome = "not comparable"
        if errors is None or errors.accuracy is None:
            message = f"its sensitivity and specificity on this model are unknown: {REMEDY}"
        else:
            sensitivity, specificity = errors.accuracy
            message = f"sensitivity {sensitivity:.0%}, specificity {specificity:.0%}, by {errors.source}"
            if sensitivity + specificity > 1:
                outcome = "passed"
            else:
                message = f"its flags do not separate wrong replies from clean ones ({message})"
        yield GateCheck(rule="calibrated", detector=name, outcome=outcome, message=message)


def check_worse(line: GateLine) -> GateCheck:
    """Return whether a line is worse beyond the noise."""
    is_worse = line.p_worse is not None and line.p_worse < LEVEL
    if line.is_blind or line.before is None or line.now is None or line.p_worse is None:
        found = f"cannot detect a regression: {line.describe_pairs()}"
    else:
        found = (
            f"HPT-1 {line.before:.2f} → {line.now:.2f} on {format_count(line.personas, 'persona')}, "
            f"p = {line.p_worse:.2g}; below {LEVEL:g} blocks"
        )
    return GateCheck(
        rule="worse",
        chatbot=line.chatbot,
        detector=line.detector,
        outcome="failed" if is_worse else "not tested" if line.is_blind else "passed",
        message=found,
    )


def find_severe(
    before: RunSummary, now: RunSummary, guard: float, lines: Iterable[GateLine]
) -> tuple[ChangedTurn, ...]:
    """Find the turns with new severe hallucinations, those by noise alone last.

    A conversation that the baseline does not have, such as one with another seed, has only new ones.

    Args:
        guard: severity from which a hallucination counts.
    """
    judged = {(line.chatbot, line.detector) for line in lines}
    held, detectors = index_conversations(before), sorted(now.detectors)
    same = before.setup.scenario_version == now.setup.scenario_version
    found = [
        pair.describe("worse" if pair.before.hallucinated else "new")
        for key, conversation in index_conversations(now).items()
        for pair in pair_turns(held.get(key), conversation, detectors, same)
        if (conversation.chatbot, pair.detector) in judged
        and (pair.after.severity or 0.0) >= guard > (pair.before.severity or 0.0)
    ]
    return tuple(sorted(found, key=lambda turn: (turn.noise, -(turn.after.severity or 0.0))))


def check_severe(
    runs: Iterable[RunSummary], guard: float, lines: Iterable[GateLine], severe: Sequence[ChangedTurn]
) -> Iterator[GateCheck]:
    """Yield a check for each line whose detector rates severities, or one that says that none does.

    Args:
        guard: severity from which a hallucination counts.
        lines: the chatbots and detectors that are judged.
        severe: what `find_severe` found.
    """
    rating = {
        name
        for run in runs
        for conversation in run.conversations
        for turn in conversation.turns
        for name, verdict in turn.verdicts.items()
        if verdict.severities
    }
    judged = [line for line in lines if line.detector in rating]
    for line in judged:
        own = [turn for turn in severe if (turn.chatbot, turn.detector) == (line.chatbot, line.detector)]
        blocking = sum(not turn.noise for turn in own)
        yield GateCheck(
            rule="severe",
            chatbot=line.chatbot,
            detector=line.detector,
            outcome="failed" if blocking else "passed",
            message=f"{format_count(blocking, 'turn')} with new hallucinations of severity {guard:g} or more",
        )
    if not judged:
        yield GateCheck(
            rule="severe",
            outcome="not tested",
            message="no hallucination has a severity: no detector here rates it",
        )


def check_limits(totals: dict[LineKey, Totals], rules: GateRules) -> Iterator[GateCheck]:
    """Yield a check for each limit and each chatbot under each detector."""
    for (chatbot, detector), own in totals.items():
        if rules.max_hpt is not None:
            hpt = own.hpt_1
            yield GateCheck(
                rule="max-hpt",
                chatbot=chatbot,
                detector=detector,
                outcome="not comparable" if hpt is None else "failed" if hpt > rules.max_hpt else "passed",
                message=f"HPT-1 {'unknown, no turn is scored' if hpt is None else f'{hpt:.3g}'}; "
                f"at most {rules.max_hpt:g} is allowed",
            )
        if rules.min_coverage is not None:
            coverage = own.coverage or 0.0
            yield GateCheck(
                rule="min-coverage",
                chatbot=chatbot,
                detector=detector,
                outcome="failed" if coverage < rules.min_coverage else "passed",
                message=f"coverage {coverage:.1%}; at least {rules.min_coverage:.1%} is needed",
            )
