"""Signs and notes for chatbots that are judged by their own verifier or guard."""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.simulator.measure.metrics import Row

SIGNS = {"same model": "†", "same model and same question": "‡", "own guard": "§"}
"""Sign behind a chatbot's name, by degree."""


def mark(row: Row) -> str:
    """Return the sign of a row, or nothing."""
    return SIGNS.get(row.self_judged_degree or "", "")


def explain_self_judging(rows: Sequence[Row]) -> list[str]:
    """Explain the sign of each chatbot that has one."""
    judges: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.self_judged:
            judges.setdefault((mark(row), row.chatbot), []).append(row.detector)
    return [_note(sign, chatbot, detectors) for (sign, chatbot), detectors in judges.items()]


def _note(sign: str, chatbot: str, detectors: Sequence[str]) -> str:
    one, names = len(detectors) == 1, " and ".join(detectors)
    if sign == SIGNS["own guard"]:
        return (
            f"{sign} {names} also {'guards' if one else 'guard'} {chatbot}, which has already removed what "
            "its guard objects to. Another detector ends that (docs/safeguards.md)."
        )
    same = ", by the same question" if sign == SIGNS["same model and same question"] else ""
    return (
        f"{sign} The model by which {names} {'judges' if one else 'judge'} also verifies what {chatbot} "
        f"says{same}: such a judgement may favour it. A second model for one of the two ends that "
        "(docs/experiment.md, `Not one's own judge`)."
    )
