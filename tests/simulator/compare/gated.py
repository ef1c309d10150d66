"""Runs and baselines in short hand, of chatbot `bot` under detector `d`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hallulab.scenarios.transcript import Span
from hallulab.simulator.compare.gate import judge_run
from hallulab.simulator.compare.gate_result import GateCheck, GateResult, GateRules, Rule
from hallulab.simulator.compare.summary import RunSummary
from tests.builders import conversation, scored
from tests.simulator.compare.made import found, summarized


def run_of(*counts: int | None, name: str = "now", reply: str = "one two", **setup: Any) -> RunSummary:
    """A run of a turn with each persona, with so many hallucinations; None: the detector failed."""
    return found(
        {"bot": {(f"p{number}", 0): [count] for number, count in enumerate(counts)}}, name, reply, **setup
    )


def rated(
    severities: Mapping[tuple[str, int], Sequence[Sequence[float]]], name: str = "now", reply: str = "one two"
) -> RunSummary:
    """A run in which each turn of a persona and seed has hallucinations of these severities."""
    chats, verdicts = [], []
    for (persona, seed), turns in severities.items():
        id = f"{name}-{persona}-{seed}"
        chats.append(conversation(id, [reply] * len(turns), "bot", persona, seed))
        for turn, grades in enumerate(turns):
            spans = tuple(Span(start=0, end=3, text="one", severity=grade) for grade in grades)
            verdicts.append(scored(id, turn, [(0, 3)] * len(grades)).model_copy(update={"spans": spans}))
    return summarized(chats, verdicts, name)


def judge(now: RunSummary, before: RunSummary, **rules: Any) -> GateResult:
    """The gate's answer; `rules` are fields of `GateRules`."""
    return judge_run(now, before, GateRules(**rules))


def checks_of(result: GateResult, rule: Rule) -> list[GateCheck]:
    """The checks of a rule."""
    return [check for check in result.checks if check.rule == rule]
