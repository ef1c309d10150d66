"""The decision between chatbots of a run with `until_decided`, and how their differences narrowed.

The run adds batches to a `SequentialTest` while it goes on. The report repeats the test from the journals, so
both reach the same decision.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, Self

from hallulab.scenarios.text.wording import choose_noun, format_count
from hallulab.scenarios.transcript import Conversation, Frozen
from hallulab.simulator.metrics.hallucinations import ByDetector, count_verdicts
from hallulab.simulator.metrics.metric import Flaws, Metric, RunFacts, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.metrics.spending import sum_calls, sum_known
from hallulab.simulator.records.experiment_fields import BATCH, UntilDecided
from hallulab.simulator.records.experiment_json import SavedExperiment
from hallulab.simulator.show.charts import NarrowingPoint, draw_narrowing
from hallulab.simulator.show.columns import PERCENT, TWO_DECIMALS, Column
from hallulab.simulator.show.document import GAP, Figures, GroupedTable, Paragraph, Part, Section
from hallulab.simulator.statistics.intervals import Ratio
from hallulab.simulator.statistics.sequence import (
    BatchStep,
    Decider,
    PairState,
    SequenceState,
    describe_decision,
)

Key = tuple[str, str]


class PersonaTally:
    """Counts conversations under the detector that decides.

    A persona's HPT with a chatbot is that of the report: hallucinations over scored turns, over all seeds.
    """

    def __init__(self, detector: str) -> None:
        self._detector = detector
        self._found: dict[Key, tuple[int, int]] = {}
        """Hallucinations and scored turns."""
        self._answered: dict[Key, Ratio] = {}
        """Replies that answer over those that answer or decline."""
        self._complete: Counter[Key] = Counter()
        """Conversations with a verdict on each turn."""
        self._tokens: dict[str, list[int | None]] = defaultdict(list)
        """Tokens of all calls in a persona's conversations."""

    def add(self, conversation: Conversation, verdicts: ByDetector) -> None:
        """Count a conversation, with the verdicts of all detectors on it."""
        key = (conversation.persona, conversation.chatbot)
        tally = count_verdicts(conversation, verdicts.get(self._detector, {}))
        over, under = self._found.get(key, (0, 0))
        self._found[key] = over + tally.hallucinations, under + tally.scored_turns
        before = self._answered.get(key, Ratio(0, 0))
        self._answered[key] = Ratio(
            before.numerator + tally.answers, before.denominator + tally.answers + tally.declines
        )
        judged = tally.scored_turns + tally.failed + tally.abstained + tally.not_localised
        self._complete[key] += judged == tally.turns
        calls = [*conversation.calls, *(call for turn in conversation.turns for call in turn.calls)]
        calls += [call for found in verdicts.values() for verdict in found.values() for call in verdict.calls]
        if calls:
            self._tokens[conversation.persona].append(sum_calls(calls).tokens)

    def merge(self, other: PersonaTally) -> None:
        """Add counts of other personas."""
        self._found.update(other._found)
        self._answered.update(other._answered)
        self._complete.update(other._complete)
        self._tokens.update(other._tokens)

    def is_complete(self, persona: str, chatbots: Iterable[str], seeds: int) -> bool:
        """Return whether all these chatbots have so many judged conversations with a persona."""
        return all(self._complete[persona, chatbot] >= seeds for chatbot in chatbots)

    def rates(self, persona: str, chatbots: Sequence[str]) -> Mapping[str, float | None]:
        """Return the HPT of chatbots with a persona; None where no turn was scored."""
        found = {chatbot: self._found.get((persona, chatbot), (0, 0)) for chatbot in chatbots}
        return {chatbot: over / under if under else None for chatbot, (over, under) in found.items()}

    def answered(self, persona: str, chatbots: Sequence[str]) -> Mapping[str, Ratio]:
        """Return replies that answer over those that answer or decline, of chatbots with a persona."""
        return {chatbot: self._answered.get((persona, chatbot), Ratio(0, 0)) for chatbot in chatbots}

    def tokens(self, personas: Iterable[str]) -> int | None:
        """Return the tokens of all calls with personas; None where no server reported any."""
        return sum_known([count for persona in personas for count in self._tokens.get(persona, ())])


Ending = Literal["decided", "budget", "personas"]
"""Why a run ends: it is decided, the budget is spent, or all personas have talked."""


