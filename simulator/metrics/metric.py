"""A metric of a report: it counts conversations, and says how its result is shown.

A metric is one class in one file of this folder, or behind an entry point `hallulab.metrics` of another
distribution. report.json, page, terminal, CSV and the glossary are made from it. Most are one table:

    class Greeting(Frozen):
        chatbot: str
        greetings: int

    class Greetings(TableMetric[Greeting]):
        NAME, TITLE, ROW = "greetings", "Greetings", Greeting
        COLUMNS = (CHATBOT, Column("Greetings", "greetings", "replies that greet", short="Greetings"))

        COUNTS = ("_found",)

        def __init__(self, run: RunFacts) -> None:
            super().__init__(run)
            self._found: Counter[str] = Counter()

        def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
            self._found[conversation.chatbot] += sum("hello" in turn.reply for turn in conversation.turns)

        def table(self, tallied: Tallied) -> Sequence[Greeting]:
            return [Greeting(chatbot=name, greetings=self._found[name]) for name in self.run.chatbots]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import GenericAlias
from typing import Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar

from pydantic import create_model

from hallulab.agents.models.abilities import ReadHow
from hallulab.agents.models.replicas import Answered
from hallulab.agents.served_model import ClaimChecks
from hallulab.detectors.base.protocol import JudgingMethod
from hallulab.scenarios.attacks.attack import AttackRecord
from hallulab.scenarios.packs.goals import GoalLabel
from hallulab.scenarios.transcript import Conversation, Frozen, Passage, Verdict
from hallulab.simulator.metrics.annotations import Annotations
from hallulab.simulator.metrics.corrections import UNKNOWN
from hallulab.simulator.metrics.hallucinations import ByDetector, Row
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.metrics.run_sums import RunSums
from hallulab.simulator.records.experiment_fields import Prices
from hallulab.simulator.records.experiment_json import BranchedFrom, SavedExperiment
from hallulab.simulator.records.journal_lines import VerdictKey
from hallulab.simulator.records.journals import Journals
from hallulab.simulator.show.columns import Column, group_rows
from hallulab.simulator.show.document import GAP, GroupedTable, Paragraph, Part, Section
from hallulab.simulator.statistics.prevalence import DetectorErrors
from hallulab.simulator.statistics.sequence import MARGIN
from hallulab.simulator.statistics.sums import Mergeable

LAST = 1_000
"""Terminal order from which a metric's tables stand behind the sentences."""


class TurnFlaw(Protocol):
    """A flaw of the simulated user in one turn."""

    @property
    def turn(self) -> int:
        """Index of the turn."""
        ...

    @property
    def kind(self) -> str:
        """`empty`, `role_swap`, `leaked_instructions`, `repeated`, `premature_stop`."""
        ...

    @property
    def detail(self) -> str:
        """The observation, for people."""
        ...


Flaws = Sequence[TurnFlaw]


