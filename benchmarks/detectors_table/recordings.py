"""Where the model's answers are: a recording for each data set and detector, so that one can be replaced."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path("tests") / "recordings" / "detectors_table"
"""Where the packed ones lie, seen from the repository."""


def growing(folder: Path, dataset: str, detector: str) -> Path:
    """The recording that answers are added to."""
    return folder / f"{dataset}.{detector}.jsonl"


def recorded(folder: Path, dataset: str, detector: str) -> Path | None:
    """The recording to replay: one that is growing before a packed one; None where neither holds anything."""
    plain = growing(folder, dataset, detector)
    packed = plain.with_name(f"{plain.name}.gz")
    return next((path for path in (plain, packed) if path.is_file() and path.stat().st_size), None)
