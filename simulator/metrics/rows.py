"""Make the rows of a report of what was added up."""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.simulator.metrics.hallucinations import Row, Tally
from hallulab.simulator.metrics.run_sums import RowSums, RunSums, sum_tallies
from hallulab.simulator.statistics.intervals import (
    Interval,
    compute_intervals,
    compute_ratio_of_sums,
    explain_no_interval,
)


def build_row(chatbot: str, detector: str, tallies: Sequence[Tally]) -> Row:
    """Add up the tallies of one chatbot under one detector; a denominator of 0 gives None."""
    return build_rows(sum_tallies({(chatbot, detector): tallies}))[0]


def build_rows(sums: RunSums) -> tuple[Row, ...]:
    """Make a row for every chatbot under every detector, of all conversations."""
    return _build_all(sums.rows)


def build_sound_rows(sums: RunSums) -> tuple[Row, ...]:
    """Make the same rows without conversations in which the simulated user has a flaw."""
    return _build_all(sums.sound)


def _build_all(found: dict[tuple[str, str], RowSums]) -> tuple[Row, ...]:
    ci95 = compute_intervals([sample for sums in found.values() for sample in (sums.hpts, sums.tokaccs)])
    return tuple(
        _build_row(chatbot, detector, sums, ci95[2 * place], ci95[2 * place + 1])
        for place, ((chatbot, detector), sums) in enumerate(found.items())
    )


def _build_row(chatbot: str, detector: str, sums: RowSums, hpt_ci95: Interval, tokacc_ci95: Interval) -> Row:
    counts, cost = sums.counts, sums.spending.total()
    turns, scored = counts["turns"], counts["scored_turns"]
    told = turns and not counts["chatbot_untold"]
    undecided = counts["failed"] + counts["abstained"] + counts["not_localised"]
    return Row(
        chatbot=chatbot,
        detector=detector,
        conversations=sums.conversations,
        scored_conversations=sums.scored,
        personas=sums.personas,
        turns=turns,
        scored_turns=scored,
        coverage=scored / turns if turns else None,
        failed=counts["failed"],
        abstained=counts["abstained"],
        not_localised=counts["not_localised"],
        missing=turns - scored - undecided,
        hallucinations=counts["hallucinations"],
        unlocated=counts["unlocated"],
        hallucinated_chats=_divide(sums.hallucinated, sums.scored),
        calls_per_reply=counts["chatbot_calls"] / turns if turns else None,
        tokens_per_reply=counts["chatbot_tokens"] / turns if told else None,
        hpt_1=compute_ratio_of_sums(sums.hpts),
        hpt_1_ci95=hpt_ci95,
        seed_share=sums.seed_share(),
        hpt_2=_divide(sums.hpt.value(), sums.scored),
        tokacc_1=compute_ratio_of_sums(sums.tokaccs),
        tokacc_1_ci95=tokacc_ci95,
        no_interval=explain_no_interval(sums.personas, found={"HPT-1": hpt_ci95, "TokAcc-1": tokacc_ci95}),
        tokacc_2=_divide(sums.tokacc.value(), sums.worded),
        tokens=counts["tokens"],
        calls=cost.calls,
        prompt_tokens=cost.prompt_tokens,
        completion_tokens=cost.completion_tokens,
        seconds=cost.seconds,
    )


def _divide(total: float, number: int) -> float | None:
    """Return a mean to 6 decimals; None without values."""
    return round(total / number, 6) if number else None
