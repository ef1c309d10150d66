"""What the detectors share: a ledger around a judgement, evidence in a prompt, spans of flagged units."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

from hallulab.agents.models.model import Session
from hallulab.scenarios.errors import HallulabError
from hallulab.scenarios.text.spans import split_words
from hallulab.scenarios.transcript import Frozen, Judgement, Passage, Span, Unit

Result = TypeVar("Result")

_log = logging.getLogger(__name__)


CUT_AND_NOT_FLAGGED = "the evidence or the reply was cut to fit, and nothing in the rest was flagged"
"""Reason to abstain when text was cut and nothing is flagged: the detector did not see everything."""


class Abstention(Exception):
    """There is nothing to judge, or no evidence to judge by; `str(error)` says what is missing."""


async def judge(session: Session, work: Callable[[], Awaitable[Judgement]]) -> Judgement:
    """Return the outcome of `work`, whatever happens, with every call of `session` in its ledger.

    A reply whose text was cut to fit is never clean: unless flagged, it ends as `abstained`. A failed model,
    a missing API key and any unforeseen exception end as `failed` with the reason.
    """
    try:
        judgement = await work()
    except Abstention as reason:
        judgement = Judgement(outcome="abstained", error=str(reason))
    except HallulabError as error:
        judgement = Judgement(outcome="failed", error=str(error))
    except Exception as error:  # noqa: BLE001 - one broken judgement must not end a run; it is kept as a failure
        _log.warning("%s failed on a reply: %s", session.role, type(error).__name__, exc_info=error)
        judgement = Judgement(outcome="failed", error=f"{type(error).__name__}: {error}")
    if judgement.truncated and judgement.flagged is False:
        judgement = Judgement(
            outcome="abstained", units=judgement.units, truncated=True, error=CUT_AND_NOT_FLAGGED
        )
    return judgement.model_copy(update={"calls": tuple(session.calls)})


async def gather_all(jobs: Iterable[Awaitable[Result]]) -> list[Result]:
    """Return all results in order. If some fail, raise the first error after all have ended.

    Then no request is under way, or missing from the ledger, when a judgement is returned.
    """
    results = await asyncio.gather(*jobs, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


class PromptEvidence(Frozen):
    """Passages as they read in a prompt."""

    text: str
    """Numbered passages, best first."""
    passages: tuple[Passage, ...]
    """The passages in it; the last one may be cut."""
    truncated: bool
    """Whether some text had to be left out."""


def format_evidence(passages: Sequence[Passage], max_characters: int) -> PromptEvidence:
    """Number the passages from 1. Cut the last one that fits in part, and leave out the others."""
    lines: list[str] = []
    shown: list[Passage] = []
    room = max_characters
    for passage in passages:
        text = " ".join(passage.text.split())
        if room <= 0:
            break
        lines.append(f"Document {len(shown) + 1}: {text[:room]}")
        shown.append(passage)
        room -= len(text)
    return PromptEvidence(
        text="\n".join(lines),
        passages=tuple(shown),
        truncated=len(shown) < len(passages) or room < 0,
    )


def find_best_passage(text: str, passages: Sequence[Passage]) -> str:
    """Return the passage that shares most words with `text` (earliest on a tie), as `id: text`; or ""."""
    if not passages:
        return ""
    wanted = set(split_words(text))
    shared = [len(wanted & _words_of(passage.text)) for passage in passages]
    if max(shared) == 0:
        return ""
    best = passages[shared.index(max(shared))]
    return f"{best.id}: {best.text}"


@lru_cache(maxsize=64)
def _words_of(passage: str) -> frozenset[str]:
    """Return the words of a passage; cached, because every span of a reply asks for them."""
    return frozenset(split_words(passage))


def make_flagged_spans(
    units: Iterable[Unit],
    threshold: float,
    reason: Callable[[Unit], str],
    passages: Sequence[Passage] = (),
) -> tuple[Span, ...]:
    """Return a span for each unit whose score reaches `threshold`, with its best passage as evidence."""
    return tuple(
        Span(
            start=unit.start,
            end=unit.end,
            text=unit.text,
            score=unit.score,
            reason=reason(unit),
            evidence=find_best_passage(unit.text, passages),
        )
        for unit in units
        if unit.score is not None and unit.score >= threshold
    )
