"""The checks of a gate on answered replies: a bot that declines more hallucinates less, and helps less.

The test is that of `hallulab.simulator.compare.gate`, on the share of answered replies. This is the same
under each detector, so Holm's correction is over chatbots, apart from that of hallucinations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hallulab.scenarios.text.wording import format_count
from hallulab.simulator.compare.differences import DifferenceLine, find_harm
from hallulab.simulator.compare.gate_checks import RECREATE, LineKey, Totals
from hallulab.simulator.compare.gate_result import LEVEL, GateCheck, Outcome, describe_pairs


@dataclass(frozen=True)
class AnsweredLine:
    """The answered replies of a chatbot, now and in the baseline."""

    line: DifferenceLine
    """Their share among those that answer or decline."""
    personas_needed: int
    """Pairs below which the test of so many chatbots cannot find anything."""
    p_less: float | None
    """One-sided paired test by flipped signs, after Holm over the chatbots; None: there is none."""


def compare_answered(differences: Sequence[DifferenceLine]) -> dict[str, AnsweredLine]:
    """Compare the answered replies of each chatbot that both runs have, in the order of the differences."""
    compared = {line.chatbot: line for line in differences if line.metric == "answered"}
    needed, harm = find_harm([*compared.values()])
    return {
        chatbot: AnsweredLine(line, needed, p_less)
        for (chatbot, line), p_less in zip(compared.items(), harm, strict=True)
    }


def check_answered(
    lines: Mapping[str, AnsweredLine], totals: Mapping[LineKey, Totals]
) -> Iterator[GateCheck]:
    """Yield a check for each chatbot: whether it answers less than in the baseline, beyond the noise."""
    turns = {chatbot: own.turns for (chatbot, _), own in totals.items()}
    for chatbot, answered in lines.items():
        line, needed, p = answered.line, answered.personas_needed, answered.p_less
        outcome: Outcome = "not tested"
        if line.before is None:
            said = (
                "the baseline does not say which replies answer (a language without rules, or a file of "
                f"an earlier version: {RECREATE})"
            )
        elif line.after is None and turns[chatbot]:
            outcome, said = (
                "not comparable",
                f"answered {line.before:.1%} of replies; now the rules read none",
            )
        elif line.pairs < needed or line.after is None or p is None:
            said = f"cannot detect fewer answers: {describe_pairs(line.pairs, needed)}"
        else:
            outcome = "failed" if p < LEVEL else "passed"
            said = (
                f"answered {line.before:.1%} → {line.after:.1%} of replies on "
                f"{format_count(line.pairs, 'persona')}, p = {p:.2g}; below {LEVEL:g} blocks"
            )
        yield GateCheck(rule="answered", chatbot=chatbot, outcome=outcome, message=said)


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
