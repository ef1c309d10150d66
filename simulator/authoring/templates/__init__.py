"""Commented experiment files to start from, one for each purpose of `hallulab init`."""

from __future__ import annotations

from importlib.resources import files


def read_template(purpose: str) -> str:
    """Return the experiment file for a purpose: `endpoint`, `own-bot`, `prompts` or `gate`."""
    return (files(__package__) / f"{purpose}.yaml").read_text(encoding="utf-8")