def split_batches(personas: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the personas of each batch.

    >>> [*split_batches("abcdef")]
    ['abcd', 'ef']
    """
    return (personas[start : start + BATCH] for start in range(0, len(personas), BATCH))


class SequentialTest:
    """Compares the chatbots after each batch, and says when the run ends.

    Args:
        of: the personas that there are.
    """

    def __init__(self, until: UntilDecided, chatbots: Sequence[str], of: int) -> None:
        self._until, self._of = until, of
        self._decider = Decider(chatbots, until.margin, until.keep_all)
        self._tokens: list[int | None] = []
        """Tokens of each batch."""
        self.decision: SequenceState = self._decider.state()
        self.ending: Ending | None = None
        """Why the run ends; None: it goes on."""

    @property
    def chatbots(self) -> tuple[str, ...]:
        """The chatbots that talk in the next batch."""
        return self._decider.next_chatbots

    @property
    def tokens(self) -> int | None:
        """Tokens of all calls so far; None: no server reports any."""
        return sum_known(self._tokens)

    def add_batch(self, batch: Sequence[str], tally: PersonaTally, seconds: Sequence[float] = ()) -> None:
        """Add a batch.

        Args:
            tally: counts of the conversations with its personas.
            seconds: how long each batch took, as far as that is known.
        """
        chatbots = self.chatbots
        for persona in batch:
            self._decider.add(persona, tally.rates(persona, chatbots), tally.answered(persona, chatbots))
        self._tokens.append(tally.tokens(batch))
        self.decision = self._decider.end_batch()
        if self.decision.kind != "open":
            self.ending = "decided"
        elif self._is_spent(math.fsum(seconds[: len(self._tokens)])):
            self.ending = "budget"
        elif self.decision.persons == self._of:
            self.ending = "personas"

    def _is_spent(self, seconds: float) -> bool:
        """Return whether the budget is spent."""
        used = {"personas": self.decision.persons, "tokens": self.tokens or 0, "minutes": seconds / 60}
        budget = self._until.budget
        return budget is not None and used[budget.unit] >= budget.amount

    def describe(self) -> str:
        """Say what is decided, why the run ends if it does so undecided, and who only answers less."""
        return " ".join([self._describe_end(), *_describe_silent(self.decision)])

    def _describe_end(self) -> str:
        found = describe_decision(self.decision)
        if self.ending == "budget":
            return f"{found[:-1]}: the budget of {self._until.budget} is spent."
        if self.ending == "personas":
            return (
                f"{found[:-1]}: all {self._of} personas of the experiment are spent, and "
                "`hallulab init-scenario --personas` writes more."
            )
        return found


def _describe_silent(decision: SequenceState) -> Iterator[str]:
    """Say which chatbots hallucinate less than another one and are not better, since they answer less."""
    for pair in decision.pairs:
        if pair.better is None and (pair.low >= 0 or pair.high <= 0):
            fewer, share, other, more = pair.a, pair.a_answered, pair.b, pair.b_answered
            if pair.low >= 0:
                fewer, share, other, more = other, more, fewer, share
            yield (
                f"{fewer} hallucinates less than {other}, but answers {share or 0:.1%} of replies against "
                f"{more or 0:.1%}: it is not called better."
            )


def retrace(saved: SavedExperiment, tally: PersonaTally) -> SequentialTest:
    """Repeat the test of a run up to its last batch that is complete: run and judged as a whole.

    Args:
        saved: the experiment, which has `until_decided` and `drawn`.
    """
    experiment, drawn = saved.experiment, saved.drawn
    until = experiment.until_decided
    assert until is not None
    assert drawn is not None
    test = SequentialTest(until, [bot.name for bot in experiment.chatbots], drawn.of)
    for batch in split_batches(drawn.personas[: until.most("personas")]):
        if not all(tally.is_complete(one, test.chatbots, experiment.repeats) for one in batch):
            break
        test.add_batch(batch, tally, drawn.seconds)
        if test.ending is not None:
            break
    return test


COLUMNS = (
    Column("a", "a", "a chatbot", kind="name", short="a"),
    Column("b", "b", "another one", kind="name", short="b"),
    Column("Personas", "persons", "personas scored with both", short="Personas"),
    Column("Δ HPT", "difference", "mean of HPT of a minus that of b", TWO_DECIMALS, short="Δ HPT"),
    Column("from", "low", "lower bound of the true difference, valid at whatever batch the run ends",
           TWO_DECIMALS, short="from"),
    Column("to", "high", "upper bound", TWO_DECIMALS, short="to"),
    Column("Answered a %", "a_answered",
           "share of answers among a's replies that answer or decline, over the personas of both", PERCENT,
           short="Answered\na %"),
    Column("b %", "b_answered", "the same for b", PERCENT, short="b %"),
)  # fmt: skip


class DecisionReport(Frozen):
    """How a run went on until it was decided."""

    detector: str
    """The detector that decides, the first of the experiment."""
    budget: str | None
    """The run's budget; None: all personas."""
    keep_all: bool
    """True if clearly worse chatbots continue."""
    of: int
    ending: Ending | None
    """Why it ended: `decided`, `budget` (spent), `personas` (all have talked); None: it has not ended."""
    sentence: str
    found: SequenceState
    """The decision, and what was known after each batch."""


class DecisionSection(Frozen):
    """Fields of `report.json`."""

    decision: DecisionReport | None = None
    """The decision of a run until it is decided; None: the run has a fixed size."""


class DecisionMetric(Metric):
    """Repeats the test of a run until it is decided."""

    SECTION = DecisionSection
    TABLES = (("Decision", COLUMNS),)
    ORDER, TERMINAL_ORDER = 4, 14

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        saved = run.deciding
        self._tally = None if saved is None else PersonaTally(saved.experiment.detectors[0].name)

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count a conversation under the detector that decides."""
        if self._tally is not None:
            self._tally.add(conversation, verdicts)

    def merge(self, other: Self) -> None:
        """Add the conversations of other personas."""
        if self._tally is not None and other._tally is not None:
            self._tally.merge(other._tally)

    def result(self, tallied: Tallied) -> DecisionSection:
        """Repeat the run's test."""
        saved = self.run.deciding
        if saved is None or self._tally is None:
            return DecisionSection()
        test, until = retrace(saved, self._tally), saved.experiment.until_decided
        assert until is not None
        assert saved.drawn is not None
        goes_on = " The run has not ended; the same command goes on with it." if test.ending is None else ""
        return DecisionSection(
            decision=DecisionReport(
                detector=saved.experiment.detectors[0].name,
                budget=None if until.budget is None else str(until.budget),
                keep_all=until.keep_all,
                of=saved.drawn.of,
                ending=test.ending,
                sentence=f"{test.describe()}{goes_on}",
                found=test.decision,
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
