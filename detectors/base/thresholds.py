"""Thresholds of detectors: calibrated here, or tuned for a model.

Keep what `hallulab calibrate` fitted: a detector's threshold, and how often the detector is wrong at it.
There is one file for each way to score, in the cache folder. A way to score is everything that decides a
detector's scores: its code, prompts, options, models, seed, and tuned numbers, but not its threshold
(`Detector.version` without it). So a fit is used exactly where scores mean what they meant when it was made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from hallulab.agents.machine.cache import locate_cache
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import choose_main_error, explain_error, read_text
from hallulab.scenarios.transcript import Count, Frozen

REMEDY = "Delete it, or run `hallulab calibrate` again"


class UnitCounts(Frozen):
    """What a detector said of the replies of one group, or of their sentences, at its threshold."""

    clean: Count
    """Clean ones."""
    clean_flagged: Count
    """Those that are flagged."""
    wrong: Count
    """Hallucinated ones."""
    wrong_flagged: Count
    """Those that are flagged."""


class GroupCounts(Frozen):
    """A group of dependent replies, such as those made of one document."""

    replies: UnitCounts
    """Its scored replies."""
    sentences: UnitCounts
    """Sentences of the scored and localised replies whose places of errors are known."""


class Fitted(Frozen):
    """What was fitted for a detector."""

    detector: str
    """Its name."""
    scoring: str
    """Its way to score."""
    version: str
    """Its version at the threshold."""
    threshold: float
    """Score from which a reply is flagged."""
    measured_on: str = Field(min_length=1)
    """The replies, in words."""
    groups: tuple[GroupCounts, ...]
    """What it said of them at the threshold."""


def find_fitted(scoring: str) -> Fitted | None:
    """Return what was fitted for a way to score; None: nothing.

    Raises:
        UsageError: the file was changed.
    """
    path = _file(scoring)
    return _read(path) if path.is_file() else None


def compute_fitted_version(detector: str, version: str) -> Fitted | None:
    """Return what was fitted for a detector that judged in this version; None: nothing.

    Raises:
        UsageError: a file was changed.
    """
    found = (fitted for fitted in _all() if (fitted.detector, fitted.version) == (detector, version))
    return next(found, None)


def locate_fitted_file(fitted: Fitted) -> tuple[Path, str]:
    """Return the file that keeps a fit, and its text."""
    return _file(fitted.scoring), fitted.model_dump_json(indent=2) + "\n"


def folder() -> Path:
    """Return where fits are kept. It need not exist yet."""
    return locate_cache() / "calibrations"


def _file(scoring: str) -> Path:
    return folder() / f"{scoring}.json"


def _all() -> Iterator[Fitted]:
    yield from map(_read, sorted(folder().glob("*.json")))


def _read(path: Path) -> Fitted:
    try:
        return Fitted.model_validate_json(read_text(path))
    except ValidationError as error:
        first = choose_main_error(error)
        where = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"{path}: {f'field `{where}`: ' if where else ''}{explain_error(first)}. {REMEDY}."
        ) from None


def find_tuned_threshold(detector: str, reading: str, model: str | None) -> float | None:
    """Return the threshold in `thresholds.yaml`, or None where the paper's holds.

    Args:
        model: `hallulab.agents.served_model.find_catalogue_name`.
    """
    return _load_thresholds().get(detector, {}).get(reading, {}).get(model or "")


@cache
def _load_thresholds() -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    text = files("hallulab.detectors.base").joinpath("thresholds.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, dict[str, dict[str, float]]]).validate_python(yaml.safe_load(text) or {})
