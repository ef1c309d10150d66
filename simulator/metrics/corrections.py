"""A run's numbers corrected for a detector's mistakes, by the best source there is.

A chatbot with annotated turns is corrected by these (`prediction_powered`), else by what is known of the
detector (`prevalence`), else not at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from hallulab.scenarios.datasets.annotations import MODEL, NAMED, PERSON, is_person
from hallulab.scenarios.text.wording import format_count, join_names
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.metrics.annotations import LabelSource
from hallulab.simulator.metrics.corrected_pairs import CorrectedPair, choose_units, compare_corrected
from hallulab.simulator.metrics.judged_turns import Panel, TurnSums
from hallulab.simulator.statistics.bootstrap import compute_percentile_interval, is_mostly_defined
from hallulab.simulator.statistics.intervals import (
    Floats,
    Interval,
    Rounded,
    compute_t_interval,
    explain_no_interval,
)
from hallulab.simulator.statistics.prediction_powered import PPIEstimate, estimate_drawn_error, estimate_means
from hallulab.simulator.statistics.prevalence import (
    DetectorErrors,
    compute_run_error,
    draw_prevalences,
    solve_by_flags,
    solve_prevalence,
)

LEAST_ANNOTATED = 2
"""Annotated turns of a chatbot below which they correct nothing: one turn has no covariance."""
UNMEASURED = "no annotations, and the file of planted errors does not measure this detector"
UNKNOWN = "no annotations, and no known error rates"
"""Why a detector's numbers are not corrected, with and without such a file."""
UNSCORED = "no turn was scored with places"
AT_ITS_END = "a number at the end of its range has none"
SAME = "a number that is the same without each persona has none"
ONE_PLACE = "all annotations of a chatbot are in conversations with one persona"
_TIE = 1e-12
"""Errors below this are none."""
UNSURE = "where errors are seldom flagged more often than clean replies, nothing bounds the number"


class Correction(Frozen):
    """The numbers of a chatbot by a detector, corrected for the detector's mistakes."""

    chatbot: str | None
    """Name of the chatbot; None: all together."""
    depth: int | None = None
    """Exchanges before the turns; None: all turns."""
    source: Literal["annotations", "planted errors", "calibration"] | None = None
    """The basis of the corrected numbers; None: there are none."""
    turns: int = 0
    """Turns that the detector scored and localised; the numbers are over these."""
    annotated: int = 0
    """Those that people looked at."""
    weight: Rounded | None = None
    """λ of prediction-powered inference for HPT-1: 0 ignores the detector, 1 trusts it most."""
    measured: int | None = None
    """Wrong replies behind sensitivity."""
    sensitivity: Rounded | None = None
    """Share of the wrong replies that are flagged."""
    specificity: Rounded | None = None
    """Share of the clean replies that are not."""
    flagged_turns: Rounded | None = None
    """Share of the scored turns that are flagged."""
    hallucinated_turns: Rounded | None = None
    """That share, corrected, in [0, 1]."""
    hallucinated_turns_ci95: Interval = None
    hpt_1: Rounded | None = None
    """Hallucinations per scored turn, as the detector counts them."""
    corrected_hpt_1: Rounded | None = None
    """That number, corrected, not below 0; by a calibration, hallucinated sentences per scored turn."""
    corrected_hpt_1_ci95: Interval = None
    all_labelled_ci95: Interval = None
    """Interval of the HPT-1 that labels of all these turns would give; only by turns that hallulab drew."""
    clipped: Literal["below 0", "above 1"] | None = None
    """On which side the corrected share lay outside [0, 1], so that it was set to that end."""
    not_corrected: str | None = None
    """Why there is no corrected number."""
    no_interval: str | None = None
    """Why there is no interval, or only one."""


class Number(NamedTuple):
    """A corrected number."""

    value: float
    ci95: tuple[float, float] | None
    lacking: str | None


def compute_corrections(
    turns: TurnSums, chatbots: Sequence[str], known: DetectorErrors | None, unknown: str
) -> list[Correction]:
    """Correct the numbers of each chatbot and of all together, over all turns and then at each depth.

    Args:
        turns: sums of the scored turns of one detector.
        chatbots: all chatbots of the run, in the order of the rows.
        known: the detector's mistakes; None: not known.
        unknown: why not.
    """
    if not turns.depths:
        return [Correction(chatbot=name, not_corrected=UNSCORED) for name in (*chatbots, None)]
    found: list[Correction] = []
    for depth in (None, *turns.depths):
        found += _CorrectedPanel(turns.panel(chatbots, depth), chatbots, known, unknown).rows(depth)
    return found


