"""Answered and declined replies: a chatbot that answers nothing has no hallucination, and helps nobody.

Rules assign a kind to each reply (`scenarios/text/declining.py`), and if the documents have what was asked
(`blame.py`). Replies in languages without rules are of no kind, and left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hallulab.scenarios.transcript import Conversation, Frozen
from hallulab.simulator.metrics.hallucinations import ByDetector, is_answer
from hallulab.simulator.metrics.metric import LAST, Flaws, RunFacts, TableMetric, Tallied
from hallulab.simulator.metrics.turn_reading import Library
from hallulab.simulator.show.columns import CHATBOT, DETECTOR, PERCENT, TWO_DECIMALS, Column
from hallulab.simulator.statistics.intervals import (
    Interval,
    Ratio,
    Rounded,
    compute_interval,
    compute_ratio_of_sums,
)
from hallulab.simulator.statistics.sums import PersonSums


class AnsweredRow(Frozen):
    """Replies of a chatbot by kind, and the hallucinations in those that answer, by a detector."""

    detector: str
    chatbot: str
    replies: int
    answered: Rounded | None
    """None: no reply answers or declines."""
    answered_ci95: Interval
    """Its 95% interval over personas; None: there are too few, or all have the same share."""
    in_documents: int
    over_declined: Rounded | None
    not_in_documents: int
    over_answered: Rounded | None
    scored_answers: int
    hpt_of_answers: Rounded | None
    hpt_of_answers_ci95: Interval


class AnsweredReplies(TableMetric[AnsweredRow]):
    """Counts replies that answer and that decline."""

    NAME, TITLE, LINK, ROW = "answered", "Answered and declined", "Answered", AnsweredRow
    ORDER, TERMINAL_ORDER = 21, LAST
    BY_DETECTOR = True
    COLUMNS = (
        DETECTOR,
        CHATBOT,
        Column("Answered %", "answered",
               "share of the replies that answer, among those that answer or decline; an answer claims "
               "something, perhaps beside a refusal", PERCENT, beside="answered_ci95", short="Answered %"),
        Column("of", "replies", "replies that answer or decline"),
        Column("Declined where the documents have it %", "over_declined",
               "share that declines where documents bear on the question", PERCENT,
               short="Declined,\nknown %"),
        Column("of", "in_documents", "replies to questions on which documents bear"),
        Column("Answered where they do not %", "over_answered",
               "share that answers where no document bears on the question", PERCENT,
               short="Answered,\nunknown %"),
        Column("of", "not_in_documents", "replies to questions on which no document bears"),
        Column("HPT of answers", "hpt_of_answers", "hallucinations over scored replies that answer",
               TWO_DECIMALS, beside="hpt_of_answers_ci95", short="HPT of\nanswers"),
        Column("of", "scored_answers", "these replies"),
    )  # fmt: skip

    COUNTS = ("_kinds", "_scored")
    HINTS = (
        "A reply that declines has no hallucination, and no answer either: a chatbot that answers less "
        "is not better by that alone. Rules tell what a reply does (docs/declining.md), and "
        "if documents bear on a question (docs/blame.md).",
    )

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._library = None if run.passages is None else Library(run.passages, run.planned)
        self._kinds = PersonSums(6)
        """By chatbot: answers and replies; declined and all where documents have it; answered and all where
        they do not."""
        self._scored = PersonSums(2)
        """By detector and chatbot: hallucinations in scored answers, and these."""

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count the replies of a conversation."""
        person = (conversation.scenario, conversation.persona)
        library = self._library
        if library is not None and not library.is_examined(conversation):
            library = None
        for turn in conversation.turns:
            answers = is_answer(turn.reply)
            if answers is None:
                continue
            reading = None if library is None else library.read(conversation, turn)
            found = None if reading is None else reading.found
            known = int(found in ("among the passages", "missed"))
            unknown = int(found == "not in the documents")
            self._kinds.add(
                person,
                (conversation.chatbot,),
                (answers, 1, known * (1 - answers), known, unknown * answers, unknown),
            )
            if answers:
                for detector, judged in verdicts.items():
                    verdict = judged.get(turn.index)
                    if verdict is not None and verdict.spans is not None and verdict.localised:
                        self._scored.add(person, (detector, conversation.chatbot), (len(verdict.spans), 1))

    def table(self, tallied: Tallied) -> Sequence[AnsweredRow]:
        """Return a row for each detector and chatbot with a reply that answers or declines."""
        about = {name: self._count_kinds(name) for name in self.run.chatbots}
        rows = []
        for detector in self.run.detectors:
            for name in (name for name in self.run.chatbots if about[name]):
                scored = self._scored.list_ratios((detector, name))
                row = AnsweredRow(
                    detector=detector,
                    chatbot=name,
                    **about[name],
                    scored_answers=sum(ratio.denominator for ratio in scored),
                    hpt_of_answers=compute_ratio_of_sums(scored),
                    hpt_of_answers_ci95=compute_interval(scored, "rate"),
                )
                rows.append(row)
        return rows

    def _count_kinds(self, chatbot: str) -> dict[str, Any]:
        """Return the fields of a chatbot's rows that are the same by each detector; none without replies."""
        kinds = [numbers for _, numbers in self._kinds.items((chatbot,))]
        if not kinds:
            return {}
        answered = [Ratio(one[0], one[1]) for one in kinds]
        return {
            "replies": sum(one[1] for one in kinds),
            "answered": compute_ratio_of_sums(answered),
            "answered_ci95": compute_interval(answered, "share"),
            "in_documents": sum(one[3] for one in kinds),
            "over_declined": _divide(kinds, 2),
            "not_in_documents": sum(one[5] for one in kinds),
            "over_answered": _divide(kinds, 4),
        }


def _divide(sums: Sequence[Sequence[int]], column: int) -> float | None:
    """Divide the sum of a column by that of the next one; None where that is 0."""
    return compute_ratio_of_sums([Ratio(one[column], one[column + 1]) for one in sums if one[column + 1]])
