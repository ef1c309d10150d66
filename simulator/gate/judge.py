"""Hold a run against a baseline, and say whether it may pass."""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.scenarios.text.wording import format_count
from hallulab.simulator.compare.runs import compare_runs
from hallulab.simulator.compare.sentences import render_changes
from hallulab.simulator.compare.summary import RunSummary
from hallulab.simulator.gate.lines import LEVEL, build_lines
from hallulab.simulator.gate.refusals import check_calibrated, check_comparable
from hallulab.simulator.gate.result import GateCheck, GateLine, GateResult, conclude
from hallulab.simulator.gate.rules import GateRules
from hallulab.simulator.gate.severity import check_severe, find_severe
from hallulab.simulator.gate.totals import check_limits, count_totals
from hallulab.simulator.gate.warnings import describe_blindness, list_warnings


def judge_run(now: RunSummary, before: RunSummary, rules: GateRules) -> GateResult:
    """Hold a run against a baseline.

    Args:
        now: the run.
        before: the baseline.
        rules: what is asked beside a regression.

    Raises:
        UsageError: the file of planted errors cannot be used, or a run has two conversations of a chatbot
            with the same scenario, persona and seed.
    """
    old_totals, totals = count_totals(before), count_totals(now)
    [compared] = compare_runs([before, now]).runs
    lines = build_lines(compared.differences, old_totals, totals)
    changed = compared.turns.turns
    guard = rules.severity_guard
    severe = () if guard is None else find_severe(before, now, guard, lines)
    checks: Sequence[GateCheck] = [
        *check_comparable(before, now, compared, lines, old_totals, totals),
        *(check_calibrated(now, rules.planted) if rules.require_calibrated else ()),
        *map(_check_worse, lines),
        *(check_severe((before, now), guard, lines, severe) if guard is not None else ()),
        *check_limits(totals, rules),
    ]
    return GateResult(
        verdict=conclude(checks),
        run=now.name,
        baseline=before.name,
        lines=lines,
        checks=tuple(checks),
        severe=severe,
        changed=changed,
        setup=tuple(render_changes(compared.changes)),
        warnings=tuple(list_warnings(before, now, lines, severe, compared.turns)),
    )


def _check_worse(line: GateLine) -> GateCheck:
    is_worse = line.p_worse is not None and line.p_worse < LEVEL
    if line.is_blind or line.before is None or line.now is None or line.p_worse is None:
        found = f"cannot see a regression: {describe_blindness(line)}"
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