def compare_chatbots(
    turns: TurnSums, chatbots: Sequence[str], known: DetectorErrors | None
) -> list[CorrectedPair]:
    """Compare the corrected HPT-1 of each two chatbots over all turns; arguments as `compute_corrections`."""
    if not turns.depths:
        return []
    panel = turns.panel(chatbots, None)
    return compare_corrected(panel, chatbots, find_powered(panel), known)


def find_powered(panel: Panel) -> list[int]:
    """Return the places of the chatbots that are corrected by annotations."""
    annotated = panel.looked_spans[:, :, 3].sum(axis=0)
    return [place for place, turns in enumerate(annotated) if turns >= LEAST_ANNOTATED]


class _CorrectedPanel:
    """The turns of all chatbots that are corrected together, as sums over personas.

    Shapes are (personas, chatbots, values).
    """

    def __init__(
        self, panel: Panel, chatbots: Sequence[str], known: DetectorErrors | None, unknown: str
    ) -> None:
        self._chatbots = chatbots
        self._known = known
        self._unknown = unknown
        self._flags, self._spans = panel.flags, panel.spans
        self._units = choose_units(panel, known)
        self._looked_flags, self._looked_spans = panel.looked_flags, panel.looked_spans
        self._draws = panel.draws
        self._powered = find_powered(panel)
        self._present = [place for place in range(len(chatbots)) if self._flags[:, place, 0].any()]

    def rows(self, depth: int | None) -> list[Correction]:
        """Return a row for each chatbot, and one for all."""
        share, count = (
            estimate_means(looked[:, self._powered], self._draws) if self._powered else []
            for looked in (self._looked_flags, self._looked_spans)
        )
        found: list[Correction] = []
        for place, name in enumerate(self._chatbots):
            at = self._powered.index(place) if place in self._powered else None
            looked = None if at is None else (share[at], count[at])
            found.append(self._row(name, depth, [place], looked))
        every = bool(self._powered) and self._powered == self._present
        found.append(self._row(None, depth, self._present, (share[-1], count[-1]) if every else None))
        return found

    def _row(
        self,
        name: str | None,
        depth: int | None,
        places: list[int],
        looked: tuple[PPIEstimate, PPIEstimate] | None,
    ) -> Correction:
        spans = self._spans[:, places].sum(axis=1)
        turns, _, said = (float(total) for total in spans.sum(axis=0))
        flagged = float(self._flags[:, places, 2].sum())
        fields: dict[str, Any] = {
            "turns": int(turns),
            "annotated": int(self._looked_spans[:, places, 3].sum()),
            "flagged_turns": flagged / turns if turns else None,
            "hpt_1": said / turns if turns else None,
        }
        if not turns:
            fields |= {"not_corrected": UNSCORED}
        elif looked is not None:
            fields |= {"source": "annotations", "weight": looked[1].weight}
            fields |= _build_number_fields(
                *(estimate_by_people(one, share=at == 0) for at, one in enumerate(looked))
            )
            # How many turns of a depth there are in a cell is known of drawn ones alone.
            if depth is None:
                fields |= {"all_labelled_ci95": self._bound_by_draws(looked[1].value, name)}
        elif self._known is None:
            fields |= {"not_corrected": self._unknown}
        else:
            fields |= self._by_rates(self._known, places)
        return Correction(chatbot=name, depth=depth, **fields)

    def _bound_by_draws(self, value: float, name: str | None) -> tuple[float, float] | None:
        """Return the interval of what labels of all turns would give, of a chatbot or of all."""
        totals = self._looked_spans[:, self._powered].sum(axis=0)
        part = None if name is None else self._powered.index(self._chatbots.index(name))
        found = estimate_drawn_error(totals, self._draws, part)
        return None if found is None else compute_t_interval(value, found.error, found.freedom, "log")

    def _by_rates(self, known: DetectorErrors, places: list[int]) -> dict[str, Any]:
        """Correct by what is known of the detector."""
        if known.accuracy is None:
            return {"not_corrected": "nothing was scored of what it was measured on"}
        sensitivity, specificity = known.accuracy
        fields: dict[str, Any] = {
            "source": known.source,
            "measured": int(known.replies[:, 3].sum()),
            "sensitivity": sensitivity,
            "specificity": specificity,
        }
        if not (known.reply_rates.value[1] > 0 and known.unit_rates.value[1] > 0):
            reason = (
                f"it flags {sensitivity:.0%} of what is wrong and {1 - specificity:.0%} of what is clean, so "
                "its flags do not tell the two apart (sensitivity + specificity must be above 1)"
                if sensitivity + specificity <= 1
                else "it says no more where an error is than where there is none"
            )
            return {**fields, "source": None, "not_corrected": reason}
        return fields | _build_number_fields(
            estimate_by_known(self._flags[:, places].sum(axis=1), known, share=True),
            estimate_by_known(self._units[:, places].sum(axis=1), known, share=False),
        )


