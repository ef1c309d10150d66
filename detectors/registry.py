"""The detectors by name: ours, and those that installed distributions offer.

A distribution offers one by an entry point in the group `hallulab.detectors`: a callable that takes the name
to report under and a `DetectorContext` and returns a `Detector`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points

from detectors.halludetect.detector import HalluDetectDetector
from detectors.lexical import LexicalDetector
from detectors.metarag.detector import MetaRagDetector
from detectors.protocol import Detector, DetectorContext
from scenarios.errors import UsageError

GROUP = "hallulab.detectors"
"""The entry points' group."""

DetectorFactory = Callable[[str, DetectorContext], Detector]
"""Makes a detector that reports under a name."""

DETECTORS: dict[str, DetectorFactory] = {
    "halludetect": HalluDetectDetector,
    "metarag": MetaRagDetector,
    "lexical": LexicalDetector,
}
"""Ours. A name of ours cannot be taken by an entry point."""


def detector_names() -> list[str]:
    """All names, ours first."""
    return list(dict.fromkeys([*DETECTORS, *sorted(_offered())]))


def make_detector(kind: str, name: str, context: DetectorContext) -> Detector:
    """A detector of a registered kind.

    Args:
        kind: the name it is registered under.
        name: the name it reports under.

    Raises:
        UsageError: there is no such detector, or its options are wrong.
    """
    return find_detector(kind)(name, context)


def find_detector(kind: str) -> DetectorFactory:
    """The factory of that name.

    Raises:
        UsageError: there is none, or the distribution that offers it cannot be imported.
    """
    if kind in DETECTORS:
        return DETECTORS[kind]
    point = _offered().get(kind)
    if point is None:
        raise UsageError(f"there is no detector {kind!r}; there are: {', '.join(detector_names())}.")
    try:
        factory: DetectorFactory = point.load()
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"detector {kind!r}: cannot load its entry point {point.value} ({error})."
        ) from error
    return factory


def _offered() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}
