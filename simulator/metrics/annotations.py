"""What annotators found in turns of a run: whose labels count, and what others say of the same turns."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hallulab.scenarios.datasets.annotations import (
    AnnotatedTurn,
    Draw,
    TurnPlace,
    choose_guideline,
    choose_lines,
)
from hallulab.scenarios.transcript import Count, Frozen
from hallulab.simulator.metrics.annotators_counts import AnnotatorPair

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
    """Whether these labels settle others' different ones."""


@dataclass(frozen=True)
class Annotations:
    """What annotators found in the turns that they looked at.

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