def estimate_by_people(found: PPIEstimate, *, share: bool) -> Number:
    """Return a number by prediction-powered inference."""
    lacking = explain_no_interval(found.clusters, "annotated persona")
    if lacking is not None or found.error is None:
        return Number(found.value, None, lacking or ONE_PLACE)
    ci95 = compute_t_interval(found.value, found.error, found.clusters - 1, "arcsine" if share else "log")
    if ci95 is None:
        inside = 0 < found.value < (1 if share else math.inf)
        return Number(found.value, None, SAME if inside else AT_ITS_END)
    return Number(found.value, ci95, None)


def estimate_by_known(rows: Floats, known: DetectorErrors, *, share: bool) -> Number:
    """Return a number by the equation of Rogan and Gladen.

    Args:
        rows: turns, sentences, and what the detector says, of each cluster.
    """
    rates, is_single = (known.reply_rates, known.is_single) if share else (known.unit_rates, False)
    rows = rows[rows[:, 0] > 0]
    if share and not is_single:
        rows = rows[:, [0, 0, 2]]
    totals = rows.sum(axis=0)
    value = float((solve_by_flags if is_single else solve_prevalence)(totals, rates.value))
    lacking = explain_no_interval(len(rows)) or explain_no_interval(len(rates.groups), "measured group")
    if lacking is None and is_single and totals[2] == totals[0]:
        lacking = AT_ITS_END
    if lacking is None and value > 0 and not compute_run_error(rows, rates, is_single=is_single) > _TIE:
        lacking = SAME
    if lacking is not None:
        return Number(value, None, lacking)
    replicates = draw_prevalences(rows, rates, share=share, is_single=is_single)
    replicates = np.clip(replicates, 0.0, 1.0 if share else None)
    if not is_mostly_defined(replicates):
        return Number(value, None, UNSURE)
    ci95 = compute_percentile_interval(replicates)
    return Number(value, ci95, AT_ITS_END if ci95 is None else None)


def _build_number_fields(share: Number, count: Number) -> dict[str, Any]:
    """Return the fields of both numbers."""
    outside = not 0 <= share.value <= 1
    lacking = dict.fromkeys(one.lacking for one in (share, count) if one.lacking is not None)
    return {
        "hallucinated_turns": min(max(share.value, 0.0), 1.0),
        "hallucinated_turns_ci95": share.ci95,
        "corrected_hpt_1": max(count.value, 0.0),
        "corrected_hpt_1_ci95": count.ci95,
        "clipped": ("below 0" if share.value < 0 else "above 1") if outside else None,
        "no_interval": "; ".join(lacking) or None,
    }


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
    rows: Mapping[str, Sequence[Correction]], others: Mapping[LabelSource, Mapping[str, Sequence[Correction]]]
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
    named = one.annotator.removeprefix(NAMED) if is_person(one.annotator) else None
    who = f"model {one.annotator.removeprefix(MODEL)}" if named is None else named
    who = "people" if one.annotator == PERSON else who
    by = "" if one.guideline is None else f" (guideline {one.guideline})"
    settled = ", who settled others' different labels" if one.adjudicates else ""
    return f"{format_count(one.turns, 'turn')} by {who}{by}{settled}"
