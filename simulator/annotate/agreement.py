"""How far the annotators of a run agree, and where they do not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from hallulab.scenarios.datasets.gold import AnnotatedTurn, TurnPlace
from hallulab.scenarios.labelled import GoldSpan
from hallulab.simulator.measure.agreement import compute_cohens_kappa

Spans = Sequence[GoldSpan]


@dataclass(frozen=True)
class AnnotatorPair:
    """How far two annotators agree on the turns that both labelled under the same guideline."""

    annotators: tuple[str, str]
    """Who."""
    guideline: str | None
    """Hash of the guideline; None: not known."""
    turns: int
    """Turns that both labelled."""
    same: int
    """Those that both, or neither, call hallucinated."""
    kappa: float | None
    """Cohen's kappa of that; None: there are no such turns, or all are called the same."""
    spans: int
    """Hallucinations by either, in these turns."""
    shared: int
    """Those that share a character with one by the other."""


@dataclass(frozen=True)
class Conflict:
    """A turn on which annotators do not agree."""

    place: TurnPlace
    """The turn."""
    counts: Mapping[str, int]
    """Annotator → hallucinations."""
    guideline: str | None
    """Hash of the guideline; None: not known."""

    @property
    def of_kind(self) -> bool:
        """Whether one calls the turn hallucinated and another does not."""
        return 0 in self.counts.values()


def compare_annotators(turns: Sequence[AnnotatedTurn]) -> list[AnnotatorPair]:
    """Compare each two annotators who labelled turns under the same guideline."""
    found = []
    for guideline, by in _group(turns).items():
        for one, two in combinations(sorted(by), 2):
            both = sorted(by[one].keys() & by[two].keys())
            if both:
                found.append(_compare((one, two), guideline, [(by[one][at], by[two][at]) for at in both]))
    return found


def _compare(names: tuple[str, str], guideline: str | None, both: list[tuple[Spans, Spans]]) -> AnnotatorPair:
    first, second = [bool(one) for one, _ in both], [bool(two) for _, two in both]
    return AnnotatorPair(
        annotators=names,
        guideline=guideline,
        turns=len(both),
        same=sum(one == two for one, two in zip(first, second, strict=True)),
        kappa=compute_cohens_kappa(first, second),
        spans=sum(len(one) + len(two) for one, two in both),
        shared=sum(_count_shared(one, two) + _count_shared(two, one) for one, two in both),
    )


def _count_shared(own: Spans, others: Spans) -> int:
    return sum(any(one.start < two.end and two.start < one.end for two in others) for one in own)


def list_conflicts(turns: Sequence[AnnotatedTurn]) -> list[Conflict]:
    """Return the turns in which annotators count differently, first those that one calls clean."""
    found = []
    for guideline, by in _group(turns).items():
        counts: dict[TurnPlace, dict[str, int]] = defaultdict(dict)
        for name in sorted(by):
            for place, spans in by[name].items():
                counts[place][name] = len(spans)
        found += [
            Conflict(place, own, guideline) for place, own in counts.items() if len(set(own.values())) > 1
        ]
    return sorted(found, key=lambda one: (not one.of_kind, one.place))


def _group(turns: Sequence[AnnotatedTurn]) -> dict[str | None, dict[str, dict[TurnPlace, Spans]]]:
    """Return the spans of turns, by guideline and annotator."""
    found: dict[str | None, dict[str, dict[TurnPlace, Spans]]] = defaultdict(lambda: defaultdict(dict))
    for turn in turns:
        found[turn.line.guideline][turn.line.annotator][turn.line.place] = turn.spans
    return found
