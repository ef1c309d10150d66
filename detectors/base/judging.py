"""What the detectors share: a ledger around a judgement, evidence in a prompt, spans of what is flagged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

from agents.models.model import Session
from scenarios.errors import HallulabError
from scenarios.text.spans import words
from scenarios.transcript import Frozen, Judgement, Passage, Span, Unit

Result = TypeVar("Result")

_log = logging.getLogger(__name__)


CUT_AND_NOT_FLAGGED = "the evidence or the reply was cut to fit, and nothing in the rest was flagged"
"""Why a truncated judgement without a hallucination is none: it did not see everything."""


class Abstention(Exception):
    """There is nothing to judge, or nothing to judge by; `str(error)` says what is missing."""


async def judge(session: Session, work: Callable[[], Awaitable[Judgement]]) -> Judgement:
    """The outcome of `work`, whatever happens, with every call of `session` in its ledger.

    What was cut to fit is never called clean: unflagged, it ends as `abstained`. A model's failure, a missing
    API key and any unforeseen exception end as `failed` with the reason, never as clean.
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
    """All results in order; when some fail, the first error, but only after all have ended.

    So no request is still under way, and none is missing from the ledger, when a judgement is handed out.
    """
    results = await asyncio.gather(*jobs, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


class Evidence(Frozen):
    """Passages as they read in a prompt."""

    text: str
    """Numbered passages, best first."""
    passages: tuple[Passage, ...]
    """Those in it; the last one may be cut."""
    truncated: bool
    """Whether some text had to be left out."""


def format_evidence(passages: Sequence[Passage], max_characters: int) -> Evidence:
    """Number the passages from 1; the last one that fits in part is cut, the others are left out."""
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
    return Evidence(
        text="\n".join(lines),
        passages=tuple(shown),
        truncated=len(shown) < len(passages) or room < 0,
    )


def best_passage(text: str, passages: Sequence[Passage]) -> str:
    """The passage that shares most words with `text` (earliest on a tie), as `id: text`; or empty."""
    if not passages:
        return ""
    wanted = set(words(text))
    shared = [len(wanted & _words_of(passage.text)) for passage in passages]
    if max(shared) == 0:
        return ""
    best = passages[shared.index(max(shared))]
    return f"{best.id}: {best.text}"


@lru_cache(maxsize=64)
def _words_of(passage: str) -> frozenset[str]:
    """The words of a passage, which are asked for again by every span of a reply."""
    return frozenset(words(passage))


def flagged_spans(
    units: Iterable[Unit],
    threshold: float,
    reason: Callable[[Unit], str],
    passages: Sequence[Passage] = (),
) -> tuple[Span, ...]:
    """A span for each unit whose score reaches `threshold`, with its `best_passage` as evidence."""
    return tuple(
        Span(
            start=unit.start,
            end=unit.end,
            text=unit.text,
            score=unit.score,
            reason=reason(unit),
            evidence=best_passage(unit.text, passages),
        )
        for unit in units
        if unit.score is not None and unit.score >= threshold
    )
