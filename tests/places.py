"""Where things of the repository are, for tests in whatever room."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
"""The repository."""

RECORDINGS = ROOT / "tests" / "recordings"
"""Answers of a real model."""
