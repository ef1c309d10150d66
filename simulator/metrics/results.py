"""The rows of a report: hallucinations per turn and token accuracy of each chatbot under each detector.

A chatbot that is judged by the model that verifies its claims, or by the detector that guards it, is marked:
it has already removed what that model or detector objects to, so by it the chatbot looks better than it is.
With the same question, the model is even asked the same thing twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hallulab.agents.served_model import ClaimCheck, ClaimChecks
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.metrics.hallucinations import Row
from hallulab.simulator.metrics.metric import CsvTable, Metric, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.metrics.run_sums import RowSums
from hallulab.simulator.show.columns import (
    CHATBOT,
    DETECTOR,
    GROUPED,
    PERCENT,
    TWO_DECIMALS,
    Column,
    build_decimal_format,
    group_rows,
    is_lacking,
)
from hallulab.simulator.show.document import GroupedTable, Part
from hallulab.simulator.statistics.intervals import (
    compute_interval,
    compute_ratio_of_sums,
    explain_no_interval,
)


def mark_self_judged(rows: Sequence[Row], checks: ClaimChecks) -> tuple[Row, ...]:
    """Return the rows with `self_judged`, its degree and its reason; unchanged without both claim checks."""
    return tuple(
        _mark_row(row, checks.chatbots.get(row.chatbot), checks.detectors.get(row.detector)) for row in rows
    )


def _mark_row(row: Row, verifying: ClaimCheck | None, judging: ClaimCheck | None) -> Row:
    if verifying is None or judging is None:
        return row
    if not set(verifying.methods).isdisjoint(judging.methods):
        reason = f"{row.chatbot} is guarded by the detector by which {row.detector} judges"
        return row.model_copy(
            update={"self_judged": True, "self_judged_degree": "own guard", "self_judged_reason": reason}
        )
    shared = [model for model in verifying.models if model in judging.models]
    if not shared:
        return row.model_copy(update={"self_judged": False})
    same_question = not set(verifying.prompts.values()).isdisjoint(judging.prompts.values())
    question = ""
    if judging.prompts:
        question = f", asking {'the same question' if same_question else 'other questions'}"
    return row.model_copy(
        update={
            "self_judged": True,
            "self_judged_degree": "same model and same question" if same_question else "same model",
            "self_judged_reason": (
                f"{row.chatbot} verifies its claims with {', '.join(shared)}, "
                f"by which {row.detector} judges, too{question}"
            ),
        }
    )


SIGNS = {"same model": "†", "same model and same question": "‡", "own guard": "§"}
"""Sign behind a chatbot's name, by degree."""


def mark(row: Row) -> str:
    """Return the sign of a row, or nothing."""
    return SIGNS.get(row.self_judged_degree or "", "")


def explain_sign(row: Row) -> tuple[str, str]:
    """Return the sign of a row and its reason; empty where it has none."""
    return mark(row), row.self_judged_reason or ""


def explain_self_judging(rows: Sequence[Row]) -> list[str]:
    """Explain the sign of each chatbot that has one."""
    judges: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.self_judged:
            judges.setdefault((mark(row), row.chatbot), []).append(row.detector)
    return [_note(sign, chatbot, detectors) for (sign, chatbot), detectors in judges.items()]


def _note(sign: str, chatbot: str, detectors: Sequence[str]) -> str:
    one, names = len(detectors) == 1, " and ".join(detectors)
    if sign == SIGNS["own guard"]:
        return (
            f"{sign} {names} also {'guards' if one else 'guard'} {chatbot}, which has already removed what "
            "its guard objects to. Another detector ends that (docs/safeguards.md)."
        )
    same = ", by the same question" if sign == SIGNS["same model and same question"] else ""
    return (
        f"{sign} The model by which {names} {'judges' if one else 'judge'} also verifies what {chatbot} "
        f"says{same}: such a judgement may favour it. To avoid that, give one of the two a second model "
        "(docs/experiment.md, `Not one's own judge`)."
    )


