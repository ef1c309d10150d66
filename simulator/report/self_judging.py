"""Signs and notes for chatbots that are judged by their own verifier."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.measure.metrics import Row

SIGNS = {"same model": "†", "same model and same question": "‡"}
"""Sign behind a chatbot's name, by degree."""


def mark(row: Row) -> str:
    """Return the sign of a row, or nothing."""
    return SIGNS.get(row.self_judged_degree or "", "")


def self_judging_notes(rows: Sequence[Row]) -> list[str]:
    """Explain the sign of each chatbot that has one."""
    judges: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.self_judged:
            judges.setdefault((mark(row), row.chatbot), []).append(row.detector)
    return [
        f"{sign} The model by which {' and '.join(detectors)} "
        f"{'judges' if len(detectors) == 1 else 'judge'} also verifies what {chatbot} says"
        f"{', by the same question' if sign == SIGNS['same model and same question'] else ''}: such a "
        "judgement may favour it. A second model for one of the two ends that (docs/experiment.md, "
        "`Not one's own judge`)."
        for (sign, chatbot), detectors in judges.items()
    ]
