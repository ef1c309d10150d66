"""How far detectors agree on which turns to flag, and annotators on what is hallucinated there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations, count

import numpy as np
from markupsafe import Markup

from hallulab.scenarios.datasets.annotations import NAMED
from hallulab.scenarios.text.wording import (
    NOTHING,
    choose_noun,
    format_count,
    format_number,
    format_with_interval,
)
from hallulab.scenarios.transcript import Conversation, Frozen
from hallulab.simulator.metrics.annotations import AnnotatorPair
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.metric import Flaws, Metric, RunFacts, TableMetric, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.show.columns import TWO_DECIMALS, Column
from hallulab.simulator.show.document import GroupedTable, Paragraph, Section
from hallulab.simulator.statistics.agreement import (
    compute_cohens_kappa,
    compute_krippendorffs_alpha,
    count_pairs,
    count_units,
)
from hallulab.simulator.statistics.intervals import Floats, Interval, Rounded, compute_kappa_interval
from hallulab.simulator.statistics.sums import Person, PersonSums


class PairAgreement(Frozen):
    """Two detectors on the turns that both scored."""

    a: str
    b: str
    turns: int
    agreement: Rounded | None
    """Share of them on which the two flags are equal; None without such turns."""
    kappa: Rounded | None
    """Cohen's kappa; None where all ratings are equal, for example where neither ever flags."""
    kappa_ci95: Interval
    """Over personas; None with fewer than six, and where kappa is not defined without one of them."""


class Agreement(Frozen):
    """All detectors of a run on the same turns."""

    detectors: tuple[str, ...]
    turns: int
    alpha: Rounded | None
    """Krippendorff's alpha for nominal data; None without such turns, or where all ratings are the same."""
    pairs: tuple[PairAgreement, ...]


class AgreementSection(Frozen):
    """Fields of `report.json`."""

    agreement: Agreement
    """Agreement of the detectors on the same turns."""


class DetectorAgreement(Metric):
    """Collects what detectors flag. Failures and abstentions are no ratings."""

    SECTION = AgreementSection
    ORDER = TERMINAL_ORDER = 70
    COUNTS = ("_flags",)

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._flags = PersonSums(1)
        """Number of turns, by the detectors' flags."""

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Add the verdicts on a conversation."""
        person = (conversation.scenario, conversation.persona)
        for turn in {turn for found in verdicts.values() for turn in found}:
            judged = [verdicts.get(name, {}).get(turn) for name in self.run.detectors]
            flags = tuple(None if verdict is None else verdict.flagged for verdict in judged)
            self._flags.add(person, flags, (1,))

    def result(self, tallied: Tallied) -> AgreementSection:
        """Compare the flags of the detectors."""
        return AgreementSection(agreement=_compute_agreement(self.run.detectors, self._flags))

    @classmethod
    def lines(cls, report: RunReport) -> Sequence[str]:
        """Say how far the detectors agree; nothing if only one judged."""
        return describe_agreement(report.of(AgreementSection).agreement)

    @classmethod
    def section(cls, report: RunReport) -> Section | None:
        """Show every two detectors in a matrix; nothing if only one judged."""
        found = report.of(AgreementSection).agreement
        if len(found.detectors) < 2:
            return None
        text = Markup(
            "On flagging the same turns: share of the turns that both scored on which two detectors agree, "
            "and in brackets Cohen’s kappa, which is 0 for agreement by chance. Krippendorff’s alpha of all "
            "detectors, over {} {}: <b>{}</b>."
        )
        turns = choose_noun(found.turns, "turn")
        hint = text.format(found.turns, turns, format_number(found.alpha, 2))
        parts = (Paragraph(hint), _build_matrix(found))
        return Section("agreement", "Agreement of the detectors", parts, "Agreement")


def _build_matrix(found: Agreement) -> GroupedTable:
    """Return a row and a column for each detector. Names may have dots, so fields are numbers."""
    pairs = {frozenset((pair.a, pair.b)): pair for pair in found.pairs}
    rows = []
    for one in found.detectors:
        row: dict[str, object] = {"detector": one}
        for place, other in enumerate(found.detectors):
            pair = pairs.get(frozenset((one, other)))
            row[str(place)] = None if pair is None else pair.agreement
            row[f"kappa {place}"] = None if pair is None else f"({format_number(pair.kappa, 2)})"
        rows.append(row)
    columns = [
        Column(name, str(place), format=_format_share, beside=f"kappa {place}")
        for place, name in enumerate(found.detectors)
    ]
    return GroupedTable([Column("Detector", "detector", kind="name"), *columns], [rows])


def _format_share(share: float | None) -> str:
    return NOTHING if share is None else f"{format_number(share, 0, 100)}%"


def _compute_agreement(detectors: Sequence[str], sums: PersonSums) -> Agreement:
    flags = {unit: sum(turns for _, (turns,) in sums.items(unit)) for unit in sums.keys}
    raters = list(zip(*flags, strict=True)) or [()] * len(detectors)
    times = list(flags.values())
    pairs = []
    for (at, a, one), (to, b, two) in combinations(zip(count(), detectors, raters, strict=False), 2):
        both = count_pairs(one, two, times)
        turns = both.total()
        same = sum(number for (x, y), number in both.items() if x == y)
        pairs.append(
            PairAgreement(
                a=a,
                b=b,
                turns=turns,
                agreement=same / turns if turns else None,
                kappa=compute_cohens_kappa(one, two, times),
                kappa_ci95=compute_kappa_interval(_tabulate_pair(sums, at, to)),
            )
        )
    return Agreement(
        detectors=tuple(detectors),
        turns=sum(number for unit, number in count_units(raters, times).items() if len(unit) > 1),
        alpha=compute_krippendorffs_alpha(raters, times),
        pairs=tuple(pairs),
    )


def _tabulate_pair(sums: PersonSums, at: int, to: int) -> Floats:
    """Count each persona's turns that both flag, the one alone, the other alone, and neither."""
    tables: dict[Person, list[float]] = defaultdict(lambda: [0.0] * 4)
    for flags in sums.keys:
        if flags[at] is not None and flags[to] is not None:
            for person, (turns,) in sums.items(flags):
                tables[person][2 * (not flags[at]) + (not flags[to])] += turns
    return np.array([tables[person] for person in sorted(tables)]).reshape(-1, 4)


