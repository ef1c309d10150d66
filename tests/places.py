"""Where things of the repository are, for tests in whatever room."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
"""The repository."""

RECORDINGS = ROOT / "tests" / "recordings"
"""Answers of a real model."""


def module_of(path: Path) -> str:
    """The name by which Python imports a source file of ours; of `__init__.py`, its package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    inner = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join(inner if inner[0] == "hallulab" else ("hallulab", *inner))
