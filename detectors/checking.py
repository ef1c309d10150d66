"""What a detector gives, or raises, as a judgement that can be counted and written."""

from __future__ import annotations

from scenarios.data_files import without_surrogates
from scenarios.plugins import reason_of
from scenarios.transcript import Judgement


def checked(found: object, reply: str) -> Judgement:
    """What a detector gave for `reply`; a failed judgement where it is not one, or not one of this reply."""
    if type(found) is not Judgement:
        return Judgement(outcome="failed", error=f"the detector gave a {type(found).__name__}, no Judgement")
    for span in found.spans or ():
        if span.end is not None and span.end > len(reply):
            return Judgement(
                outcome="failed",
                calls=found.calls,
                error=f"the detector gave a span [{span.start}, {span.end}) outside the reply, "
                f"which has {len(reply)} characters",
            )
    if found.word_scores is not None and len(found.word_scores) != len(reply.split()):
        return Judgement(
            outcome="failed",
            calls=found.calls,
            error=f"the detector gave {len(found.word_scores)} word scores for a reply of "
            f"{len(reply.split())} words",
        )
    try:
        found.model_dump_json()
    except ValueError as error:
        return failure(error)
    return found


def failure(error: BaseException) -> Judgement:
    """The judgement of a detector that raised."""
    return Judgement(outcome="failed", error=without_surrogates(reason_of(error)))
