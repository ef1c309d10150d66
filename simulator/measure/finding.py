"""Which chatbot hallucinates least under a detector, as far as the paired tests say."""

from __future__ import annotations

from collections.abc import Sequence

from scenarios.transcript import Frozen
from simulator.measure.compare import Comparison, paired_ratios
from simulator.measure.metrics import Row, Tallies
from simulator.measure.sample_size import ALPHA, least_pairs, pairs_needed


class Finding(Frozen):
    """What one detector says of all chatbots: an item of `findings` in `report.json`."""

    detector: str
    """Who judged."""
    compared: int
    """Chatbots with a scored turn."""
    not_scored: tuple[str, ...]
    """The others: of these nothing can be said."""
    best: str | None = None
    """The chatbot whose HPT-1 is below that of every other one, each time with p < 0.05 by the paired
    permutation test after Holm; None where there is none, or anything was not scored."""
    undecided: tuple[str, ...] = ()
    """The chatbot with the lowest HPT-1, and of those that the test does not tell from it the one with the
    next lowest, in the order of the rows; empty where there is no such pair."""
    pairs: int | None = None
    """Conversations that these two can be compared on."""
    difference: float | None = None
    """How far their HPT-1 are apart on those."""
    conversations_needed: int | None = None
    """Conversations of each chatbot that would tell these two apart with a chance of 80%: see
    `sample_size.pairs_needed`. Not fewer than `least_conversations`, and more than the test had."""
    not_estimated: str | None = None
    """Why that cannot be estimated."""
    least_conversations: int
    """Conversations of each chatbot without which no test of so many chatbots can find anything."""


def findings(tallies: Tallies, rows: Sequence[Row], comparisons: Sequence[Comparison]) -> tuple[Finding, ...]:
    """A finding for every detector, in the order of the rows.

    The two chatbots that the number of conversations is estimated for are the lowest and the runner-up, since
    as a rule that pair needs most. Ties go to the one that comes first.

    Args:
        rows: of these tallies.
        comparisons: of these tallies.
    """
    return tuple(
        _finding(
            detector,
            tallies,
            [row for row in rows if row.detector == detector],
            [line for line in comparisons if line.detector == detector and line.metric == "hpt_1"],
        )
        for detector in dict.fromkeys(row.detector for row in rows)
    )


def _finding(
    detector: str, tallies: Tallies, rows: Sequence[Row], comparisons: Sequence[Comparison]
) -> Finding:
    rates = {row.chatbot: row.hpt_1 for row in rows if row.hpt_1 is not None}
    not_scored = tuple(row.chatbot for row in rows if row.hpt_1 is None)
    least = least_pairs(len(comparisons))
    finding = Finding(
        detector=detector, compared=len(rates), not_scored=not_scored, least_conversations=least
    )
    if len(rates) < 2:
        return finding
    lowest, *others = sorted(rates, key=lambda name: rates[name])
    undecided = [name for name in others if not _below(lowest, name, comparisons)]
    if not undecided:
        return finding if not_scored else finding.model_copy(update={"best": lowest})
    runner_up = undecided[0]
    first, second = paired_ratios(tallies[lowest, detector], tallies[runner_up, detector], "hpt_1")
    line = next(item for item in comparisons if {item.a, item.b} == {lowest, runner_up})
    estimate = pairs_needed(first, second)
    return finding.model_copy(
        update={
            "undecided": tuple(name for name in rates if name in (lowest, runner_up)),
            "pairs": line.pairs,
            "difference": None if line.difference is None else abs(line.difference),
            "conversations_needed": (
                None if estimate.pairs is None else max(estimate.pairs, least, line.pairs + 1)
            ),
            "not_estimated": estimate.reason,
        }
    )


def _below(lower: str, higher: str, comparisons: Sequence[Comparison]) -> bool:
    """Whether the test says that one chatbot's HPT-1 is below another's."""
    line = next(item for item in comparisons if {item.a, item.b} == {lower, higher})
    if line.p_holm is None or line.difference is None or line.p_holm >= ALPHA:
        return False
    return line.difference < 0 if line.a == lower else line.difference > 0
