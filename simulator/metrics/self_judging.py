"""Mark chatbots that are judged by the model that verifies their claims, or by the detector that guards them.

Such a chatbot has already removed what that model or detector objects to. So by it the chatbot looks better
than it is. With the same question, the model is even asked the same thing twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.agents.served_model import ClaimCheck, ClaimChecks
from hallulab.simulator.metrics.hallucinations import Row


def mark_self_judged(rows: Sequence[Row], checks: ClaimChecks) -> tuple[Row, ...]:
    """Return the rows with `self_judged`, its degree and its reason; unchanged without both claim checks."""
    return tuple(
        _mark_row(row, checks.chatbots.get(row.chatbot), checks.detectors.get(row.detector)) for row in rows
    )


def _mark_row(row: Row, verifying: ClaimCheck | None, judging: ClaimCheck | None) -> Row:
    if verifying is None or judging is None:
        return row
    if not set(verifying.methods).isdisjoint(judging.methods):
        reason = f"{row.chatbot} is guarded by the detector by which {row.detector} judges"
        return row.model_copy(
            update={
                "self_judged": True,
                "self_judged_degree": "own guard",
                "self_judged_reason": reason,
            }
        )
    shared = [model for model in verifying.models if model in judging.models]
    if not shared:
        return row.model_copy(update={"self_judged": False})
    same_question = not set(verifying.prompts.values()).isdisjoint(judging.prompts.values())
    question = ""
    if judging.prompts:
        question = f", asking {'the same question' if same_question else 'other questions'}"
    return row.model_copy(
        update={
            "self_judged": True,
            "self_judged_degree": "same model and same question" if same_question else "same model",
            "self_judged_reason": (
                f"{row.chatbot} verifies its claims with {', '.join(shared)}, "
                f"by which {row.detector} judges, too{question}"
            ),
        }
    )


SIGNS = {"same model": "†", "same model and same question": "‡", "own guard": "§"}
"""Sign behind a chatbot's name, by degree."""


def mark(row: Row) -> str:
    """Return the sign of a row, or nothing."""
    return SIGNS.get(row.self_judged_degree or "", "")


def explain_sign(row: Row) -> tuple[str, str]:
    """Return the sign of a row and its reason; empty where it has none."""
    return mark(row), row.self_judged_reason or ""


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
        f"says{same}: such a judgement may favour it. To avoid that, give one of the two a second model "
        "(docs/experiment.md, `Not one's own judge`)."
    )
