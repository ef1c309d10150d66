"""Correct a run's numbers for its detectors' mistakes, which `hallulab bench` measured on planted errors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, ValidationError

from scenarios.errors import UsageError
from scenarios.files.data_files import in_words, main_error, read_text
from scenarios.files.json_text import parse_json
from scenarios.transcript import Frozen
from simulator.measure.metrics import Tallies, Tally
from simulator.measure.prevalence import Accuracy, Correction, Flags, corrected
from simulator.runs.journals import VerdictKey

MAKE = "`hallulab bench FOLDER --detectors NAMES --json FILE` on a folder of `hallulab plant`"
"""How the file is made."""
ALL = "all chatbots"
"""Name of the row of all chatbots together."""
UNMEASURED = "the file of planted errors does not measure this detector"
"""Why a detector's numbers are not corrected."""


class CorrectedRow(Correction):
    """One chatbot, or all of them, under one detector: a row of `corrected` in `report.json`."""

    chatbot: str | None
    """Name of the chatbot; None: all together."""
    detector: str
    """Name of the detector."""


class _BenchFile(Frozen):
    """What is read of a benchmark's JSON."""

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
            raise UsageError(f"--planted {path}: it holds no `planted_counts`. Make it with {MAKE}.")
        return {one.detector: one for one in _BenchFile.model_validate(value).planted_counts}
    except ValidationError as error:
        first = main_error(error)
        flaw = f"field `{'.'.join(map(str, first['loc']))}`: {in_words(first)}"
    except ValueError as error:
        flaw = f"not valid JSON ({error})"
    raise UsageError(f"--planted {path}: {flaw}. Make it anew with {MAKE}.")


def require_measured(accuracies: Mapping[str, Accuracy], verdicts: Iterable[VerdictKey]) -> None:
    """Check that the detectors of the verdicts were measured, in the version that judged.

    Raises:
        UsageError: none of them was measured, or one was in another version.
    """
    judged = sorted({(verdict.detector, verdict.version) for verdict in verdicts})
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


def correct(tallies: Tallies, accuracies: Mapping[str, Accuracy]) -> tuple[CorrectedRow, ...]:
    """Make a row for every detector and chatbot, in the order of the tallies, then one for all chatbots."""
    found = []
    for detector in dict.fromkeys(detector for _, detector in tallies):
        own = {chatbot: items for (chatbot, judge), items in tallies.items() if judge == detector}
        accuracy = accuracies.get(detector)
        found += [_row(chatbot, detector, items, accuracy) for chatbot, items in own.items()]
        found.append(_row(None, detector, [item for items in own.values() for item in items], accuracy))
    return tuple(found)


def _row(
    chatbot: str | None, detector: str, tallies: Sequence[Tally], accuracy: Accuracy | None
) -> CorrectedRow:
    said = [Flags(one.scored_turns, one.flagged_turns, one.hallucinations) for one in tallies]
    known = accuracy or Accuracy(detector=detector, version="", all_pairs=0, groups=())
    found = dict(corrected([one for one in said if one.turns], known))
    if accuracy is None:
        found["not_corrected"] = UNMEASURED
    return CorrectedRow(chatbot=chatbot, detector=detector, **found)


def correction_lines(rows: Sequence[CorrectedRow]) -> list[str]:
    """Say what the corrected numbers assume, and why numbers and intervals are missing or were clipped."""
    if not rows:
        return []
    reasons: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        for reason in _remarks(row):
            reasons[row.detector, reason].append(ALL if row.chatbot is None else row.chatbot)
    return [
        "Corrected numbers assume that a detector finds a chatbot's own errors as often as planted ones, "
        "and flags its clean replies as often as clean twins (docs/stress.md).",
        *(f"{detector}, {', '.join(names)}: {reason}." for (detector, reason), names in reasons.items()),
    ]


def _remarks(row: CorrectedRow) -> Iterator[str]:
    if row.not_corrected is not None:
        yield f"not corrected: {row.not_corrected}"
    if row.no_interval is not None:
        yield f"no interval: {row.no_interval}"
    if row.clipped is not None:
        end = "0" if row.clipped == "below 0" else "1"
        yield f"the corrected share of hallucinated turns was {row.clipped}, and is set to {end}"
