"""Actions of guarded chatbots and their costs: counted from the records in the journal (MetaRAG section 3.6).

A refusal holds no hallucination, but no answer either. So the share of refusals stands beside every HPT, and
the detectors' HPT is also given over the replies that were not refused.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from hallulab.chatbots.guarded.record import CALLS, Attempt, GuardRecord, record_of
from hallulab.scenarios.text.wording import choose_noun
from hallulab.scenarios.transcript import Conversation, Frozen
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.metric import Flaws, RunFacts, TableMetric, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.metrics.spending import Spending, sum_calls
from hallulab.simulator.show.columns import GROUPED, PERCENT, TWO_DECIMALS, Column, build_decimal_format
from hallulab.simulator.show.document import GAP, GroupedTable, Part
from hallulab.simulator.statistics.intervals import Rounded


class Safeguards(Frozen):
    """A guarded chatbot under a detector of the run: a line of `safeguards` in `report.json`."""

    chatbot: str
    detector: str
    replies: int
    flagged: int
    unjudged: int
    again: int
    cured: int
    abstained: int
    human: int
    refused: int
    """Those for which the user got no answer of the bot."""
    refused_share: Rounded | None
    judged_drafts: int
    """First drafts of replies that were shown, as far as the guard scored and localised them."""
    hpt_before: Rounded | None
    judged_shown: int
    """Replies of the bot that were shown, as far as the guard scored and localised them."""
    hpt_after: Rounded | None
    answers: int
    hpt_answers: Rounded | None
    calls_per_reply: Rounded | None
    tokens_per_reply: Rounded | None
    """Tokens of these calls over the replies; None when those of an answered call are not known."""
    seconds_per_reply: Rounded | None


COLUMNS = (
    Column("Chatbot", "chatbot", "name of the guarded chatbot", kind="name", short="Guarded\nchatbot"),
    Column("Replies", "replies", "replies that went through its guard", GROUPED,
           short="Replies"),
    Column("Flagged", "flagged", "replies whose first draft its guard flagged", GROUPED,
           short="Flag-\nged"),
    Column("Not judged", "unjudged", "replies whose first draft the guard could not judge; never clean",
           GROUPED, short="Not\njudged", warns=bool),
    Column("Made again", "again", "flagged replies that the wrapped chatbot made again",
           GROUPED,
           short="Made\nagain"),
    Column("Cured", "cured", "replies that were not flagged any more when made again", GROUPED,
           short="Cured"),
    Column("Abstained", "abstained", "replies withheld without calling a human", GROUPED,
           short="Abst."),
    Column("To a human", "human", "replies handed to a human", GROUPED, short="Human"),
    Column("Refused %", "refused_share", "share of the replies for which the user got no answer", PERCENT,
           short="Ref.\n%", warns=bool),
    Column("HPT before, by guard", "hpt_before",
           "spans that the guard flagged in first drafts of shown replies, over the drafts scored with "
           "places", TWO_DECIMALS, short="HPT\nbefore"),
    Column("HPT after, by guard", "hpt_after", "the same in the shown replies; both without refusals",
           TWO_DECIMALS, short="HPT\nafter"),
    Column("Detector", "detector", "detector of the run that judges what was shown", kind="text",
           short="Detector", wide=True),
    Column("HPT of answers", "hpt_answers",
           "the detector's hallucinations over its scored turns, without refusals", TWO_DECIMALS,
           short="HPT of\nanswers"),
    Column("of turns", "answers", "these turns", GROUPED),
    Column("Extra calls / reply", "calls_per_reply",
           "model calls of the guard and of replies made again, per reply", build_decimal_format(1),
           short="Extra\ncalls"),
    Column("Extra tokens / reply", "tokens_per_reply",
           "prompt and completion tokens of these calls, per reply; a dash if unreported", GROUPED,
           short="Extra\ntokens"),
    Column("Extra seconds / reply", "seconds_per_reply", "latencies of these calls, per reply",
           build_decimal_format(1), short="Extra\ns", wide=True),
)  # fmt: skip


class Guarding(TableMetric[Safeguards]):
    """Counts what guarded chatbots did."""

    NAME, TITLE, ROW, COLUMNS = "safeguards", "Safeguards", Safeguards, COLUMNS
    ORDER, TERMINAL_ORDER = 80, 35
    FILE = "never"
    COUNTS = ("_done", "_spending", "_answers")
    HINTS = (
        "Actions of guarded chatbots on the first drafts of the chatbots that they wrap. By guard: what "
        "the guard’s own detector found in the drafts of replies that were shown, and in what was shown. "
        "Refusals and their drafts are excluded from HPT.",
    )

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._done: dict[str, Counter[str]] = defaultdict(Counter)
        """Chatbot → what was done."""
        self._spending: dict[str, Spending] = defaultdict(Spending)
        """Chatbot → calls of the guard, and for replies made again."""
        self._answers: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        """Chatbot and detector → answers, and hallucinations in them."""

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count a conversation."""
        for turn in conversation.turns:
            record = record_of(turn)
            if record is None:
                continue
            self._done[conversation.chatbot].update(_count_outcomes(record))
            calls = [call for call in turn.calls if call.purpose.startswith(CALLS)]
            self._spending[conversation.chatbot].add(sum_calls(calls))
            for detector in self.run.detectors:
                verdict = verdicts.get(detector, {}).get(turn.index)
                if not record.refused and verdict is not None and verdict.localised:
                    found = {"answers": 1, "hallucinations": len(verdict.spans or ())}
                    self._answers[conversation.chatbot, detector].update(found)

    def table(self, tallied: Tallied) -> tuple[Safeguards, ...]:
        """Return each guarded chatbot under each detector; nothing for chatbots without a guard."""
        return tuple(
            self._row(chatbot, detector)
            for chatbot in self.run.chatbots
            if chatbot in self._done
            for detector in self.run.detectors or ("",)
        )

    @classmethod
    def notes(cls, report: RunReport) -> Sequence[str]:
        """Say of each guarded chatbot how many replies are refusals."""
        refused = {row.chatbot: row for row in cls.rows(report) if row.refused}
        return [
            f"{name}: {row.refused} of {row.replies} {choose_noun(row.replies, 'reply', 'replies')} "
            f"{'is a refusal' if row.refused == 1 else 'are refusals'}: no answer, whatever a detector says "
            "of its words. `HPT of answers` leaves refusals out; `report --guards` gives their reasons."
            for name, row in refused.items()
        ]

    @classmethod
    def tables(cls, report: RunReport) -> Sequence[Part]:
        """Return the table, which needs no heading: its first column says what it is about."""
        rows = cls.rows(report)
        return (GAP, GroupedTable(COLUMNS, [rows])) if rows else ()

    def _row(self, chatbot: str, detector: str) -> Safeguards:
        done, cost = self._done[chatbot], self._spending[chatbot].total()
        answers = self._answers[chatbot, detector]
        return Safeguards(
            chatbot=chatbot,
            detector=detector,
            **{name: done[name] for name in _COUNTED},
            refused_share=done["refused"] / done["replies"],
            hpt_before=_divide_known(done["draft spans"], done["judged_drafts"]),
            hpt_after=_divide_known(done["shown spans"], done["judged_shown"]),
            answers=answers["answers"],
            hpt_answers=_divide_known(answers["hallucinations"], answers["answers"]),
            calls_per_reply=cost.calls / done["replies"],
            tokens_per_reply=_divide_known(cost.all_tokens, done["replies"]),
            seconds_per_reply=cost.seconds / done["replies"],
        )


