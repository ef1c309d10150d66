"""Where hallucinated replies concentrate: by turn, length of the reply, nearest document, topic, and search.

A reply is hallucinated by a detector that flagged it, or something in it. All chatbots count together. The
replies of one persona depend on each other, so intervals are over personas.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

from hallulab.scenarios.chats.turns import TOPIC
from hallulab.scenarios.text.wording import choose_noun
from hallulab.scenarios.transcript import Conversation, Frozen, Turn
from hallulab.simulator.metrics.depth import BAND_NAMES, name_band
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.metric import LAST, CsvTable, Flaws, RunFacts, TableMetric, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.metrics.turn_reading import Found, Library
from hallulab.simulator.show.columns import DETECTOR, GROUPED, PERCENT, Column, is_lacking
from hallulab.simulator.show.document import GAP, GroupedTable, Paragraph, Part, Section
from hallulab.simulator.statistics.intervals import (
    Interval,
    Ratio,
    Rounded,
    compute_interval,
    compute_ratio_of_sums,
    explain_no_interval,
    sum_by_cluster,
)
from hallulab.simulator.statistics.sums import PersonSums

By = Literal["all", "turn", "length", "document", "topic", "search"]
KINDS: tuple[By, ...] = ("all", "turn", "length", "document", "topic", "search")

MOST = 10
"""Documents, and topics, with a row of their own: those with most replies."""

NONE = "(none)"
"""Value of replies without evidence, or without a topic."""
NOT_TOLD = "(undetermined)"
"""Value of replies of which it cannot be told whether what the question needs was found."""
OTHERS = "(others)"
"""Value of documents, or topics, without a row of their own."""

_WORDS = ((25, "up to 25 words"), (50, "26 to 50"), (100, "51 to 100"), (200, "101 to 200"))
_LONGEST = "over 200 words"
_BANDS: dict[By, tuple[str, ...]] = {
    "all": ("replies",),
    "turn": BAND_NAMES,
    "length": (*(name for _, name in _WORDS), _LONGEST),
    "search": (*get_args(Found), NOT_TOLD),
}

Cell = tuple[By, str | None]
"""The common property of replies: None is no document, or no topic."""


class Concentration(Frozen):
    """Some of the replies under a detector."""

    detector: str
    by: By
    value: str
    replies: int
    scored: int
    coverage: Rounded | None
    hallucinated: int
    share: Rounded | None
    """hallucinated / scored; None if nothing is scored."""
    share_ci95: Interval
    """Over personas; None: see `no_interval`."""
    no_interval: str | None


COLUMNS = (
    DETECTOR,
    Column("By", "by",
           "property of the replies: turn, length, document (of the best passage), topic, search (did it "
           "find what the question needs; in large runs, of the conversations examined); all: none",
           kind="name", short="Replies by"),
    Column("Which", "value",
           "its value; (none): no evidence or topic, (others): values with fewer replies, (undetermined): "
           "rules cannot say what the search found", kind="text", short="which"),
    Column("Replies", "replies", "these replies, of all chatbots", GROUPED, short="Replies"),
    Column("Scored", "scored", "those that the detector scored", GROUPED, short="Scored"),
    Column("Coverage %", "coverage", "scored replies over replies", PERCENT, short="Cov.\n%",
           warns=is_lacking),
    Column("Hallucinated", "hallucinated", "scored replies that are flagged, or have a hallucination",
           GROUPED, short="Halluc."),
    Column("Hallucinated %", "share", "hallucinated over scored replies", PERCENT, beside="share_ci95",
           short="Halluc. %"),
)  # fmt: skip


class Concentrations(TableMetric[Concentration]):
    """Counts replies by what they have in common."""

    NAME, LINK = "concentration", "Where"
    TITLE = "Where hallucinated replies concentrate"
    ROW = Concentration
    COLUMNS = COLUMNS
    ORDER, TERMINAL_ORDER = 20, LAST
    BY_DETECTOR = True
    COUNTS = ("_replies", "_judged")

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._replies: Counter[Cell] = Counter()
        self._judged = PersonSums(2)
        """Hallucinated replies and scored ones by (detector, cell)."""
        self._library = None if run.passages is None else Library(run.passages, run.planned)

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count a conversation."""
        person = (conversation.scenario, conversation.persona)
        is_examined = self._library is not None and self._library.is_examined(conversation)
        library = self._library if is_examined else None
        cells = {
            turn.index: tuple(_enumerate_cells(conversation, turn, library)) for turn in conversation.turns
        }
        self._replies.update(cell for own in cells.values() for cell in own)
        for detector in self.run.detectors:
            found: dict[Cell, list[bool]] = defaultdict(list)
            for turn, verdict in verdicts.get(detector, {}).items():
                if verdict.outcome == "scored":
                    for cell in cells.get(turn, ()):
                        found[cell].append(bool(verdict.flagged or verdict.spans))
            for cell, flags in found.items():
                self._judged.add(person, (detector, cell), (sum(flags), len(flags)))

    def table(self, tallied: Tallied) -> tuple[Concentration, ...]:
        """Return the rows: of each detector, those with replies; by topic only where one is given.

        By search only where it can be told of a reply what it found.
        """
        told = {kind for kind, name in self._replies if name != (NOT_TOLD if kind == "search" else None)}
        kinds = [kind for kind in KINDS if kind in told or kind not in ("topic", "search")]
        return tuple(
            row for name in self.run.detectors for kind in kinds for row in self._build_rows(name, kind)
        )

    @classmethod
    def notes(cls, report: RunReport) -> Sequence[str]:
        """Say how many replies of imported chats have no evidence."""
        rows = cls.rows(report)
        # The count is the same for each detector.
        lacking = [row for row in rows if (row.by, row.value) == ("document", NONE)]
        if not report.imported or not lacking:
            return ()
        bare, whole = lacking[0].replies, next(row.replies for row in rows if row.by == "all")
        return [
            f"{bare} of {whole} {choose_noun(whole, 'reply', 'replies')} {'has' if bare == 1 else 'have'} no "
            "evidence: a detector that needs some abstains, and what has none is not clean."
        ]

    @classmethod
    def section(cls, report: RunReport) -> Section | None:
        """Show the table; nothing without rows."""
        rows = cls.rows(report)
        few = (
            f"; fewer than {report.intervals.least}, or all with the same share, have none"
            if any(row.no_interval for row in rows)
            else ""
        )
        hint = (
            "Share of the scored replies of all chatbots that a detector flags. Intervals are over "
            f"personas{few}."
        )
        parts = (Paragraph(hint), GroupedTable(cls.COLUMNS, cls.groups(report)))
        return Section(cls.NAME, "Where hallucinated replies are", parts, cls.LINK) if rows else None

    @classmethod
    def tables(cls, report: RunReport) -> Sequence[Part]:
        """Return the table under its heading; nothing without rows."""
        table = GroupedTable(
            cls.COLUMNS, cls.groups(report), "where hallucinated replies are:", by="detector"
        )
        return (GAP, table) if cls.rows(report) else ()

    @classmethod
    def csv(cls, report: RunReport) -> CsvTable:
        """Return the table for `concentration.csv`."""
        return CsvTable(cls.COLUMNS, cls.rows(report), "concentration.csv")

    def _build_rows(self, detector: str, kind: By) -> Iterator[Concentration]:
        for value, cells in self._values(kind):
            replies = sum(self._replies[kind, name] for name in cells)
            judged = sum_by_cluster(
                (person, Ratio(*numbers))
                for name in cells
                for person, numbers in self._judged.items((detector, (kind, name)))
            )
            if not replies:
                continue
            ci95 = compute_interval(judged, "share")
            scored = sum(ratio.denominator for ratio in judged)
            yield Concentration(
                detector=detector,
                by=kind,
                value=value,
                replies=replies,
                scored=scored,
                coverage=scored / replies,
                hallucinated=sum(ratio.numerator for ratio in judged),
                share=compute_ratio_of_sums(judged),
                share_ci95=ci95,
                no_interval=explain_no_interval(len(judged), found={"share": ci95}),
            )

    def _values(self, kind: By) -> list[tuple[str, list[str | None]]]:
        """Return (value of a row, names that it counts) in the order of the rows."""
        if kind in _BANDS:
            return [(name, [name]) for name in _BANDS[kind]]
        counts = {
            name: self._replies[by, name] for by, name in self._replies if by == kind and name is not None
        }
        names = sorted(counts, key=lambda name: (-counts[name], name))
        shown: list[tuple[str, list[str | None]]] = [(name, [name]) for name in names[:MOST]]
        return [*shown, (OTHERS, [*names[MOST:]]), (NONE, [None])]


def _enumerate_cells(conversation: Conversation, turn: Turn, library: Library | None) -> Iterator[Cell]:
    """Yield what a reply has in common with others; of searches only where the documents are known."""
    number, words = conversation.depth(turn.index) + 1, len(turn.reply.split())
    yield "all", _BANDS["all"][0]
    yield "turn", name_band(number)
    yield "length", next((name for most, name in _WORDS if words <= most), _LONGEST)
    yield "document", turn.passages[0].document if turn.passages else None
    given = next((step.text for step in turn.steps if step.name == TOPIC), None)
    yield "topic", given or next((one.topic for one in turn.passages[:1] if one.topic), None)
    if library is not None:
        reading = library.read(conversation, turn)
        yield "search", (reading and reading.found) or NOT_TOLD
