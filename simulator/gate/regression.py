"""The gate for tests: an assertion that a run is no worse than a baseline."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from hallulab.scenarios.arguments import check_arguments
from hallulab.scenarios.text.wording import clean_for_terminal
from hallulab.simulator.compare.turns import ChangedTurn
from hallulab.simulator.gate.command import gate_folder
from hallulab.simulator.gate.result import GateResult
from hallulab.simulator.gate.rules import GateRules
from hallulab.simulator.gate.terminal import describe_turn
from hallulab.simulator.options.groups import StrPath, to_path
from hallulab.simulator.records.folder import RunFolder

SHOWN = 5
"""Most turns of each kind in the message of a failure."""


class GateWarning(UserWarning):
    """What a gate's verdict does not say by itself, such as that it has too few personas to see anything."""


@runtime_checkable
class InFolder(Protocol):
    """Something with a folder, such as a `hallulab.Run`."""

    @property
    def path(self) -> Path:
        """The folder."""
        ...


@check_arguments
def assert_no_regression(
    run: InFolder | StrPath,
    against: StrPath,
    *,
    severity_guard: float | None = 5.0,
    max_hpt: float | None = None,
    min_coverage: float | None = None,
    require_calibrated: bool = False,
    planted: StrPath | None = None,
) -> GateResult:
    """Assert that `hallulab gate` lets a run pass, and return what it found.

    Args:
        run: the run, or its folder.
        against: a file of `hallulab compare --save`, or a run folder.
        severity_guard: severity from which a new hallucination fails; None: none does.
        max_hpt: highest HPT-1 of a chatbot under a detector.
        min_coverage: least share of a chatbot's turns that a detector scored.
        require_calibrated: whether sensitivity and specificity of each detector must be known.
        planted: JSON of `hallulab bench` on planted errors, from which they are known.

    Raises:
        AssertionError: the run is blocked, or cannot be compared; the message has the turns to look at.
        UsageError: an argument is wrong, or a file cannot be used.
    """
    __tracebackhide__ = True  # pytest shows the line of the test instead
    rules = GateRules(
        severity_guard=severity_guard,
        max_hpt=max_hpt,
        min_coverage=min_coverage,
        require_calibrated=require_calibrated,
        planted=to_path(planted),
    )
    folder = RunFolder(Path(run) if isinstance(run, str | Path) else run.path)
    result = gate_folder(folder, Path(against), rules)
    if result.verdict != "passed":
        raise AssertionError("\n".join(map(clean_for_terminal, _explain(result))))
    for warning in result.warnings:
        warnings.warn(warning, GateWarning, stacklevel=2)
    return result


def _explain(result: GateResult) -> Iterator[str]:
    yield result.headline
    yield from (f"  {reason}" for reason in result.reasons)
    yield from _list_turns("new severe hallucinations", [turn for turn in result.severe if not turn.noise])
    for kind in ("new", "worse"):
        yield from _list_turns(kind, [turn for turn in result.changed if turn.kind == kind])
    yield from (f"changed: {change}" for change in result.setup)
    yield from (f"warning: {warning}" for warning in result.warnings)


def _list_turns(heading: str, turns: list[ChangedTurn]) -> Iterator[str]:
    if turns:
        yield f"{heading}:"
        yield from (f"  {describe_turn(turn)}" for turn in turns[:SHOWN])
        if len(turns) > SHOWN:
            yield f"  and {len(turns) - SHOWN} more"
