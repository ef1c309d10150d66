"""By whom a run's turns were labelled, and whether labels under another guideline name another chatbot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hallulab.scenarios.datasets.gold import MODEL, PERSON
from hallulab.scenarios.text.wording import format_count, join_names
from hallulab.scenarios.transcript import Count, Frozen
from hallulab.simulator.measure.annotations import LabelSource
from hallulab.simulator.measure.corrections import Correction


class OtherWinner(Frozen):
    """A guideline under which another chatbot has the lowest corrected HPT-1."""

    detector: str
    """Name of the detector whose numbers are corrected."""
    guideline: str
    """Hash of the other guideline."""
    turns: Count
    """Turns that have labels under it, too."""
    lowest: str
    """The chatbot with the lowest number, by the labels that count."""
    lowest_under_it: str
    """That with the labels under the other guideline in their place."""


def find_lowest(rows: Sequence[Correction]) -> str | None:
    """Return the chatbot with the lowest HPT-1 corrected by labels; None where fewer than two have one."""
    found = [
        (row.corrected_hpt_1, row.chatbot)
        for row in rows
        if row.chatbot is not None and row.source == "annotations" and row.corrected_hpt_1 is not None
    ]
    return min(found)[1] if len(found) > 1 else None


def compare_guidelines(
    rows: Mapping[str, Sequence[Correction]],
    others: Mapping[str, Mapping[str, Sequence[Correction]]],
    turns: Mapping[str, int],
) -> Iterator[OtherWinner]:
    """Yield each guideline that changes which chatbot has the lowest number under a detector.

    Args:
        rows: those of each detector, by the labels that count.
        others: the same by guideline, with the labels under it in their place.
        turns: by guideline, those that have labels under it, too.
    """
    for guideline, found in others.items():
        for detector, own in rows.items():
            lowest, other = find_lowest(own), find_lowest(found[detector])
            if lowest is not None and other is not None and lowest != other:
                yield OtherWinner(
                    detector=detector,
                    guideline=guideline,
                    turns=turns[guideline],
                    lowest=lowest,
                    lowest_under_it=other,
                )


def describe_labels(sources: Sequence[LabelSource], changed: Sequence[OtherWinner]) -> Iterator[str]:
    """Say who labelled, and warn where another guideline would change the winner.

    Args:
        sources: whose labels count.
        changed: the guidelines that do.
    """
    if sources:
        parts = [f"{format_count(one.turns, 'turn')} by {_name_source(one)}" for one in sources]
        models = any(one.annotator != PERSON for one in sources)
        people = any(one.annotator == PERSON for one in sources)
        ending = "" if not models else ", not only by people" if people else ", not by people"
        yield f"Labelled: {join_names(parts)}{ending}."
    for one in changed:
        yield (
            f"Warning: by {one.detector}, corrected, {one.lowest} has the lowest HPT-1; under guideline "
            f"{one.guideline}, by which {format_count(one.turns, 'turn')} {_are(one.turns)} labelled, too, "
            f"it would be {one.lowest_under_it}."
        )


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _name_source(one: LabelSource) -> str:
    who = "people" if one.annotator == PERSON else f"model {one.annotator.removeprefix(MODEL)}"
    return who if one.guideline is None else f"{who} (guideline {one.guideline})"
