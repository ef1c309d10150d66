"""What a gate found, for all its outputs: terminal, Markdown, JUnit, JSON and pytest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from hallulab.scenarios.text.wording import join_names
from hallulab.scenarios.transcript import Count, Frozen
from hallulab.simulator.compare.turns import ChangedTurn
from hallulab.simulator.statistics.intervals import Interval, Rounded

Rule = Literal["comparable", "calibrated", "worse", "severe", "max-hpt", "min-coverage"]
"""What is asked of a run. `comparable` and `calibrated`: whether it can be judged at all."""
Outcome = Literal["passed", "failed", "not tested", "not comparable"]
"""`not tested`: nothing could have failed it, such as a test of three personas."""
GateVerdict = Literal["passed", "blocked", "not comparable"]

EXIT_CODES: dict[GateVerdict, int] = {"passed": 0, "blocked": 1, "not comparable": 3}
"""Exit code of `hallulab gate`; 2 is a usage error."""


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
        """What it is about, such as `vanilla by metarag`."""
        by = f"by {self.detector}" if self.detector else ""
        return " ".join(filter(None, (self.chatbot, by))) or "the run"


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
    """Its paired bootstrap interval over personas; None with fewer than six, and where all have the same
    difference."""
    p_worse: Rounded | None
    """One-sided paired permutation test, after Holm over all lines; None with fewer than two personas."""
    hpt_1: Rounded | None
    """HPT-1 of the run over all its conversations."""
    coverage_before: Rounded | None
    """Scored turns over turns of the baseline; a conversation that failed counts the reply that it lacks."""
    coverage: Rounded | None
    """The same of the run."""

    @property
    def is_blind(self) -> bool:
        """Whether there are too few personas for the test to find anything."""
        return self.personas < self.personas_needed


class GateResult(Frozen):
    """The answer of `hallulab gate`."""

    verdict: GateVerdict
    run: str
    """Name of the run."""
    baseline: str
    """Name of the run that the baseline was made of."""
    lines: tuple[GateLine, ...]
    checks: tuple[GateCheck, ...]
    """What was asked, and the answers."""
    severe: tuple[ChangedTurn, ...] = ()
    """Turns with new hallucinations of the guard's severity; those by noise alone do not block."""
    changed: tuple[ChangedTurn, ...] = ()
    """Turns whose verdicts changed, new ones first."""
    setup: tuple[str, ...] = ()
    """What was changed between the two, a sentence each."""
    warnings: tuple[str, ...] = ()
    """What the verdict does not say by itself, a sentence each."""

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
            return f"Passed: {against}{', but a regression could not be seen' if blind else ''}."
        if self.verdict == "blocked":
            return f"Blocked: {against}."
        return f"Not comparable: {against} cannot be judged."


def conclude(checks: Iterable[GateCheck]) -> GateVerdict:
    """Return the verdict of checks: a failed one blocks, also where others could not be made."""
    outcomes = {check.outcome for check in checks}
    if "failed" in outcomes:
        return "blocked"
    return "not comparable" if "not comparable" in outcomes else "passed"
