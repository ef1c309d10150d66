"""Progress reports of long preparations: downloads, installations, conversions."""

from __future__ import annotations

from collections.abc import Callable

from hallulab.scenarios.transcript import Frozen


class StepProgress(Frozen):
    """Progress of one named step."""

    step: str
    """What is being done, as the user reads it."""
    done: int
    """Units that are done."""
    total: int | None
    """Units in all; None: not known beforehand."""
    unit: str
    """`bytes`, `packages`, `seconds` …"""


Listener = Callable[[StepProgress], None]
"""Gets each progress report; called often, so it must be quick."""


def silent(progress: StepProgress) -> None:
    """Ignore a progress report."""
