"""The rules of a gate, and its answer, for all its outputs: terminal, Markdown, JUnit, JSON and pytest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.text.wording import format_count, join_names
from hallulab.scenarios.transcript import Count, Frozen
from hallulab.simulator.compare.turns import ChangedTurn
from hallulab.simulator.statistics.differences import ALPHA
from hallulab.simulator.statistics.intervals import Interval, Rounded

Rule = Literal[
    "comparable", "calibrated", "worse", "answered", "severe", "max-hpt", "min-coverage", "min-answered"
]
"""Question asked of a run. `comparable` and `calibrated` ask whether it can be judged at all."""
Outcome = Literal["passed", "failed", "not tested", "not comparable"]
"""`not tested`: nothing could have failed it, such as a test of three personas."""
GateVerdict = Literal["passed", "blocked", "not comparable"]

LEVEL = ALPHA / 2
"""One-sided level of the test for a regression, over all lines together."""
EXIT_CODES: dict[GateVerdict, int] = {"passed": 0, "blocked": 1, "not comparable": 3}
"""Exit code of `hallulab gate`; 2 is a usage error."""


OFF = "off"
_SEVERITIES = "give a severity from 1 to 5, or off."


@dataclass(frozen=True)
class GateRules:
    """Limits that block a run, beside a regression."""

    severity_guard: float | None = 5.0
    """Severity from which a new hallucination blocks; None: none does."""
    max_hpt: float | None = None
    """Highest HPT-1 of a chatbot under a detector; None: any."""
    min_coverage: float | None = None
    """Least coverage of a chatbot under a detector, from 0 to 1; None: any."""
    min_answered: float | None = None
    """Least share of answered replies of a chatbot, from 0 to 1; None: any. That it fell against the baseline
    blocks in either case."""
    require_calibrated: bool = False
    """A detector needs a known sensitivity and specificity."""
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
        if self.min_answered is not None and not 0 <= self.min_answered <= 1:
            raise UsageError(f"--min-answered {self.min_answered:g}: give a share from 0 to 1, such as 0.9.")
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


class GateCheck(Frozen):
    """One question and its answer: a testcase of JUnit."""

    rule: Rule
    chatbot: str | None = None
    """Of which chatbot; None: of all."""
    detector: str | None = None
    """By which detector; None: by all."""
    outcome: Outcome
    message: str

    @property
    def subject(self) -> str:
        """Chatbot and detector of the check, such as `vanilla by metarag`."""
        by = f"by {self.detector}" if self.detector else ""
        return " ".join(filter(None, (self.chatbot, by))) or "the run"


def describe_pairs(personas: int, needed: int) -> str:
    """Say how many personas are paired, and how many a test needs."""
    there = format_count(personas, "persona") if personas else "no persona to pair with one of the baseline"
    return f"{there}, {needed} needed"


class GateLine(Frozen):
    """A chatbot under a detector, now and in the baseline."""

    chatbot: str
    detector: str
    personas: Count
    """Personas of which both have a scored turn: the pairs of the test."""
    personas_needed: Count
    """Pairs below which the test of so many lines cannot find anything."""
    before: Rounded | None
    """HPT-1 of the baseline on these personas."""
    now: Rounded | None
    """HPT-1 of the run on these."""
    difference: Rounded | None
    """`now` minus `before`; above 0 is worse."""
    ci95: Interval
    """Its paired interval over personas; None with fewer than six, and where all have the same difference,
    which is not 0."""
    p_worse: Rounded | None
    """One-sided paired test by flipped signs, after Holm over all lines; None with fewer than two
    personas."""
    hpt_1: Rounded | None
    """HPT-1 of the run over all its conversations."""
    coverage_before: Rounded | None
    """Scored turns over turns of the baseline; a conversation that failed counts its missing reply."""
    coverage: Rounded | None
    answered_before: Rounded | None
    """Share of answered replies in the baseline, on the personas of both; None: it does not say."""
    answered: Rounded | None
    """The same of the run. Both are the same under each detector."""
    p_answered: Rounded | None
    """One-sided paired test of this share, after Holm over all chatbots; None with fewer than two
    personas."""

    @property
    def is_blind(self) -> bool:
        """There are too few personas for the test to find anything."""
        return self.personas < self.personas_needed

    def describe_pairs(self) -> str:
        """Say how many personas it has, and how many it needs."""
        return describe_pairs(self.personas, self.personas_needed)

    @property
    def pairs(self) -> str:
        """The personas, and where they are too few, how many are needed."""
        return f"{self.personas} of {self.personas_needed}" if self.is_blind else str(self.personas)


class GateResult(Frozen):
    """The answer of `hallulab gate`."""

    verdict: GateVerdict
    run: str
    baseline: str
    """Name of the run that the baseline was made of."""
    lines: tuple[GateLine, ...]
    checks: tuple[GateCheck, ...]
    """The questions, and their answers."""
    severe: tuple[ChangedTurn, ...] = ()
    """Turns with new hallucinations of the guard's severity; those by noise alone do not block."""
    changed: tuple[ChangedTurn, ...] = ()
    """Turns whose verdicts changed, new ones first."""
    setup: tuple[str, ...] = ()
    """Changes between the two, a sentence each."""
    warnings: tuple[str, ...] = ()
    """Limits of the verdict, a sentence each."""

    @property
    def exit_code(self) -> int:
        """The exit code of `hallulab gate`."""
        return EXIT_CODES[self.verdict]

    @property
    def blocking(self) -> tuple[GateCheck, ...]:
        """The checks that did not pass, whatever the reason."""
        return tuple(check for check in self.checks if check.outcome in ("failed", "not comparable"))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it did not pass, a sentence for each reason with all that it is about."""
        subjects: dict[str, list[str]] = {}
        for check in self.blocking:
            subjects.setdefault(check.message, []).append(check.subject)
        return tuple(f"{join_names(own)}: {message}" for message, own in subjects.items())

    @property
    def headline(self) -> str:
        """The verdict as a sentence."""
        against = f"{self.run} against the baseline {self.baseline}"
        if self.verdict == "passed":
            blind = all(line.is_blind for line in self.lines)
            return f"Passed: {against}{', but a regression could not be detected' if blind else ''}."
        if self.verdict == "blocked":
            return f"Blocked: {against}."
        return f"Not comparable: {against} cannot be judged."


def conclude(checks: Iterable[GateCheck]) -> GateVerdict:
    """Return the verdict of checks: a failed one blocks, also where others could not be made."""
    outcomes = {check.outcome for check in checks}
    if "failed" in outcomes:
        return "blocked"
    return "not comparable" if "not comparable" in outcomes else "passed"