@dataclass(frozen=True)
class RunFacts:
    """Facts of a run for metrics, before they count it."""

    chatbots: Sequence[str]
    """Names of all chatbots, in the order of the rows."""
    detectors: Sequence[str]
    """Names of all detectors, likewise. One without verdicts has rows with coverage 0."""
    imported: bool = False
    """True if the conversations were imported, or typed by a person."""
    planted: AttackRecord | None = None
    """An attack's changes of the scenario; None without one."""
    annotations: Annotations = field(default_factory=Annotations)
    """Annotations of the turns that annotators looked at."""
    personas: Collection[str] | None = None
    """Identifiers of the personas that the audit of the simulated user knows; None: it needs none."""
    labels: Mapping[tuple[str, str], GoalLabel] = field(default_factory=dict)
    """Labels of the goals that have one, by persona and goal."""
    claim_checks: ClaimChecks = field(default_factory=ClaimChecks)
    """How chatbots and detectors check claims, as far as it is known."""
    methods: Mapping[str, JudgingMethod] = field(default_factory=dict)
    """How detectors judged, by name, as far as it is known."""
    language: str | None = None
    """Language that simulated users write (ISO 639-1); None: English."""
    prices: Prices = field(default_factory=dict)
    """Prices of tokens, by served model; empty: nobody has said."""
    read_how: Sequence[ReadHow] = ()
    """How the models' answers were read; empty: not known."""
    endpoints: Sequence[Answered] = ()
    """Answers and failures of each of several endpoints; empty: there was one, or nothing is known."""
    branched_from: BranchedFrom | None = None
    """The run that the conversations branch off from; None: they do not."""
    deciding: SavedExperiment | None = None
    """The experiment, if it runs until it is decided; None: it has a fixed size."""
    free: Journals | None = None
    """That run's conversations, and the verdicts of the same versions of the detectors."""
    mistakes: Mapping[str, DetectorErrors] = field(default_factory=dict)
    """Known error rates of detectors, by name."""
    why_unknown: str = UNKNOWN
    """Why others are not."""
    passages: Sequence[Passage] | None = None
    """All that could be retrieved; None: not known."""
    planned: int = 0
    """Conversations of the run, as planned."""
    again: Mapping[VerdictKey, Verdict] = field(default_factory=dict)
    """Second verdicts (`hallulab detect --again`), by the key of the first ones."""
    margin: float = MARGIN
    """Difference in HPT-1 that personas are planned for."""


@dataclass(frozen=True)
class Tallied:
    """Counts of every report, at the end of the run."""

    sums: RunSums
    """The sums of every chatbot under every detector."""
    rows: tuple[Row, ...]
    """The report's rows, which add them up."""


@dataclass(frozen=True)
class CsvTable:
    """Rows for a CSV file."""

    columns: Sequence[Column]
    rows: Sequence[Any]
    file: str = ""
    """Name of the file in the run folder."""


class Metric(Mergeable, ABC):
    """Counts one subject of a run, conversation by conversation, and shows it.

    An instance counts one run. Sections are made from a report, which may be an old one.
    """

    SECTION: ClassVar[type[Frozen]]
    """Its fields of report.json. Fields that are younger than the report's layout have defaults."""
    TABLES: ClassVar[Sequence[tuple[str, Sequence[Column]]]] = ()
    """Headings in docs/metrics.md, and the columns of each."""
    ORDER: ClassVar[int] = 85
    """Its place on the page, in the glossary and among the notes: lower is earlier."""
    TERMINAL_ORDER: ClassVar[int] = 85

    def __init__(self, run: RunFacts) -> None:
        self.run = run

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count a conversation. Keep numbers, no texts: a run may be large.

        Args:
            verdicts: those on it, by detector and turn.
            flaws: those of the simulated user in it.
        """

    def merge(self, other: Self) -> None:
        """Add the counts of another one, of other personas of the same run: those named in `COUNTS`."""
        if not self.is_mergeable():
            raise NotImplementedError
        super().merge(other)

    @classmethod
    def is_mergeable(cls) -> bool:
        """Return whether parts of a run can be counted apart: there is nothing to add, or a way to.

        A run in shards (docs/scale.md) is counted by several processes if this holds of all metrics.
        """
        return bool(cls.COUNTS) or cls.merge is not Metric.merge or cls.add is Metric.add

    @abstractmethod
    def result(self, tallied: Tallied) -> Frozen:
        """Return the section of the report."""

    @classmethod
    def headlines(cls, report: RunReport) -> Sequence[str]:
        """Return sentences on top of page and terminal."""
        return ()

    @classmethod
    def lines(cls, report: RunReport) -> Sequence[str]:
        """Return sentences that the terminal has beside the table; on the page they are in the section."""
        return ()

    @classmethod
    def notes(cls, report: RunReport) -> Sequence[str]:
        """Return sentences on what limits the report's numbers, below its results."""
        return ()

    @classmethod
    def footnotes(cls, report: RunReport) -> Sequence[str]:
        """Return sentences on how the numbers were made, below the notes."""
        return ()

    @classmethod
    def section(cls, report: RunReport) -> Section | None:
        """Return the section of the page; None: it has nothing to show."""
        return None

    @classmethod
    def tables(cls, report: RunReport) -> Sequence[Part]:
        """Return what the terminal shows, from top to bottom."""
        return ()

    @classmethod
    def beside(cls, report: RunReport) -> CsvTable | None:
        """Return columns to stand beside those of the rows in report.csv, a row for each of them."""
        return None

    @classmethod
    def csv(cls, report: RunReport) -> CsvTable | None:
        """Return a table with a file of its own; `clear` of a run folder knows `report-*.csv`."""
        return None


