"""Whose fault hallucinated replies are: of the simulated user, of the search, or of what wrote from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hallulab.scenarios.transcript import Conversation, Frozen, Verdict
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.metric import LAST, Flaws, RunFacts, TableMetric, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.metrics.turn_reading import BLAMES, Library, TurnReading
from hallulab.simulator.show.columns import CHATBOT, DETECTOR, PERCENT, Column, is_lacking
from hallulab.simulator.statistics.intervals import (
    Interval,
    Ratio,
    Rounded,
    compute_interval,
    compute_ratio_of_sums,
    explain_no_interval,
)
from hallulab.simulator.statistics.sums import PersonSums


class BlameRow(Frozen):
    """The hallucinated replies of a chatbot, by a detector."""

    detector: str
    chatbot: str
    hallucinated: int
    told: int
    """Those that are attributed to somebody."""
    coverage: Rounded | None
    retriever: int
    """Replies caused by the retriever."""
    writer: int
    """Replies caused by the writer."""
    supported: int
    """Those whose passages support what is flagged, so that the detector may be wrong."""
    user: int
    """Those whose message is out of role or leaks its instructions: nobody else is to blame for these."""
    retriever_share: Rounded | None
    """retriever / told; None where all are undetermined."""
    retriever_share_ci95: Interval
    """Over personas; None: see `no_interval`."""
    no_interval: str | None
    writer_share: Rounded | None
    supported_share: Rounded | None
    user_share: Rounded | None
    recall: Rounded | None
    """Context recall: of all that hallucinated replies needed, the share that a passage has; None where it is
    not known of anything."""
    recall_replies: int
    precision: Rounded | None
    """Context precision: of all their passages, the share that bears on what was asked or said; None without
    passages."""
    precision_replies: int


COLUMNS = (
    DETECTOR,
    CHATBOT,
    Column("Hallucinated", "hallucinated", "replies that the detector flags, in the conversations examined",
           short="Halluc."),
    Column("Attributed %", "coverage", "hallucinated replies that are attributed", PERCENT, short="Attr.\n%",
           warns=is_lacking),
    Column("Retriever %", "retriever_share",
           "of those attributed: the documents contain what was needed, the passages do not", PERCENT,
           beside="retriever_share_ci95", short="Retriever %"),
    Column("Writer %", "writer_share",
           "of those attributed: the passages contain what was needed, or no document does", PERCENT,
           short="Writer\n%"),
    Column("Supported %", "supported_share", "of those attributed: a passage supports what is flagged, so "
           "the detector may be wrong", PERCENT, short="Supp.\n%"),
    Column("User %", "user_share", "of those attributed: the simulated user’s message is out of role, or "
           "leaks its instructions", PERCENT, short="User\n%"),
    Column("Context recall %", "recall",
           "share of what hallucinated replies needed (for the question, or statements that documents "
           "support) that a passage contains", PERCENT, short="Recall\n%"),
    Column("of replies", "recall_replies", "hallucinated replies whose needs are known"),
    Column("Context precision %", "precision",
           "share of the passages of hallucinated replies that bear on the question or support a statement "
           "of the reply", PERCENT, short="Precision\n%"),
    Column("of replies", "precision_replies", "hallucinated replies with passages"),
)  # fmt: skip

_USERS_FLAWS = frozenset({"role_swap", "leaked_instructions"})
"""Flaws of a message to which no chatbot can reply rightly."""

_TELLING = len(BLAMES) + 1
_WIDTH = 1 + _TELLING + 6


class Blames(TableMetric[BlameRow]):
    """Counts hallucinated replies by who is to blame."""

    NAME, LINK = "blame", "Whose fault"
    TITLE = "Whose fault hallucinated replies are"
    ROW = BlameRow
    COLUMNS = COLUMNS
    ORDER, TERMINAL_ORDER = 22, LAST + 1
    BY_DETECTOR = True
    COUNTS = ("_sums",)

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._library = None if run.passages is None else Library(run.passages, run.planned)
        self._sums = PersonSums(_WIDTH)
        """By detector and chatbot: hallucinated replies; those by who is to blame, the user last; what was
        needed, what was met, replies that needed something; passages, relevant ones, replies with any."""

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count a conversation's hallucinated replies."""
        library = self._library
        if library is None or not library.is_examined(conversation):
            return
        person = (conversation.scenario, conversation.persona)
        readings: dict[int, TurnReading | None] = {}
        by_user = {flaw.turn for flaw in flaws if flaw.kind in _USERS_FLAWS}
        for detector, judged in verdicts.items():
            for turn, verdict in judged.items():
                if verdict.outcome == "scored" and (verdict.flagged or verdict.spans):
                    if turn not in readings:
                        readings[turn] = library.read(conversation, conversation.turns[turn])
                    key = (detector, conversation.chatbot)
                    self._sums.add(person, key, _count(readings[turn], verdict, turn in by_user))

    def table(self, tallied: Tallied) -> Sequence[BlameRow]:
        """Return a row for each detector and chatbot; none where the documents are not known."""
        return [] if self._library is None else list(self._rows())

    @classmethod
    def hints(cls, report: RunReport) -> Sequence[str]:
        """Explain the rules."""
        few = f" {report.intervals.hint}" if any(row.no_interval for row in cls.rows(report)) else ""
        return [
            "Rules compare flagged statements, and the question, with the turn’s passages and with all "
            "documents of the pack, by words and numbers. Where that is not clear, it is undetermined "
            "(docs/blame.md). A reply to a message of the simulated user that is out of role, or leaks its "
            "instructions, is the user’s fault; one that declines is nobody’s. Of large runs, the "
            f"conversations of a part of the users are examined.{few}"
        ]

    def _rows(self) -> Iterator[BlameRow]:
        for detector in self.run.detectors:
            for chatbot in self.run.chatbots:
                yield self._row(detector, chatbot)

    def _row(self, detector: str, chatbot: str) -> BlameRow:
        sums = [numbers for _, numbers in self._sums.items((detector, chatbot))]
        totals = [sum(column) for column in zip(*sums, strict=True)] or [0] * _WIDTH
        hallucinated, retriever, writer, supported, user = totals[: 1 + _TELLING]
        needs, met, asking, passages, relevant, given = totals[1 + _TELLING :]
        told = retriever + writer + supported + user
        ratios = [Ratio(one[1], sum(one[1 : 1 + _TELLING])) for one in sums if any(one[1 : 1 + _TELLING])]
        ci95 = compute_interval(ratios, "share")
        return BlameRow(
            detector=detector,
            chatbot=chatbot,
            hallucinated=hallucinated,
            told=told,
            coverage=_divide(told, hallucinated),
            retriever=retriever,
            writer=writer,
            supported=supported,
            user=user,
            retriever_share=compute_ratio_of_sums(ratios),
            retriever_share_ci95=ci95,
            no_interval=explain_no_interval(len(ratios), found={"share": ci95}) if ratios else None,
            writer_share=_divide(writer, told),
            supported_share=_divide(supported, told),
            user_share=_divide(user, told),
            recall=_divide(met, needs),
            recall_replies=asking,
            precision=_divide(relevant, passages),
            precision_replies=given,
        )


def _count(reading: TurnReading | None, verdict: Verdict, by_user: bool) -> tuple[int, ...]:
    """Return the numbers of a hallucinated reply; if the user's message is to blame, nobody else is."""
    if reading is None:
        return (1, *[0] * len(BLAMES), int(by_user), *[0] * (_WIDTH - 1 - _TELLING))
    blame, context = None if by_user else reading.blame(verdict), reading.context
    return (
        1,
        *(int(blame == one) for one in BLAMES),
        int(by_user),
        context.needs,
        context.met,
        int(context.needs > 0),
        context.passages,
        context.relevant,
        int(context.passages > 0),
    )


def _divide(part: int, whole: int) -> float | None:
    return part / whole if whole else None