_COUNTED = (
    "replies",
    "flagged",
    "unjudged",
    "again",
    "cured",
    "abstained",
    "human",
    "refused",
    "judged_drafts",
    "judged_shown",
)
"""Fields of a row that count what a guard did."""


def _count_outcomes(record: GuardRecord) -> dict[str, int]:
    """Return what a guard did about one reply, as numbers to add up."""
    draft = shown = None
    if record.shown is not None:
        draft, shown = _count_spans(record.attempts[0]), _count_spans(record.attempts[record.shown])
    return {
        "replies": 1,
        "flagged": record.attempts[0].flagged is True,
        "unjudged": record.attempts[0].flagged is None,
        "again": len(record.attempts) > 1,
        "cured": record.action == "cured",
        "abstained": record.action == "abstained",
        "human": record.action == "human",
        "refused": record.refused,
        "judged_drafts": draft is not None,
        "draft spans": draft or 0,
        "judged_shown": shown is not None,
        "shown spans": shown or 0,
    }


def _count_spans(attempt: Attempt) -> int | None:
    """Return the spans of an attempt that was judged and says where, as `Judgement.localised`; else None."""
    if attempt.spans is None or (attempt.flagged and not attempt.spans):
        return None
    return len(attempt.spans)


def _divide_known(total: int | None, of: int) -> float | None:
    return None if total is None or not of else total / of
