"""A detector's mistakes as measured elsewhere: on planted errors, or by its calibration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import ConfigDict, ValidationError

from hallulab.detectors.base.thresholds import Fitted
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import choose_main_error, explain_error, read_text
from hallulab.scenarios.files.json_text import parse_json
from hallulab.scenarios.transcript import Count, Frozen
from hallulab.simulator.statistics.prevalence import DetectorErrors


class PairCounts(Frozen):
    """Counts of a detector on the planted errors of a group, and on their clean twins."""

    pairs: Count
    """Pairs of which it scored and localised both."""
    errors_flagged: Count
    """Replies with an error that are flagged."""
    twins_flagged: Count
    error_spans: Count
    """Spans in the replies with an error."""
    twin_spans: Count
    error_sentences: Count
    """Sentences of the replies with an error."""
    twin_sentences: Count


class Accuracy(Frozen):
    """A detector on planted errors: an item of `planted_counts` in the JSON of `hallulab bench`."""

    detector: str
    version: str
    all_pairs: Count
    """Pairs of the data, scored or not."""
    groups: tuple[PairCounts, ...]
    """The pairs that it scored, by group of the data."""

    @property
    def pairs(self) -> int:
        """Pairs of which it scored and localised both."""
        return sum(group.pairs for group in self.groups)


def derive_from_planted_errors(accuracy: Accuracy) -> DetectorErrors:
    """Return the mistakes that planted errors and their clean twins show."""
    groups = [group for group in accuracy.groups if group.pairs]
    replies = [
        (each.pairs, each.twins_flagged, each.twin_sentences,
         each.pairs, each.errors_flagged, each.error_sentences)
        for each in groups
    ]  # fmt: skip
    units = [
        (each.twin_sentences, each.twin_spans, each.pairs, each.error_spans, each.error_sentences)
        for each in groups
    ]
    return build_errors("planted errors", replies, units)


def derive_from_calibration(fitted: Fitted) -> DetectorErrors:
    """Return the mistakes that a calibration shows; a wrong sentence is an error."""
    replies = [(group.replies, group.sentences) for group in fitted.groups]
    return build_errors(
        "calibration",
        [
            (one.clean, one.clean_flagged, of.clean, one.wrong, one.wrong_flagged, of.wrong)
            for one, of in replies
        ],
        [(of.clean, of.clean_flagged, of.wrong, of.wrong_flagged, of.wrong) for _, of in replies],
    )


def build_errors(
    source: Literal["planted errors", "calibration"],
    replies: Sequence[Sequence[float]],
    units: Sequence[Sequence[float]],
) -> DetectorErrors:
    """Make the mistakes of their counts, by group."""
    return DetectorErrors(
        source,
        np.array(replies, dtype=np.float64).reshape(-1, 6),
        np.array(units, dtype=np.float64).reshape(-1, 5),
    )


MAKE = "`hallulab bench FOLDER --detectors NAMES --json FILE` on a folder of `hallulab make-data planted`"


class _BenchFile(Frozen):
    """The fields of a benchmark's JSON that are read."""

    model_config = ConfigDict(extra="ignore")

    planted_counts: tuple[Accuracy, ...]


def read_accuracies(path: Path) -> dict[str, Accuracy]:
    """Read the detectors' accuracies of a benchmark's JSON, by detector.

    Raises:
        UsageError: it cannot be read, or is not the JSON of a benchmark on planted errors.
    """
    try:
        value: Any = parse_json(read_text(path))
        if not isinstance(value, Mapping) or value.get("planted_counts") is None:
            raise UsageError(f"--planted {path}: it has no `planted_counts`. Make it with {MAKE}.")
        return {one.detector: one for one in _BenchFile.model_validate(value).planted_counts}
    except ValidationError as error:
        first = choose_main_error(error)
        flaw = f"field `{'.'.join(map(str, first['loc']))}`: {explain_error(first)}"
    except ValueError as error:
        flaw = f"not valid JSON ({error})"
    raise UsageError(f"--planted {path}: {flaw}. Recreate it with {MAKE}.")


def require_measured(accuracies: Mapping[str, Accuracy], judged: Iterable[tuple[str, str]]) -> None:
    """Check that the detectors that judged were measured, in the version that judged.

    Args:
        accuracies: what was measured, by detector.

    Raises:
        UsageError: none of them was measured, or one was in another version.
    """
    judged = sorted(set(judged))
    for detector, version in judged:
        known = accuracies.get(detector)
        if known is not None and known.version != version:
            raise UsageError(
                f"--planted: it measures version {known.version or 'unknown'} of {detector}, and version "
                f"{version} judged this run (other options, prompts, seed, model or code). Measure that one: "
                f"{MAKE}, with the run's --config."
            )
    if judged and not any(detector in accuracies for detector, _ in judged):
        names = ", ".join(dict.fromkeys(detector for detector, _ in judged))
        raise UsageError(f"--planted: it measures none of {names}. Make it with {MAKE}.")