def build_rows(found: Mapping[tuple[str, str], RowSums]) -> tuple[Row, ...]:
    """Make a row of the sums of each chatbot under each detector."""
    return tuple(_build_row(chatbot, detector, sums) for (chatbot, detector), sums in found.items())


def _build_row(chatbot: str, detector: str, sums: RowSums) -> Row:
    hpt_ci95, tokacc_ci95 = compute_interval(sums.hpts, "rate"), compute_interval(sums.tokaccs, "share")
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
        answered=_divide(counts["answers"], counts["answers"] + counts["declines"]),
        tokens=counts["tokens"],
        calls=cost.calls,
        prompt_tokens=cost.prompt_tokens,
        completion_tokens=cost.completion_tokens,
        seconds=cost.seconds,
    )


def _divide(total: float, number: int) -> float | None:
    """Return a mean to 6 decimals; None without values."""
    return round(total / number, 6) if number else None


HPT = "hallucinations over scored turns, all conversations together"
TOKACC = "share of the replies' tokens outside every flagged span, all conversations together"
_MEAN = "the same for each conversation, then the mean"
COLUMNS = (
    replace(CHATBOT, sign=explain_sign),
    DETECTOR,
    Column("Calls / reply", "calls_per_reply", "model calls of the chatbot a turn", build_decimal_format(1),
           short="Calls/\nreply"),
    Column("Tokens / reply", "tokens_per_reply",
           "prompt and completion tokens of the chatbot per turn, cached ones included; a dash if the "
           "server reports none", GROUPED),
    Column("HPT-1", "hpt_1", HPT, TWO_DECIMALS, beside="hpt_1_ci95", short="HPT-1"),
    Column("HPT-2", "hpt_2", _MEAN, TWO_DECIMALS, short="HPT-2"),
    Column("TokAcc-1 %", "tokacc_1", TOKACC, build_decimal_format(1, 100), beside="tokacc_1_ci95",
           short="TokAcc-1 %"),
    Column("TokAcc-2 %", "tokacc_2", _MEAN, build_decimal_format(1, 100), short="TokAcc\n-2 %"),
    Column("Chats with hallucination %", "hallucinated_chats",
           "share of the scored conversations with a hallucination", PERCENT, short="Halluc.\nchats %"),
    Column("Coverage %", "coverage", "share of the turns that the detector scored with places", PERCENT,
           short="Cov.\n%", warns=is_lacking),
    Column("Scored turns", "scored_turns", "these turns, the basis of all numbers"),
    Column("of", "turns", "all turns of the chatbot's conversations"),
    Column("Personas", "personas", "personas of these conversations; intervals are over them"),
)  # fmt: skip

FIRST_COLUMNS = (
    *(column for column in COLUMNS if column.value in ("chatbot", "detector", "hpt_1")),
    Column("Answered %", "answered", "share of the replies that answer or decline that answers", PERCENT),
    *(column for column in COLUMNS if column.value == "coverage"),
)
"""The columns that a page shows first; the others are folded away."""


class ResultSection(Frozen):
    """Fields of `report.json`."""

    rows: tuple[Row, ...]
    """Each chatbot under each detector."""


class ResultMetric(Metric):
    """Shows the rows. The page has them first, with the charts, so this is no section of its own."""

    SECTION = ResultSection
    TABLES = (("Results", COLUMNS),)
    ORDER = TERMINAL_ORDER = 10

    def result(self, tallied: Tallied) -> ResultSection:
        """Return the rows."""
        return ResultSection(rows=tallied.rows)

    @classmethod
    def notes(cls, report: RunReport) -> Sequence[str]:
        """Explain the signs of chatbots that are judged by their own verifier or guard."""
        return explain_self_judging(report.rows)

    @classmethod
    def tables(cls, report: RunReport) -> Sequence[Part]:
        """Return the table."""
        groups = group_rows(report.rows, "detector", report.detectors)
        return (GroupedTable(COLUMNS, groups, by="detector"),)

    @classmethod
    def beside(cls, report: RunReport) -> CsvTable:
        """Return the rows themselves."""
        return CsvTable(COLUMNS, report.rows)
