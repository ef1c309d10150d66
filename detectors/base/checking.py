"""Run a detector: what it returns or raises becomes a judgement that can be counted and written."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pydantic import ValidationError

from hallulab.agents.foreign import call_untrusted, require_failure
from hallulab.agents.models.redaction import remove_keys
from hallulab.detectors.base.protocol import Detector
from hallulab.scenarios.files.data_files import choose_main_error, explain_error
from hallulab.scenarios.plugins import describe_exception
from hallulab.scenarios.transcript import Judgement, TurnView


async def run_detector(detector: Detector, views: Sequence[TurnView]) -> list[Judgement]:
    """Return a judgement of each reply; where the detector raises or returns something else, it has failed.

    A detector that judges in batches gets several replies at once. If the batch fails, it gets them one by
    one, so that only the reply at fault fails.
    """
    if detector.traits.batch and len(views) > 1:
        try:
            found = await call_untrusted(partial(detector.detect_many, views))
            return [check_judgement(one, view.reply) for one, view in zip(found, views, strict=True)]
        except BaseException as error:  # noqa: BLE001 - somebody else's detector may raise anything
            require_failure(error)
    return [await _judged(detector, view) for view in views]


async def _judged(detector: Detector, view: TurnView) -> Judgement:
    try:
        return check_judgement(await call_untrusted(partial(detector.detect, view)), view.reply)
    except BaseException as error:  # noqa: BLE001 - as above; a failure is data
        require_failure(error)
        return make_failed_judgement(error)


def check_judgement(found: object, reply: str) -> Judgement:
    """Return what a detector found, or a failed judgement if it is no judgement or does not fit `reply`.

    Args:
        found: what the detector returned.
        reply: the text it judged.
    """
    if type(found) is not Judgement:
        return Judgement(outcome="failed", error=f"the detector gave a {type(found).__name__}, no Judgement")
    try:
        written = found.model_dump_json(warnings=False)
        # A judgement made unchecked (`model_construct`, `model_copy`) may write a line that nobody can read.
        found = Judgement.model_validate_json(written)
    except ValidationError as error:
        first = choose_main_error(error)
        place = ".".join(map(str, first["loc"]))
        wrong = f"`{place}`: {explain_error(first)}" if place else explain_error(first)
        return Judgement(outcome="failed", error=f"the detector gave no sound Judgement: {wrong}")
    except ValueError as error:
        return make_failed_judgement(error)
    flaw = find_misfit(found, reply)
    if flaw is not None:
        return Judgement(outcome="failed", calls=found.calls, error=f"the detector gave {flaw[1]}")
    return found.model_copy(update={"error": remove_keys(found.error)}) if found.error else found


def find_misfit(judgement: Judgement, reply: str) -> tuple[str, str] | None:
    """Return the field of a judgement that cannot belong to `reply`, and why; None if all fit."""
    for number, span in enumerate(judgement.spans or ()):
        if span.end is not None and span.end > len(reply):
            where = f"[{span.start}, {span.end}) outside the reply, which has {len(reply)} characters"
            return f"spans.{number}", f"a span {where}"
    if judgement.word_scores is not None:
        scores, words = len(judgement.word_scores), len(reply.split())
        if scores != words:
            return "word_scores", f"{scores} word scores for a reply of {words} words"
    return None


def make_failed_judgement(error: BaseException) -> Judgement:
    """Return the judgement of a detector that raised `error`."""
    return Judgement(outcome="failed", error=remove_keys(describe_exception(error)))
