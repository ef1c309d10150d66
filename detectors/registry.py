"""The detectors by name: ours, and those that installed distributions offer.

One of ours is a class with a `KIND` in the module `detector` of a folder beside this file. A distribution
offers one by an entry point in the group `hallulab.detectors`: a subclass of `Detector`, or another callable
that takes the name to report under and a `DetectorContext` and returns a `Detector`. So does a kind
`module:Class`, without any packaging.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from numbers import Real
from pathlib import Path
from typing import get_args

from hallulab.detectors.base.protocol import Detector, DetectorContext, ThresholdProtocol, Traits
from hallulab.scenarios.components import (
    find_component,
    import_code,
    is_code,
    list_component_names,
    make_component,
)
from hallulab.scenarios.errors import UsageError

GROUP = "hallulab.detectors"

DetectorFactory = Callable[[str, DetectorContext], Detector]
"""Makes a detector that reports under a name."""


FIRST = (
    "halludetect",
    "metarag",
    "lexical",
    "evidence_chain",
    "combined",
    "logic_graph",
    "direct_judge",
    "self_check",
)
"""Folders whose detectors are listed first; others follow by name."""


def _find_own() -> dict[str, DetectorFactory]:
    """Return our detectors, by the order of their folders, then by that in their modules."""
    place = {name: number for number, name in enumerate(FIRST)}
    folders = [path.parent.name for path in Path(__file__).parent.glob("*/detector.py")]
    modules = [
        import_module(f"hallulab.detectors.{name}.detector")
        for name in sorted(folders, key=lambda name: (place.get(name, len(place)), name))
    ]
    return {
        made.KIND: made
        for module in modules
        for made in vars(module).values()
        if isinstance(made, type)
        and issubclass(made, Detector)
        and made.__module__ == module.__name__
        and made.KIND is not None
    }


DETECTORS = _find_own()
"""Our detectors. No entry point can take one of these names."""


def list_detector_names() -> list[str]:
    """Return all names, ours first."""
    return list_component_names(DETECTORS, GROUP)


def make_detector(kind: str, name: str, context: DetectorContext) -> Detector:
    """Make a detector of a registered kind.

    Args:
        kind: the name it is registered under.
        name: the name it reports under.

    Raises:
        UsageError: there is no such detector, its options are wrong, or somebody else's cannot be made.
    """
    factory = find_detector(kind)
    made = make_component("detector", kind, DETECTORS, (), lambda: factory(name, context))
    if kind not in DETECTORS:
        _check(kind, made)
    return made


def _check(kind: str, made: Detector) -> None:
    """Raise UsageError if what somebody else made is no detector, or one of its attributes is impossible."""
    if not isinstance(made, Detector):
        given = type(made).__name__
        raise UsageError(
            f"detector {kind!r}: its constructor gave {given}, which is no subclass of hallulab.Detector. "
            f"Make it one: `class {given}(hallulab.Detector)`."
        )
    threshold = made.threshold
    finite = isinstance(threshold, Real) and math.isfinite(threshold)
    if threshold is not None and not finite:
        raise UsageError(
            f"detector {kind!r}: its `threshold` is {threshold!r}, no finite number and not None."
        )
    if made.threshold_protocol not in get_args(ThresholdProtocol):
        raise UsageError(
            f"detector {kind!r}: its `threshold_protocol` is {made.threshold_protocol!r}; "
            f"there are {', '.join(get_args(ThresholdProtocol))}."
        )
    for part in ("name", "version"):
        value = getattr(made, part, None)
        if not isinstance(value, str):
            raise UsageError(f"detector {kind!r}: its `{part}` is {value!r}, no text.")
    if not isinstance(made.traits, Traits):
        raise UsageError(f"detector {kind!r}: its `traits` is {made.traits!r}, no hallulab.Traits.")


_OFFERED: ContextVar[Mapping[str, DetectorFactory]] = ContextVar("_OFFERED", default={})  # noqa: B039


@contextmanager
def offer_detectors(factories: Mapping[str, DetectorFactory]) -> Iterator[None]:
    """Offer detectors that a Python program has, by their kinds, until the block ends."""
    token = _OFFERED.set(factories)
    try:
        yield
    finally:
        _OFFERED.reset(token)


def find_detector(kind: str) -> DetectorFactory:
    """Return the factory of that name, or of code that it names: `module:Class`.

    Raises:
        UsageError: there is none, or the distribution or the module that offers it cannot be imported.
    """
    if kind in (offered := _OFFERED.get()):
        return offered[kind]
    if is_code(kind):
        factory: DetectorFactory = import_code("detector", kind)
        return factory
    return find_component("detector", kind, DETECTORS, GROUP)
