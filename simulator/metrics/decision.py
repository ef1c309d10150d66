"""What a run came to that goes on until it is decided, and how the chatbots' differences narrowed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

from hallulab.scenarios.text.wording import choose_noun, format_count
from hallulab.scenarios.transcript import Conversation, Frozen
from hallulab.simulator.decide.course import Ending, retrace
from hallulab.simulator.decide.decision import BatchStep, PairState, Standing
from hallulab.simulator.decide.talks import Talks
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.metric import Flaws, Metric, RunFacts, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.show.charts import NarrowingPoint, draw_narrowing
from hallulab.simulator.show.columns import TWO_DECIMALS, Column
from hallulab.simulator.show.document import GAP, Figures, GroupedTable, Paragraph, Part, Section

COLUMNS = (
    Column("a", "a", "a chatbot", kind="name", short="a"),
    Column("b", "b", "another one", kind="name", short="b"),
    Column("Personas", "persons", "personas whose conversations with both were scored", short="Personas"),
    Column("Δ HPT", "difference", "mean over these of HPT of a minus that of b", TWO_DECIMALS, short="Δ HPT"),
    Column("from", "low", "the true difference is above this, at whatever batch the run ends", TWO_DECIMALS,
           short="from"),
    Column("to", "high", "and below this", TWO_DECIMALS, short="to"),
)  # fmt: skip


class DecisionReport(Frozen):
    """How a run went on until it was decided."""

    detector: str
    """The detector that decides, the first of the experiment."""
    budget: str | None
    """What the run may use; None: all personas."""
    keep_all: bool
    """Whether chatbots that are clearly worse go on talking."""
    of: int
    ending: Ending | None
    """Why it ended: `decided`, `budget` (spent), `personas` (all have talked); None: it has not ended."""
    sentence: str
    """What is decided, in one sentence."""
    found: Standing
    """What is decided, and what was known after each batch."""


class DecisionSection(Frozen):
    """Fields of `report.json`."""

    decision: DecisionReport | None = None
    """How the run went on until it was decided; None: it holds what was planned."""


class DecisionMetric(Metric):
    """Follows a run until it is decided, once more, from the journals."""

    SECTION = DecisionSection
    TABLES = (("Decision", COLUMNS),)
    ORDER, TERMINAL_ORDER = 4, 14

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._talks = None if run.deciding is None else Talks(run.deciding.detector)

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count a conversation under the detector that decides."""
        if self._talks is not None:
            self._talks.add(conversation, verdicts)

    def merge(self, other: Self) -> None:
        """Add the conversations of other personas."""
        if self._talks is not None and other._talks is not None:
            self._talks.merge(other._talks)

    def result(self, tallied: Tallied) -> DecisionSection:
        """Return the course of the run."""
        deciding = self.run.deciding
        if deciding is None or self._talks is None:
            return DecisionSection()
        course = retrace(deciding, self._talks)
        budget = deciding.until.budget
        goes_on = " The run has not ended; the same command goes on with it." if course.ending is None else ""
        return DecisionSection(
            decision=DecisionReport(
                detector=deciding.detector,
                budget=None if budget is None else str(budget),
                keep_all=deciding.until.keep_all,
                of=deciding.drawn.of,
                ending=course.ending,
                sentence=f"{course.describe()}{goes_on}",
                found=course.decision,
            )
        )

    @classmethod
    def headlines(cls, report: RunReport) -> Sequence[str]:
        """Say how the run ended."""
        decision = report.of(DecisionSection).decision
        return [] if decision is None else [f"By {decision.detector}: {decision.sentence}"]

    @classmethod
    def notes(cls, report: RunReport) -> Sequence[str]:
        """Say who talked less, what entered no difference, and what the end means for the other numbers."""
        decision = report.of(DecisionSection).decision
        return [] if decision is None else [*_describe_limits(decision), _describe_end(decision.ending)]

    @classmethod
    def section(cls, report: RunReport) -> Section | None:
        """Show how the difference of every two chatbots narrowed."""
        decision = report.of(DecisionSection).decision
        if decision is None or not decision.found.steps:
            return None
        found = decision.found
        figures = []
        for pair in found.pairs:
            title = f"{pair.a} − {pair.b}"
            points = build_points(pair.a, pair.b, found.steps)
            figures.append((title, draw_narrowing(title, points, found.margin)))
        hint = (
            f"HPT of the first chatbot minus that of the second after each batch, by {decision.detector}, on "
            "the personas that both talked to. Line: their mean. Band: where the true difference is; all "
            f"bands together decide wrongly with a probability of at most {found.level:.0%}, whenever the "
            f"run ends. Dashed: the margin of {found.margin:g} a turn. A band is cut where it leads beyond "
            "its chart."
        )
        parts: list[Part] = [Paragraph(hint), Figures(figures), GroupedTable(COLUMNS, [found.pairs])]
        return Section("decision", "How the differences narrowed", parts, "Decision")

    @classmethod
    def tables(cls, report: RunReport) -> Sequence[Part]:
        """Return the differences after the last batch."""
        decision = report.of(DecisionSection).decision
        if decision is None or not decision.found.steps:
            return ()
        batches = len(decision.found.steps)
        heading = f"Differences after {batches} {choose_noun(batches, 'batch', 'batches')}:"
        return GAP, GroupedTable(COLUMNS, [decision.found.pairs], heading)


def build_points(a: str, b: str, steps: Sequence[BatchStep]) -> list[NarrowingPoint]:
    """Return the difference of two chatbots after each batch, as the chart shows it."""
    return [
        NarrowingPoint(step.persons, pair.difference, pair.low, pair.high, _describe_pair(pair))
        for step in steps
        for pair in step.pairs
        if (pair.a, pair.b) == (a, b)
    ]


def _describe_pair(pair: PairState) -> str:
    """Say what is known of a pair, and on how many personas."""
    have = format_count(pair.persons, "persona")
    if pair.difference is None:
        return f"{have}, nothing is known"
    return f"{have}: {pair.difference:.2f} a turn, between {pair.low:.2f} and {pair.high:.2f}"


def _describe_end(ending: Ending | None) -> str:
    """Say what an end that depends on what is found means for the other numbers."""
    if ending is None:
        end = "The run may end by what it finds."
    else:
        end = f"The run {'ended' if ending == 'decided' else 'could have ended'} by what it found."
    return (
        f"{end} A decision holds at such an end; intervals and p-values of other sections are those of a "
        "number of personas that was fixed before."
    )


def _describe_limits(decision: DecisionReport) -> Iterator[str]:
    found = decision.found
    for name, asked in found.asked.items():
        if asked < found.persons:
            yield (
                f"{name} was clearly worse and did not go on after {format_count(asked, 'persona')}. Its "
                "numbers are of these, and it is compared with others on these."
            )
        lacking = asked - found.scored[name]
        if lacking:
            yield f"{name}: {decision.detector} scored nothing with {format_count(lacking, 'persona')}."
        clipped = found.clipped[name]
        if clipped:
            yield (
                f"{name}: with {format_count(clipped, 'persona')} HPT is above {found.ceiling:g}, and counts "
                "as that much in the decision."
            )
