"""Whether a run can be judged: what the baseline has was measured again, and by detectors that may gate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hallulab.simulator.compare.runs import RunCompared
from hallulab.simulator.compare.summary import RunSummary
from hallulab.simulator.gate.result import GateCheck, GateLine
from hallulab.simulator.gate.totals import LineKey, Totals
from hallulab.simulator.report.facts import derive_detector_errors
from hallulab.simulator.statistics.prevalence import (
    Accuracy,
    DetectorErrors,
    compute_rates,
    derive_from_planted_errors,
    read_accuracies,
    require_measured,
)

ANEW = "make the baseline anew with `hallulab compare RUN --save FILE`"
REMEDY = "fit it with `hallulab calibrate`, or measure it on planted errors and give --planted (docs/gate.md)"


def check_comparable(
    before: RunSummary,
    now: RunSummary,
    compared: RunCompared,
    lines: Sequence[GateLine],
    old_totals: Mapping[LineKey, Totals],
    totals: Mapping[LineKey, Totals],
) -> Iterator[GateCheck]:
    """Yield a check for all that the baseline has and the run lacks, or one that nothing is lacking.

    A gate that passes what it could not measure would be none: a chatbot that is gone because it failed
    looks like one that nobody asked for.

    Args:
        before: the baseline.
        now: the run.
        compared: the run beside the baseline.
        lines: chatbots under detectors that both have.
        old_totals: of the baseline.
        totals: of the run.
    """
    if compared.not_comparable:
        refused = [_refuse(f"{reason}: {ANEW}") for reason in compared.not_comparable]
    else:
        refused = [*_list_missing(before, now), *_list_unmeasured(lines, old_totals, totals)]
    yield from refused or [
        GateCheck(rule="comparable", outcome="passed", message="all that the baseline has was measured again")
    ]


def _list_missing(before: RunSummary, now: RunSummary) -> Iterator[GateCheck]:
    """Yield a refusal for each chatbot and detector of the baseline that the run lacks, or has by name."""
    for chatbot in before.chatbots:
        if chatbot not in now.chatbots:
            yield _refuse(f"the baseline has it, the run does not: run it, or {ANEW}", chatbot)
        elif _has_held(before, chatbot) and not _has_held(now, chatbot):
            yield _refuse("every conversation of the run failed, and a failure is never clean", chatbot)
    for detector in before.detectors:
        if detector not in now.detectors:
            message = f"it judged the baseline, not the run: `hallulab detect` judges it, or {ANEW}"
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
        f"prompts, threshold, model or code), so their numbers mean different things: {ANEW}"
    )


def _list_unmeasured(
    lines: Sequence[GateLine], old_totals: Mapping[LineKey, Totals], totals: Mapping[LineKey, Totals]
) -> Iterator[GateCheck]:
    """Yield a refusal for each line that the baseline can tell a regression of, and the run cannot."""
    for line in lines:
        key = (line.chatbot, line.detector)
        if old_totals[key].scored and not totals[key].scored:
            yield _refuse("no turn of the run is scored, and a failure is never clean", *key)
        elif line.is_blind and old_totals[key].personas >= line.personas_needed:
            # Where few are in both, the runs are compared unpaired, and the line counts no persona.
            few = f"only {line.personas}" if line.personas else "too few"
            yield _refuse(
                f"of the baseline's {old_totals[key].personas} personas {few} are scored in "
                f"the run, {line.personas_needed} needed: run them, or {ANEW}",
                *key,
            )


def _refuse(message: str, chatbot: str | None = None, detector: str | None = None) -> GateCheck:
    return GateCheck(
        rule="comparable", chatbot=chatbot, detector=detector, outcome="not comparable", message=message
    )


def check_calibrated(now: RunSummary, planted: Path | None) -> Iterator[GateCheck]:
    """Yield a check for each detector of a run.

    Args:
        now: the run.
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
        refused, message = _describe_errors(known.get(name))
        yield GateCheck(
            rule="calibrated",
            detector=name,
            outcome="not comparable" if refused else "passed",
            message=message,
        )


def _describe_errors(errors: DetectorErrors | None) -> tuple[bool, str]:
    """Return whether a detector with such errors may not gate, and why, or how good it is."""
    rates = None if errors is None else compute_rates(errors.replies)
    if errors is None or rates is None:
        return True, f"its sensitivity and specificity on this model are unknown: {REMEDY}"
    of_clean, of_wrong = rates
    found = f"sensitivity {of_wrong:.0%}, specificity {1 - of_clean:.0%}, by {errors.source}"
    if of_wrong <= of_clean:
        return True, f"its flags do not tell wrong replies from clean ones ({found})"
    return False, found