def describe_agreement(agreement: Agreement) -> list[str]:
    """Say how far the detectors agree on which turns to flag; nothing if only one judged."""
    found = [
        f"agreement of {pair.a} and {pair.b}: {format_number(pair.agreement, 0, 100)}% of "
        f"{format_count(pair.turns, 'turn')}, kappa {format_with_interval(pair.kappa, pair.kappa_ci95, 2)}."
        for pair in agreement.pairs
        if pair.turns
    ]
    if len(found) > 1:
        turns = format_count(agreement.turns, "turn")
        found.append(
            f"agreement of all detectors: Krippendorff's alpha {format_number(agreement.alpha, 2)} over "
            f"{turns}."
        )
    return found


def _name(annotator: str) -> str:
    return annotator.removeprefix(NAMED)


class AnnotatorAgreement(TableMetric[AnnotatorPair]):
    """Compares every two annotators by their own labels, without adjudicated ones."""

    NAME, TITLE, LINK, ROW = "annotators", "Agreement of annotators", "annotators", AnnotatorPair
    ORDER = TERMINAL_ORDER = 52
    FILE = "with rows"
    COLUMNS = (
        Column("Annotator", "annotator", "one annotator", _name, kind="name", short="Annotator"),
        Column("Other", "other", "another, under the same guideline", _name, kind="text", short="Other"),
        Column("Guideline", "guideline", "hash of the guideline", lambda hash_of: hash_of or NOTHING,
               kind="text"),
        Column("Turns", "turns", "turns that both labelled", short="Turns"),
        Column("Same", "same", "those that both, or neither, call hallucinated", short="Same"),
        Column("Kappa", "kappa", "Cohen's kappa of that; 0: as by chance", TWO_DECIMALS, short="Kappa"),
        Column("Places", "places", "hallucinations by either in these turns", short="Places"),
        Column("Gamma", "gamma",
               "γ of places and severities (Mathet and others 2015); 1: the same, 0: as by chance",
               TWO_DECIMALS, short="Gamma"),
    )  # fmt: skip

    def table(self, tallied: Tallied) -> Sequence[AnnotatorPair]:
        """Return a row for every two annotators who labelled a turn under the same guideline."""
        return self.run.annotations.pairs

    @classmethod
    def lines(cls, report: RunReport) -> Sequence[str]:
        """Say why there is no gamma."""
        return [
            f"No gamma of {_name(row.annotator)} and {_name(row.other)}: {row.no_gamma}."
            for row in cls.rows(report)
            if row.no_gamma is not None
        ]

    @classmethod
    def hints(cls, report: RunReport) -> Sequence[str]:
        """Say what is compared, and why there is no gamma."""
        about = "By the annotators' own labels alone; decisions on what they differ in are not compared."
        return (about, *cls.lines(report))
