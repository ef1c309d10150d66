"""How long preparations (downloads, installations, conversions) tell how far they are."""

from __future__ import annotations

from collections.abc import Callable

from scenarios.transcript import Frozen


class StepProgress(Frozen):
    """How far one named step is."""

    step: str
    """What is being done, as the user should read it."""
    done: int
    """Units that are done."""
    total: int | None
    """Units in all; None: not known beforehand."""
    unit: str
    """`bytes`, `packages`, `seconds` …"""


Listener = Callable[[StepProgress], None]
"""Gets every news of progress; called often, so it must be quick."""


def silent(progress: StepProgress) -> None:
    """The listener that shows nothing."""
