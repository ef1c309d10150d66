"""Tables of a comparison of runs, as terminal, page and Markdown show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hallulab.scenarios.text.wording import format_number
from hallulab.simulator.compare.differences import DifferenceLine
from hallulab.simulator.compare.runs import RunCompared
from hallulab.simulator.compare.sentences import build_signed_format
from hallulab.simulator.compare.turns import ChangedTurn, FoundInTurn
from hallulab.simulator.metrics.pairs import RateName
from hallulab.simulator.show.columns import (
    CHATBOT,
    DETECTOR,
    GROUPED,
    PERCENT,
    TWO_DECIMALS,
    Column,
    build_decimal_format,
    format_p,
    is_lacking,
)


@dataclass(frozen=True)
class DifferenceRow:
    """A chatbot under a detector: a row of the table of differences."""

    chatbot: str
    detector: str
    hpt_1: DifferenceLine
    """The difference of HPT-1."""
    tokacc_1: DifferenceLine
    """That of TokAcc-1."""

    @property
    def how(self) -> str:
        """How the personas are compared."""
        if not self.hpt_1.paired:
            return "unpaired"
        return "paired" if self.hpt_1.same_seeds else "paired, other seeds"


_FLOOR = (
    "how far two halves of one run differ that have the same personas and other seeds, the mean of the runs; "
    "none where a persona has one seed"
)
_TOKACC = build_decimal_format(1, 100)
DIFFERENCES = (
    CHATBOT,
    DETECTOR,
    Column("Personas", "hpt_1.personas", "personas that are compared; intervals resample these",
           short="Perso-\nnas"),
    Column("How", "how", "paired: each persona with itself, all its seeds together; unpaired: both runs have "
           "other personas", kind="text", short="How", wide=True),
    Column("HPT-1 before", "hpt_1.before", "hallucinations per scored turn in the reference, with these "
           "personas", TWO_DECIMALS, short="HPT-1\nbefore"),
    Column("after", "hpt_1.after", "the same in the run", TWO_DECIMALS, short="after"),
    Column("Δ HPT-1", "hpt_1.difference", "after minus before: above 0, the run hallucinates more",
           build_signed_format(2), beside="hpt_1.ci95", short="Δ HPT-1"),
    Column("p (Holm)", "hpt_1.p_holm", "permutation test, adjusted by Holm over all lines", format_p,
           short="p\n(Holm)"),
    Column("Noise floor", "hpt_1.floor", _FLOOR, TWO_DECIMALS, short="Floor", wide=True),
    Column("TokAcc-1 before %", "tokacc_1.before", "share of reply tokens outside every flagged span",
           _TOKACC),
    Column("after %", "tokacc_1.after", "the same in the run", _TOKACC),
    Column("Δ TokAcc-1, points", "tokacc_1.difference", "after minus before: below 0, the run is worse",
           build_signed_format(1, 100), beside="tokacc_1.ci95", short="Δ TokAcc\npoints"),
    Column("p (Holm)", "tokacc_1.p_holm", "permutation test, adjusted by Holm over all lines", format_p,
           short="p\n(Holm)"),
    Column("Noise floor, points", "tokacc_1.floor", _FLOOR, _TOKACC),
)  # fmt: skip
"""For `build_difference_rows`."""

TURNS = (
    CHATBOT,
    DETECTOR,
    Column("Judged in both", "compared", "turns of the same persona, seed and number that are judged in both "
           "runs", short="Judged\nin both"),
    Column("Same reply", "same_reply", "those with the same message, reply, passages and history",
           short="Same\nreply"),
    Column("New", "new", "hallucinated now and not before, or not judged before, or not there",
           short="New"),
    Column("Gone", "gone", "hallucinated before and not now", short="Gone"),
    Column("Worse", "worse", "hallucinated in both, with a higher severity, or else more hallucinations",
           short="Worse"),
    Column("Better", "better", "hallucinated in both, with a lower severity, or else fewer hallucinations",
           short="Better"),
    Column("By noise", "by_noise", "changes of these four kinds among the turns with the same reply: the "
           "detector's noise", short="By\nnoise"),
    Column("Not judged", "unjudged", "hallucinated before, and not judged now or not there",
           short="Not\njudged", warns=bool),
)  # fmt: skip

COVERAGE = (
    CHATBOT,
    DETECTOR,
    Column("Before %", "before.share", "share of the turns that the detector scored and said where, in the "
           "reference", PERCENT, short="Coverage\nbefore %", warns=is_lacking),
    Column("After %", "after.share", "the same in the run", PERCENT, short="after %", warns=is_lacking),
    Column("Scored before", "before.scored", "these turns", short="Scored\nbefore"),
    Column("After", "after.scored", "the same in the run", short="after"),
    Column("Failed before", "before.failed", "turns on which the detector failed", short="Failed\nbefore"),
    Column("After", "after.failed", "the same in the run", short="after"),
    Column("Abstained before", "before.abstained", "turns on which it abstained"),
    Column("After", "after.abstained", "the same in the run"),
    Column("Missing before", "before.missing", "turns without a verdict", short="Missing\nbefore"),
    Column("After", "after.missing", "the same in the run", short="after"),
)  # fmt: skip
"""For `RunCompared.coverage`."""

_ONE = build_decimal_format(1)
COSTS = (
    Column("What", "role", "chatbot or detector", kind="text", short="What", wide=True),
    Column("Name", "name", "its name", kind="name", short="Name"),
    Column("Calls before", "before.calls", "mean number of model calls a conversation, in the reference",
           _ONE, short="Calls\nbefore"),
    Column("After", "after.calls", "the same in the run", _ONE, short="after"),
    Column("Tokens before", "before.tokens", "mean of tokens read and written a conversation; a dash "
           "where the server did not tell those of an answered call", GROUPED, short="Tokens\nbefore"),
    Column("After", "after.tokens", "the same in the run", GROUPED, short="after"),
    Column("Seconds before", "before.seconds", "mean sum of latencies a conversation", _ONE,
           short="Seconds\nbefore"),
    Column("After", "after.seconds", "the same in the run", _ONE, short="after"),
)  # fmt: skip
"""For `RunCompared.costs`: of a conversation, on average."""


def build_difference_rows(run: RunCompared) -> list[DifferenceRow]:
    """Return the rows of the table of differences."""
    lines: dict[tuple[str, str], dict[RateName, DifferenceLine]] = {}
    for line in run.differences:
        lines.setdefault((line.detector, line.chatbot), {})[line.metric] = line
    return [
        DifferenceRow(chatbot, detector, both["hpt_1"], both["tokacc_1"])
        for (detector, chatbot), both in lines.items()
    ]


def group_by_detector(rows: Sequence[Any]) -> list[list[Any]]:
    """Return the rows in groups by detector."""
    names = list(dict.fromkeys(row.detector for row in rows))
    return [[row for row in rows if row.detector == name] for name in names]


def has_gaps(run: RunCompared) -> bool:
    """Return whether something was not judged in either run."""
    return any(is_lacking(side.share) for line in run.coverage for side in (line.before, line.after))


def render_change_of_turn(turn: ChangedTurn) -> str:
    """Say what a detector found before and after: `1 hallucination → 2 hallucinations, severity 4`."""
    return f"{_render_found(turn.before)} → {_render_found(turn.after)}"


def _render_found(found: FoundInTurn) -> str:
    if found.outcome == "missing":
        return "no verdict"
    if not found.judged:
        return str(found.outcome)
    if not found.hallucinated:
        return "clean"
    spans = "flagged" if not found.spans else f"{found.spans} hallucination{'s' if found.spans > 1 else ''}"
    return spans if found.severity is None else f"{spans}, severity {format_number(found.severity, 0)}"
