"""Recordings of the model's answers: one for each data set and detector, so that one can be replaced."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path("tests") / "recordings" / "detectors_table"
"""Folder of the packed ones, relative to the repository."""


def growing(folder: Path, dataset: str, detector: str) -> Path:
    """Return the recording that answers are added to."""
    return folder / f"{dataset}.{detector}.jsonl"


def recorded(folder: Path, dataset: str, detector: str) -> Path | None:
    """Return the recording to replay, a growing one before a packed one; None where neither has content."""
    plain = growing(folder, dataset, detector)
    packed = plain.with_name(f"{plain.name}.gz")
    return next((path for path in (plain, packed) if path.is_file() and path.stat().st_size), None)
