"""What a detector gives, or raises, as a judgement that can be counted and written."""

from __future__ import annotations

from agents.models.redaction import without_keys
from scenarios.plugins import reason_of
from scenarios.transcript import Judgement


def checked(found: object, reply: str) -> Judgement:
    """What a detector gave for `reply`; a failed judgement where it is not one, or not one of this reply."""
    if type(found) is not Judgement:
        return Judgement(outcome="failed", error=f"the detector gave a {type(found).__name__}, no Judgement")
    flaw = misfit(found, reply)
    if flaw is not None:
        return Judgement(outcome="failed", calls=found.calls, error=f"the detector gave {flaw[1]}")
    try:
        found.model_dump_json()
    except ValueError as error:
        return failure(error)
    return found.model_copy(update={"error": without_keys(found.error)}) if found.error else found


def misfit(judgement: Judgement, reply: str) -> tuple[str, str] | None:
    """What of a judgement cannot be of `reply`: the field, and what is wrong with it; None where all can."""
    for number, span in enumerate(judgement.spans or ()):
        if span.end is not None and span.end > len(reply):
            where = f"[{span.start}, {span.end}) outside the reply, which has {len(reply)} characters"
            return f"spans.{number}", f"a span {where}"
    if judgement.word_scores is not None:
        scores, words = len(judgement.word_scores), len(reply.split())
        if scores != words:
            return "word_scores", f"{scores} word scores for a reply of {words} words"
    return None


def failure(error: BaseException) -> Judgement:
    """The judgement of a detector that raised."""
    return Judgement(outcome="failed", error=without_keys(reason_of(error)))
