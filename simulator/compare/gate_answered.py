"""The checks of a gate on answered replies: a bot that declines more hallucinates less, and helps less.

The test is that of `hallulab.simulator.compare.gate`, on the share of answered replies. This is the same
under each detector, so Holm's correction is over chatbots, apart from that of hallucinations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hallulab.scenarios.text.wording import format_count
from hallulab.simulator.compare.differences import DifferenceLine
from hallulab.simulator.compare.gate_checks import RECREATE, LineKey, Totals
from hallulab.simulator.compare.gate_result import LEVEL, GateCheck, describe_pairs
from hallulab.simulator.statistics.differences import adjust_by_holm
from hallulab.simulator.statistics.planning import compute_least_pairs


@dataclass(frozen=True)
class AnsweredLine:
    """The answered replies of a chatbot, now and in the baseline."""

    personas: int
    """Pairs of the test; 0 where there is none."""
    personas_needed: int
    """Pairs below which the test of so many chatbots cannot find anything."""
    before: float | None
    """Share of answered replies in the baseline, on these personas; None: no reply answers or declines."""
    now: float | None
    p_less: float | None
    """One-sided paired test by flipped signs, after Holm over the chatbots; None: there is none."""


def compare_answered(differences: Sequence[DifferenceLine]) -> dict[str, AnsweredLine]:
    """Compare the answered replies of each chatbot that both runs have, in the order of the differences."""
    compared = list({line.chatbot: line for line in differences if line.metric == "answered"}.values())
    halves = [line.halve_p() for line in compared]
    needed = compute_least_pairs(max(1, sum(half is not None for half in halves)))
    return {
        line.chatbot: AnsweredLine(
            personas=line.personas if line.paired else 0,
            personas_needed=needed,
            before=line.before,
            now=line.after,
            p_less=p_less,
        )
        for line, p_less in zip(compared, adjust_by_holm(halves), strict=True)
    }


def check_answered(
    lines: Mapping[str, AnsweredLine], totals: Mapping[LineKey, Totals]
) -> Iterator[GateCheck]:
    """Yield a check for each chatbot: whether it answers less than in the baseline, beyond the noise."""
    turns = {chatbot: own.turns for (chatbot, _), own in totals.items()}
    for chatbot, line in lines.items():
        if line.before is None:
            found = (
                "the baseline does not say which replies answer (a language without rules, or a file of "
                f"an earlier version: {RECREATE})"
            )
            yield GateCheck(rule="answered", chatbot=chatbot, outcome="not tested", message=found)
        elif line.now is None and turns[chatbot]:
            found = f"answered {line.before:.1%} of replies; now the rules read none"
            yield GateCheck(rule="answered", chatbot=chatbot, outcome="not comparable", message=found)
        else:
            yield _check_line(chatbot, line)


def _check_line(chatbot: str, line: AnsweredLine) -> GateCheck:
    is_blind = line.personas < line.personas_needed
    if is_blind or line.before is None or line.now is None or line.p_less is None:
        found = f"cannot detect fewer answers: {describe_pairs(line.personas, line.personas_needed)}"
        return GateCheck(rule="answered", chatbot=chatbot, outcome="not tested", message=found)
    return GateCheck(
        rule="answered",
        chatbot=chatbot,
        outcome="failed" if line.p_less < LEVEL else "passed",
        message=f"answered {line.before:.1%} → {line.now:.1%} of replies on "
        f"{format_count(line.personas, 'persona')}, p = {line.p_less:.2g}; below {LEVEL:g} blocks",
    )


def check_least_answered(totals: Mapping[LineKey, Totals], least: float) -> Iterator[GateCheck]:
    """Yield a check for each chatbot of the run: whether it answers at least this share of replies."""
    for chatbot, own in {chatbot: own for (chatbot, _), own in totals.items()}.items():
        share = own.answered
        said = "unknown, the rules read no reply" if share is None else f"{share:.1%}"
        yield GateCheck(
            rule="min-answered",
            chatbot=chatbot,
            outcome="not comparable" if share is None else "failed" if share < least else "passed",
            message=f"answered {said}; at least {least:.1%} is needed",
        )
