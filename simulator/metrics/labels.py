"""By whom a run's turns were labelled, and whether others' labels name another chatbot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hallulab.scenarios.datasets.annotations import MODEL, NAMED, PERSON, is_person
from hallulab.scenarios.text.wording import format_count, join_names
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.metrics.annotations import LabelSource
from hallulab.simulator.metrics.corrections import Correction


class OtherWinner(Frozen):
    """Labels with which another chatbot has the lowest corrected HPT-1."""

    detector: str
    """Name of the detector whose numbers are corrected."""
    labels: LabelSource
    """Whose labels these are, and of how many turns in which another's label counts."""
    lowest: str
    """The chatbot with the lowest number, by the labels that count."""
    lowest_by_them: str
    """That with these labels in their place."""


def find_lowest(rows: Sequence[Correction]) -> str | None:
    """Return the chatbot with the lowest HPT-1 corrected by labels; None where fewer than two have one."""
    found = [
        (row.corrected_hpt_1, row.chatbot)
        for row in rows
        if row.chatbot is not None and row.source == "annotations" and row.corrected_hpt_1 is not None
    ]
    return min(found)[1] if len(found) > 1 else None


def compare_labels(
    rows: Mapping[str, Sequence[Correction]],
    others: Mapping[LabelSource, Mapping[str, Sequence[Correction]]],
) -> Iterator[OtherWinner]:
    """Yield whose labels change which chatbot has the lowest number under a detector.

    Args:
        rows: those of each detector, by the labels that count.
        others: the same with somebody's labels in their place.
    """
    for labels, found in others.items():
        for detector, own in rows.items():
            lowest, other = find_lowest(own), find_lowest(found[detector])
            if lowest is not None and other is not None and lowest != other:
                yield OtherWinner(detector=detector, labels=labels, lowest=lowest, lowest_by_them=other)


def describe_labels(sources: Sequence[LabelSource], changed: Sequence[OtherWinner]) -> Iterator[str]:
    """Say who labelled, and warn where other labels of the same turns would change the winner.

    Args:
        sources: whose labels count.
        changed: the labels that do.
    """
    if sources:
        parts = [*map(_describe_source, sources)]
        models = any(not is_person(one.annotator) for one in sources)
        people = any(is_person(one.annotator) for one in sources)
        ending = "" if not models else ", not only by people" if people else ", not by people"
        yield f"Labelled: {join_names(parts)}{ending}."
    for one in changed:
        yield (
            f"Warning: by {one.detector}, corrected, {one.lowest} has the lowest HPT-1; with other labels of "
            f"the same turns, {_describe_source(one.labels)}, it would be {one.lowest_by_them}."
        )


def _describe_source(one: LabelSource) -> str:
    settled = ", who settled others' different labels" if one.adjudicates else ""
    return f"{format_count(one.turns, 'turn')} by {_name_source(one)}{settled}"


def _name_source(one: LabelSource) -> str:
    named = one.annotator.removeprefix(NAMED) if is_person(one.annotator) else None
    who = f"model {one.annotator.removeprefix(MODEL)}" if named is None else named
    who = "people" if one.annotator == PERSON else who
    return who if one.guideline is None else f"{who} (guideline {one.guideline})"
