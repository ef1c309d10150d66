"""Annotations of turns of a run: whose labels count, and what others say of the same turns."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, combinations

from pydantic import Field

from hallulab.scenarios.datasets.annotations import (
    AnnotatedTurn,
    AnnotationLine,
    Draw,
    TurnPlace,
    choose_guideline,
    choose_lines,
)
from hallulab.scenarios.labelled import GoldSpan
from hallulab.scenarios.transcript import Count, Frozen
from hallulab.simulator.statistics.agreement import MarkedUnit, compute_cohens_kappa, compute_gamma
from hallulab.simulator.statistics.intervals import Rounded

Spans = Sequence[GoldSpan]


class AnnotatorPair(Frozen):
    """Two annotators on the turns that both labelled under one guideline: a row of `annotators`."""

    annotator: str
    other: str
    guideline: str | None
    """Hash of the guideline; None: not known."""
    turns: Count
    same: Count
    """Those that both, or neither, call hallucinated."""
    kappa: Rounded | None
    """Cohen's kappa of that; None: all are called the same."""
    places: Count
    gamma: Rounded | None
    """Gamma of where they are and how severe; None: not defined."""
    no_gamma: str | None
    # The label page shows these two; report.json never had them.
    spans: Count = Field(default=0, exclude=True)
    """Hallucinations by either, in these turns."""
    shared: Count = Field(default=0, exclude=True)
    """Those that share a character with one by the other."""


@dataclass(frozen=True)
class Conflict:
    """A turn on which annotators do not agree."""

    place: TurnPlace
    counts: Mapping[str, int]
    """Annotator → hallucinations."""
    guideline: str | None
    """Hash of the guideline; None: not known."""
    decision: AnnotationLine | None = None
    """The line that settles it; None: it is open."""

    @property
    def of_kind(self) -> bool:
        """True if one calls the turn hallucinated and another does not."""
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
    found = compute_gamma(
        [_list_units(one) for one, _ in both],
        [_list_units(two) for _, two in both],
        [one.length for one, _ in both],
    )
    return AnnotatorPair(
        annotator=names[0],
        other=names[1],
        guideline=guideline,
        turns=len(both),
        same=sum(one == two for one, two in zip(first, second, strict=True)),
        kappa=compute_cohens_kappa(first, second),
        places=found.units,
        gamma=found.gamma,
        no_gamma=found.undefined,
        spans=sum(len(one.spans) + len(two.spans) for one, two in both),
        shared=sum(
            _count_shared(one.spans, two.spans) + _count_shared(two.spans, one.spans) for one, two in both
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


Labeller = tuple[str, str | None]
"""Annotator, and hash of the guideline, if it is known."""


class LabelSource(Frozen):
    """Who labelled, and by which guideline: an item of `labelled_by` in `report.json`."""

    annotator: str
    """`person`, or `model:` and its name."""
    guideline: str | None
    """Hash of the guideline; None: not known."""
    turns: Count
    adjudicates: bool = False
    """True if these labels resolve others' differences."""


@dataclass(frozen=True)
class Annotations:
    """Annotations of the turns that annotators looked at.

    Of a turn with several labels one counts: that under the guideline of most labels; of these, the one that
    adjudicates, and a person's before a model's.
    """

    counts: Mapping[TurnPlace, int] = field(default_factory=dict)
    """Hallucinations in a turn. 0: they looked and found none. A turn that is not there was not looked at."""
    drawn: Mapping[TurnPlace, Draw] = field(default_factory=dict)
    """How turns were drawn, as far as hallulab drew them."""
    sources: tuple[LabelSource, ...] = ()
    others: Mapping[Labeller, Mapping[TurnPlace, int]] = field(default_factory=dict)
    """Who labelled turns in which another's label counts → what was found in these."""
    pairs: tuple[AnnotatorPair, ...] = ()
    """How far every two annotators agree; empty: not looked up."""
    left_out: int = 0
    """Labels of conversations that do not count any more."""

    def by(self, labeller: Labeller) -> Annotations:
        """Return these with somebody's labels in the place of those that count."""
        return Annotations({**self.counts, **self.others[labeller]}, self.drawn)


def describe_left_out(labels: int) -> list[str]:
    """Say how many labels of conversations that do not count any more are left out; nothing if none are."""
    return (
        [f"Labels left out, because their conversations do not count any more: {labels}."] if labels else []
    )


def count_annotations(turns: Sequence[AnnotatedTurn]) -> Annotations:
    """Count what was found in each turn."""
    lines = [one.line for one in turns]
    main = choose_guideline(lines)
    chosen = choose_lines(lines)
    others: dict[Labeller, dict[TurnPlace, int]] = defaultdict(dict)
    for at, one in enumerate(turns):
        if chosen[one.line.place] != at and not one.line.adjudicates:
            others[one.line.annotator, one.line.guideline][one.line.place] = len(one.spans)
    by = Counter(
        (lines[at].annotator, lines[at].guideline, bool(lines[at].adjudicates)) for at in chosen.values()
    )
    drawn = {line.place: line.drawn for line in lines if line.drawn is not None}
    return Annotations(
        counts={place: len(turns[at].spans) for place, at in chosen.items()},
        drawn={place: draw for place, draw in drawn.items() if place in chosen},
        sources=tuple(
            LabelSource(annotator=annotator, guideline=guideline, turns=number, adjudicates=adjudicates)
            for (annotator, guideline, adjudicates), number in sorted(
                by.items(),
                key=lambda one: (-one[1], one[0][0], one[0][1] != main, one[0][1] or "", one[0][2]),
            )
        ),
        others=dict(others),
    )
