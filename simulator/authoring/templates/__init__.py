"""Commented experiment files to start from, one for each purpose of `hallulab init`."""

from __future__ import annotations

from pathlib import Path


def read_template(purpose: str) -> str:
    """Return the experiment file for a purpose: `endpoint`, `own-bot`, `prompts` or `gate`."""
    return (Path(__file__).parent / f"{purpose}.yaml").read_text(encoding="utf-8")
