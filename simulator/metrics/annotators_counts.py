"""How far the annotators of a run agree, and where they do not."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations

from hallulab.scenarios.datasets.annotations import AnnotatedTurn, AnnotationLine, TurnPlace
from hallulab.scenarios.labelled import GoldSpan
from hallulab.simulator.statistics.agreement import compute_cohens_kappa
from hallulab.simulator.statistics.gamma import MarkedUnit, SpanAgreement, compute_gamma

Spans = Sequence[GoldSpan]


@dataclass(frozen=True)
class AnnotatorPair:
    """How far two annotators agree on the turns that both labelled under the same guideline."""

    annotators: tuple[str, str]
    guideline: str | None
    """Hash of the guideline; None: not known."""
    turns: int
    same: int
    """Those that both, or neither, call hallucinated."""
    kappa: float | None
    """Cohen's kappa of that; None: there are no such turns, or all are called the same."""
    spans: int
    """Hallucinations by either, in these turns."""
    shared: int
    """Those that share a character with one by the other."""
    places: SpanAgreement
    """Gamma of places and severities."""


@dataclass(frozen=True)
class Conflict:
    """A turn on which annotators do not agree."""

    place: TurnPlace
    """The turn."""
    counts: Mapping[str, int]
    """Annotator → hallucinations."""
    guideline: str | None
    """Hash of the guideline; None: not known."""
    decision: AnnotationLine | None = None
    """The line that settles it; None: it is open."""

    @property
    def of_kind(self) -> bool:
        """Whether one calls the turn hallucinated and another does not."""
        return 0 in self.counts.values() and any(self.counts.values())


def compare_annotators(turns: Sequence[AnnotatedTurn]) -> list[AnnotatorPair]:
    """Compare each two annotators who labelled turns under the same guideline, by their own labels alone."""
    found = []
    for guideline, by in _group(turns).items():
        for one, two in combinations(sorted(by), 2):
            both = sorted(by[one].keys() & by[two].keys())
            if both:
                found.append(_compare((one, two), guideline, [(by[one][at], by[two][at]) for at in both]))
    return found


def _compare(
    names: tuple[str, str], guideline: str | None, both: list[tuple[AnnotatedTurn, AnnotatedTurn]]
) -> AnnotatorPair:
    first, second = [bool(one.spans) for one, _ in both], [bool(two.spans) for _, two in both]
    return AnnotatorPair(
        annotators=names,
        guideline=guideline,
        turns=len(both),
        same=sum(one == two for one, two in zip(first, second, strict=True)),
        kappa=compute_cohens_kappa(first, second),
        spans=sum(len(one.spans) + len(two.spans) for one, two in both),
        shared=sum(
            _count_shared(one.spans, two.spans) + _count_shared(two.spans, one.spans) for one, two in both
        ),
        places=compute_gamma(
            [_list_units(one) for one, _ in both],
            [_list_units(two) for _, two in both],
            [one.length for one, _ in both],
        ),
    )


def _list_units(turn: AnnotatedTurn) -> list[MarkedUnit]:
    return [
        MarkedUnit(span.start, span.end, quoted.severity)
        for span, quoted in zip(turn.spans, turn.line.spans, strict=True)
    ]


def _count_shared(own: Spans, others: Spans) -> int:
    starts = sorted(two.start for two in others)
    # How far those that begin up to each one reach.
    reach = [*accumulate((two.end for two in sorted(others, key=lambda two: two.start)), max, initial=0)]
    return sum(reach[bisect_left(starts, one.end)] > one.start for one in own)


def list_conflicts(turns: Sequence[AnnotatedTurn]) -> list[Conflict]:
    """Return the turns in which annotators have different numbers of places, or one that the other has not.

    Places that share a character are the same. Open conflicts come first; of these, the turns that one calls
    clean.
    """
    settled = {(turn.line.place, turn.line.guideline): turn.line for turn in turns if turn.line.adjudicates}
    found = []
    for guideline, by in _group(turns).items():
        labels: dict[TurnPlace, dict[str, Spans]] = defaultdict(dict)
        for name in sorted(by):
            for place, turn in by[name].items():
                labels[place][name] = turn.spans
        for place, own in labels.items():
            if any(_differ(one, two) for one, two in combinations(own.values(), 2)):
                line = settled.get((place, guideline))
                line = line if line is not None and own.keys() <= set(line.adjudicates) else None
                counts = {name: len(spans) for name, spans in own.items()}
                found.append(Conflict(place, counts, guideline, line))
    return sorted(found, key=lambda one: (one.decision is not None, not one.of_kind, one.place))


def _differ(one: Spans, two: Spans) -> bool:
    alone = len(one) + len(two) - _count_shared(one, two) - _count_shared(two, one)
    return len(one) != len(two) or alone > 0


def _group(turns: Sequence[AnnotatedTurn]) -> dict[str | None, dict[str, dict[TurnPlace, AnnotatedTurn]]]:
    """Return annotators' own labels of turns, by guideline and annotator."""
    found: dict[str | None, dict[str, dict[TurnPlace, AnnotatedTurn]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for turn in turns:
        if not turn.line.adjudicates:
            found[turn.line.guideline][turn.line.annotator][turn.line.place] = turn
    return found