TableRow = TypeVar("TableRow", bound=Frozen)


class TableMetric(Metric, Generic[TableRow]):
    """A metric that is one table: a field of report.json, a section, and `report-NAME.csv`."""

    NAME: ClassVar[str]
    """Its field of report.json."""
    TITLE: ClassVar[str]
    LINK: ClassVar[str] = ""
    """Its name in the page's list of sections; empty: the title."""
    ROW: ClassVar[type[Frozen]]
    COLUMNS: ClassVar[Sequence[Column]]
    BY_DETECTOR: ClassVar[bool] = False
    """True: the rows of each detector are a group."""
    ON_TERMINAL: ClassVar[bool] = True
    """False: the terminal has enough rows without these."""
    HINTS: ClassVar[Sequence[str]] = ()
    """Sentences that the page has before the table."""
    FILE: ClassVar[Literal["always", "with rows", "never"]] = "always"
    """When the table has a file of its own."""

    def __init_subclass__(cls, **more: Any) -> None:
        """Make the section and the glossary from the declarations."""
        super().__init_subclass__(**more)
        # Reports that were made before the metric was there lack it.
        fields: dict[str, Any] = {cls.NAME: (GenericAlias(tuple, (cls.ROW, ...)), ())}
        cls.SECTION = create_model(f"{cls.__name__}Section", __base__=Frozen, **fields)
        cls.TABLES = ((cls.TITLE, cls.COLUMNS),)

    @abstractmethod
    def table(self, tallied: Tallied) -> Sequence[TableRow]:
        """Return the rows."""

    def result(self, tallied: Tallied) -> Frozen:
        """Return the section of the report."""
        return self.SECTION.model_validate({self.NAME: tuple(self.table(tallied))})

    @classmethod
    def rows(cls, report: RunReport) -> tuple[TableRow, ...]:
        """Return the rows in a report."""
        found: tuple[TableRow, ...] = getattr(report, cls.NAME)
        return found

    @classmethod
    def groups(cls, report: RunReport) -> Sequence[Sequence[TableRow]]:
        """Return the rows in the groups in which they are shown."""
        rows = cls.rows(report)
        return group_rows(rows, "detector", report.detectors) if cls.BY_DETECTOR else [rows]

    @classmethod
    def hints(cls, report: RunReport) -> Sequence[str]:
        """Return what the page says before the table."""
        return cls.HINTS

    @classmethod
    def section(cls, report: RunReport) -> Section | None:
        """Return a section with the hints and the table; None without rows."""
        if not cls.rows(report):
            return None
        parts: list[Part] = [
            *map(Paragraph, cls.hints(report)),
            GroupedTable(cls.COLUMNS, cls.groups(report)),
        ]
        return Section(cls.NAME, cls.TITLE, parts, cls.LINK)

    @classmethod
    def tables(cls, report: RunReport) -> Sequence[Part]:
        """Return the table under its heading; nothing without rows, or where it is not `ON_TERMINAL`."""
        if not cls.ON_TERMINAL or not cls.rows(report):
            return ()
        return GAP, GroupedTable(cls.COLUMNS, cls.groups(report), f"{cls.TITLE}:")

    @classmethod
    def csv(cls, report: RunReport) -> CsvTable | None:
        """Return the table with its file, if it has one (`FILE`)."""
        rows = cls.rows(report)
        if cls.FILE == "never" or (cls.FILE == "with rows" and not rows):
            return None
        return CsvTable(cls.COLUMNS, rows, f"report-{cls.NAME}.csv")
