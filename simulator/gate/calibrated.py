"""Whether a detector may gate: whether its sensitivity and specificity on this model are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from hallulab.simulator.compare.summary import RunSummary
from hallulab.simulator.gate.result import GateCheck
from hallulab.simulator.measure.prevalence import (
    Accuracy,
    DetectorErrors,
    compute_rates,
    derive_from_planted_errors,
    read_accuracies,
    require_measured,
)
from hallulab.simulator.report.facts import derive_detector_errors

REMEDY = "fit it with `hallulab calibrate`, or measure it on planted errors and give --planted (docs/gate.md)"


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
