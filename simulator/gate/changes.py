"""What people changed between a run and its baseline, in words."""

from __future__ import annotations

from hallulab.simulator.compare.setup import SetupChange


def describe_setup_change(change: SetupChange) -> str:
    """Describe something that is not the same in both runs."""
    what = " ".join(filter(None, (change.what, change.name)))
    of = f" of {change.of}" if change.of else ""
    if change.before is None:
        return f"{what}{of}: new, {change.after}"
    if change.after is None:
        return f"{what}{of}: gone, it was {change.before}"
    return f"{what}{of}: {change.before} → {change.after}"
