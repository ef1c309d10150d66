"""What a gate is told to ask of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hallulab.scenarios.errors import UsageError

OFF = "off"
_SEVERITIES = "give a severity from 1 to 5, or off."


@dataclass(frozen=True)
class GateRules:
    """What blocks a run beside a regression."""

    severity_guard: float | None = 5.0
    """Severity from which a new hallucination blocks; None: none does."""
    max_hpt: float | None = None
    """Highest HPT-1 of a chatbot under a detector; None: any."""
    min_coverage: float | None = None
    """Least coverage of a chatbot under a detector, from 0 to 1; None: any."""
    require_calibrated: bool = False
    """Whether a detector needs a known sensitivity and specificity."""
    planted: Path | None = None
    """JSON of `hallulab bench` on planted errors, from which they are known; None: calibrations are asked."""

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing.

        Raises:
            UsageError: names the flag.
        """
        if self.severity_guard is not None and not 1 <= self.severity_guard <= 5:
            raise UsageError(
                f"--severity-guard {self.severity_guard:g}: give a severity from 1 to 5, or off."
            )
        if self.max_hpt is not None and not 0 <= self.max_hpt < float("inf"):
            raise UsageError(f"--max-hpt {self.max_hpt:g}: give hallucinations a turn, 0 or more.")
        if self.min_coverage is not None and not 0 <= self.min_coverage <= 1:
            raise UsageError(f"--min-coverage {self.min_coverage:g}: give a share from 0 to 1, such as 0.9.")
        if self.planted is not None and not self.require_calibrated:
            raise UsageError("--planted goes with --require-calibrated, which asks how good a detector is.")


def read_severity(value: str | float | None) -> float | None:
    """Return the severity of a guard; None for `off`.

    Raises:
        UsageError: it is neither a number nor `off`.
    """
    if value is None or value == OFF:
        return None
    try:
        return float(value)
    except ValueError:
        raise UsageError(f"--severity-guard {value}: {_SEVERITIES}") from None
