"""Correct a run's numbers for its detectors' mistakes, by annotations or by what is known of detectors."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, ValidationError

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import choose_main_error, explain_error, read_text
from hallulab.scenarios.files.json_text import parse_json
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.measure.corrections import LEAD, Correction, compute_corrections
from hallulab.simulator.measure.intervals import LEAST_FOR_INTERVAL
from hallulab.simulator.measure.prediction_powered import JudgedTurn
from hallulab.simulator.measure.prevalence import Accuracy, DetectorErrors
from hallulab.simulator.runs.journals import VerdictKey

MAKE = "`hallulab bench FOLDER --detectors NAMES --json FILE` on a folder of `hallulab plant`"
"""How the file is made."""
ALL = "all chatbots"
"""Name of the row of all chatbots together."""
UNMEASURED = "no turn is annotated, and the file of planted errors does not measure this detector"
UNKNOWN = "no turn is annotated, and this detector's mistakes are not known"
"""Why a detector's numbers are not corrected, with and without such a file."""
ASSUMED = (
    "Numbers corrected by planted errors or a calibration assume that a detector finds a chatbot's own "
    "errors as often as those, and flags its clean replies as often as clean ones there (docs/corrected.md)."
)
LOOKED = (
    "Numbers corrected by annotations assume that the annotated turns are as good as drawn at random "
    "(docs/corrected.md)."
)


class CorrectedRow(Correction):
    """One chatbot, or all of them, under one detector: a row of `corrected` in `report.json`."""

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
        first = choose_main_error(error)
        flaw = f"field `{'.'.join(map(str, first['loc']))}`: {explain_error(first)}"
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


def correct(
    turns: Mapping[str, Sequence[JudgedTurn]],
    chatbots: Sequence[str],
    detectors: Sequence[str],
    known: Mapping[str, DetectorErrors],
    unknown: str = UNKNOWN,
) -> tuple[CorrectedRow, ...]:
    """Make a row for every detector and chatbot by name, then one for all; then the same at each depth.

    Args:
        turns: the scored turns of each detector.
        known: each detector's mistakes, as far as they are known.
        unknown: why others are not.
    """
    return tuple(
        CorrectedRow(detector=detector, **dict(row))
        for detector in detectors
        for row in compute_corrections(turns.get(detector, ()), chatbots, known.get(detector), unknown)
    )


def describe_corrections(rows: Sequence[CorrectedRow]) -> list[str]:
    """Say what corrected numbers rest on and which chatbot is best.

    Say also why numbers and intervals are lacking, or were clipped.

    Args:
        rows: those of all turns.
    """
    sources = {row.source for row in rows}
    detectors = dict.fromkeys(row.detector for row in rows if row.source is not None)
    return [
        *([ASSUMED] if sources - {None, "annotations"} else []),
        *([LOOKED] if "annotations" in sources else []),
        *(
            line
            for name in detectors
            for line in _describe_best([row for row in rows if row.detector == name])
        ),
        *_explain_rows(rows),
    ]


def _explain_rows(rows: Sequence[CorrectedRow]) -> Iterator[str]:
    """Say once what is true of several rows; of a detector alone where it is true of all its rows."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for reason in _explain_row(row):
            found[reason][row.detector].append(ALL if row.chatbot is None else row.chatbot)
    number = Counter(row.detector for row in rows)
    for reason, detectors in found.items():
        whom = (
            detector if len(names) == number[detector] else f"{detector}, {', '.join(names)}"
            for detector, names in detectors.items()
        )
        yield f"{'; '.join(whom)}: {reason}."


def _describe_best(rows: Sequence[CorrectedRow]) -> Iterator[str]:
    """Say which chatbot has the lowest corrected HPT-1 under a detector, or that this cannot be told."""
    chatbots = [row for row in rows if row.chatbot is not None and row.turns]
    if len(chatbots) < 2:
        return
    by = f"By {rows[0].detector}, corrected"
    first = max(chatbots, key=lambda row: row.best or 0.0)
    if first.best is None:
        yield (
            f"{by}: cannot tell which chatbot hallucinates least; that takes a corrected number of each, "
            f"from at least {LEAST_FOR_INTERVAL} personas."
        )
    elif first.best >= LEAD:
        yield f"{by}: {first.chatbot} hallucinates least with a probability of {first.best:.1%}."
    else:
        yield (
            f"{by}: cannot tell which chatbot hallucinates least; it is {first.chatbot} with a probability "
            f"of {first.best:.0%}, and {LEAD:.1%} would tell."
        )


def _explain_row(row: CorrectedRow) -> Iterator[str]:
    if row.not_corrected is not None:
        yield f"not corrected: {row.not_corrected}"
    if row.no_interval is not None:
        yield f"no interval: {row.no_interval}"
    if row.clipped is not None:
        end = "0" if row.clipped == "below 0" else "1"
        yield f"the corrected share of hallucinated turns was {row.clipped}, and is set to {end}"
