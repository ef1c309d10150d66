"""How the report shows that a chatbot is judged by its own verifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SIGNS = {"same model": "†", "same model and same question": "‡"}
"""What stands behind a chatbot's name, by degree."""


def mark(row: Mapping[str, Any]) -> str:
    """The sign of a row, or nothing."""
    return SIGNS.get(row["self_judged_degree"], "")


def self_judging_notes(report: Mapping[str, Any]) -> list[str]:
    """What the signs mean and what to do about it, a note for each reason; nothing where no row has one."""
    found = [
        f"{mark(row)} {row['self_judged_reason']}; such a judge favours it."
        for row in report["rows"]
        if row["self_judged"]
    ]
    if found:
        found.append(
            "A second model for the verifier or the judge takes the signs away "
            '(docs/experiment.md, "Not one\'s own judge").'
        )
    return found
