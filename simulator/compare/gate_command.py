"""The gate as a command, and as an assertion for tests."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from hallulab.scenarios.arguments import check_arguments
from hallulab.scenarios.files.atomic import write_together
from hallulab.scenarios.text.wording import clean_for_terminal
from hallulab.simulator.compare.gate import gate_folder
from hallulab.simulator.compare.gate_document import build_document, describe_turn, render_junit
from hallulab.simulator.compare.gate_result import GateResult, GateRules, read_severity
from hallulab.simulator.compare.turns import ChangedTurn
from hallulab.simulator.options.commands import GateOptions
from hallulab.simulator.options.groups import StrPath, to_path
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.outputs import check_outputs
from hallulab.simulator.show.markdown import render_markdown

SHOWN = 5
"""Most turns of each kind in the message of a failure."""


class GateWarning(UserWarning):
    """A limit of a gate's verdict, such as too few personas to detect anything."""


@runtime_checkable
class InFolder(Protocol):
    """Something with a folder, such as a `hallulab.Run`."""

    @property
    def path(self) -> Path:
        """The folder."""
        ...


def gate_from_options(options: GateOptions) -> GateResult:
    """Judge a run by a baseline, and write what was asked for.

    Raises:
        UsageError: an option is wrong, or a file cannot be used.
        OperationalError: an output cannot be written; no one is then.
    """
    files = {
        "--markdown": to_path(options.markdown),
        "--junit": to_path(options.junit),
        "--json": to_path(options.json_file),
    }
    folder, baseline, planted = RunFolder(Path(options.run)), Path(options.against), to_path(options.planted)
    rules = GateRules(
        severity_guard=read_severity(options.severity_guard),
        max_hpt=options.max_hpt,
        min_coverage=options.min_coverage,
        min_answered=options.min_answered,
        require_calibrated=options.require_calibrated,
        planted=planted,
    )
    check_outputs(files, inputs=[*folder.files, baseline, planted])
    result = gate_folder(folder, baseline, rules)
    document = build_document(result)
    texts = {
        "--markdown": render_markdown(document),
        "--junit": render_junit(result),
        "--json": f"{result.model_dump_json(indent=2)}\n",
    }
    wanted = {path: texts[flag] for flag, path in files.items() if path is not None}
    if wanted:
        write_together(wanted)
    return result


@check_arguments
def assert_no_regression(
    run: InFolder | StrPath,
    against: StrPath,
    *,
    severity_guard: float | None = 5.0,
    max_hpt: float | None = None,
    min_coverage: float | None = None,
    min_answered: float | None = None,
    require_calibrated: bool = False,
    planted: StrPath | None = None,
) -> GateResult:
    """Assert that `hallulab gate` lets a run pass, and return what it found.

    Args:
        against: a file of `hallulab compare --save`, or a run folder.
        severity_guard: severity from which a new hallucination fails; None: none does.
        max_hpt: highest HPT-1 of a chatbot under a detector.
        min_coverage: least share of a chatbot's turns that a detector scored.
        min_answered: least share of a chatbot's replies that answer; one that fell against the baseline,
            beyond the noise, fails in any case.
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
        min_answered=min_answered,
        require_calibrated=require_calibrated,
        planted=to_path(planted),
    )
    folder = RunFolder(Path(run) if isinstance(run, str | Path) else run.path)
    result = gate_folder(folder, Path(against), rules)
    if result.verdict != "passed":
        lines = [result.headline, *(f"  {reason}" for reason in result.reasons)]
        severe = [turn for turn in result.severe if not turn.noise]
        lines += _list_turns("new severe hallucinations", severe)
        for kind in ("new", "worse"):
            lines += _list_turns(kind, [turn for turn in result.changed if turn.kind == kind])
        lines += [f"changed: {change}" for change in result.setup]
        lines += [f"warning: {warning}" for warning in result.warnings]
        raise AssertionError("\n".join(map(clean_for_terminal, lines)))
    for warning in result.warnings:
        warnings.warn(warning, GateWarning, stacklevel=2)
    return result


def _list_turns(heading: str, turns: list[ChangedTurn]) -> Iterator[str]:
    if turns:
        yield f"{heading}:"
        yield from (f"  {describe_turn(turn)}" for turn in turns[:SHOWN])
        if len(turns) > SHOWN:
            yield f"  and {len(turns) - SHOWN} more"
