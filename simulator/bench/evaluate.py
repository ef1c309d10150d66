"""Run detectors over labelled replies, and count why judgements have no score."""

from __future__ import annotations

import asyncio
import dataclasses
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hallulab.detectors.base.protocol import Detector, ThresholdProtocol, run_detector
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.wording import shorten_line
from hallulab.scenarios.transcript import Frozen, Judgement, Outcome, TurnView

_BATCH = 256
"""Replies given at once to a detector that judges in batches, so that progress shows."""


@dataclass(frozen=True)
class Evaluation:
    """Judgements of one detector on a data set."""

    detector: str
    """Its name."""
    threshold: float | None
    """Its threshold for replies, if any. `judgements` are already decided by it."""
    threshold_protocol: ThresholdProtocol
    """Source of that threshold."""
    replies: tuple[LabelledReply, ...]
    """The judged replies."""
    judgements: tuple[Judgement, ...]
    """One judgement a reply, in the same order."""
    seconds: float
    """Wall-clock time of the whole evaluation."""
    cold_s: float | None = None
    """Seconds of the first judgement, which is made alone and includes loading."""
    latencies_s: tuple[float | None, ...] = ()
    """Seconds of each judgement; for a batch detector, of its batch over the batch's size. None for the
    first, which is made alone. Empty where not measured."""
    batched: bool = False
    """Whether it judged in batches."""
    told_origin: bool = False
    """Whether it was told who wrote the replies."""
    train_s: float | None = None
    """Seconds of training here; None without training here."""
    probabilities: bool = True
    """Whether its scores are meant as probabilities."""
    fold_thresholds: tuple[float, ...] = ()
    """Each fold's threshold, for a detector trained once a fold; `threshold` is their mean."""
    version: str = ""
    """Version of the detector; empty: a floor, or trained once a fold."""


async def evaluate(
    detector: Detector,
    replies: Sequence[LabelledReply],
    concurrency: int,
    on_judged: Callable[[int], object] = lambda number: None,
    train_s: float | None = None,
) -> Evaluation:
    """Judge every reply. A detector that raises has failed on that reply.

    The first reply is judged alone, to measure the cost of starting.

    Args:
        concurrency: replies judged at once by a detector without batches.
        on_judged: called with the number of newly judged replies.
    """
    started = time.perf_counter()
    first = await _judge_all(detector, replies[:1], 1, on_judged)
    cold = time.perf_counter() - started if first else None
    others = await _judge_all(detector, replies[1:], concurrency, on_judged)
    return Evaluation(
        detector=detector.name,
        threshold=detector.threshold,
        threshold_protocol=detector.threshold_protocol,
        replies=tuple(replies),
        judgements=tuple(judgement for judgement, _ in (*first, *others)),
        seconds=time.perf_counter() - started,
        cold_s=cold,
        latencies_s=(*(None for _ in first), *(seconds for _, seconds in others)),
        batched=detector.traits.batch,
        told_origin=detector.traits.reads_origin,
        probabilities=detector.traits.probabilities,
        train_s=train_s,
        version=detector.version,
    )


def join_folds(folds: Sequence[Evaluation], places: Sequence[Sequence[int]]) -> Evaluation:
    """Join the evaluations of a detector's folds. Every judgement stays as it is.

    Args:
        folds: none of them empty.
        places: for each fold, the position of each of its replies in the whole; each position is there once.
    """
    order = [place for fold in places for place in fold]
    replies = [reply for fold in folds for reply in fold.replies]
    judgements = [judgement for fold in folds for judgement in fold.judgements]
    latencies = [seconds for fold in folds for seconds in fold.latencies_s]
    back = sorted(range(len(order)), key=order.__getitem__)
    thresholds = tuple(fold.threshold for fold in folds if fold.threshold is not None)
    trained = [fold.train_s for fold in folds if fold.train_s is not None]
    return dataclasses.replace(
        folds[0],
        threshold=statistics.fmean(thresholds) if len(thresholds) == len(folds) else None,
        replies=tuple(replies[place] for place in back),
        judgements=tuple(judgements[place] for place in back),
        seconds=sum(fold.seconds for fold in folds),
        latencies_s=tuple(latencies[place] for place in back),
        train_s=sum(trained) if trained else None,
        fold_thresholds=thresholds,
        version="",
    )


Timed = tuple[Judgement, float]


async def _judge_all(
    detector: Detector,
    replies: Sequence[LabelledReply],
    concurrency: int,
    on_judged: Callable[[int], object],
) -> list[Timed]:
    size, places = (_BATCH, 1) if detector.traits.batch else (1, concurrency)
    bench = asyncio.Semaphore(places)

    async def judge(batch: Sequence[LabelledReply]) -> list[Timed]:
        async with bench:
            started = time.perf_counter()
            judgements = await run_detector(detector, [_get_view(detector, reply) for reply in batch])
            each = (time.perf_counter() - started) / len(batch)
        on_judged(len(batch))
        return [(judgement, each) for judgement in judgements]

    batches = [replies[at : at + size] for at in range(0, len(replies), size)]
    judged = await asyncio.gather(*(judge(batch) for batch in batches))
    return [one for batch in judged for one in batch]


def _get_view(detector: Detector, reply: LabelledReply) -> TurnView:
    if detector.traits.reads_origin:
        return reply.view.model_copy(update={"origin": reply.origin})
    return reply.view


SHOWN = 5
"""Number of reasons shown for a detector."""


class Missing(Frozen):
    """A reason, and the number of judgements that are missing for it."""

    outcome: Outcome
    reason: str
    n: int


def count_reasons(judgements: Sequence[Judgement]) -> tuple[Missing, ...]:
    """Return the `SHOWN` most frequent reasons; of equally frequent ones, the first met."""
    counts = Counter(
        (judgement.outcome, shorten_line(judgement.error or ""))
        for judgement in judgements
        if judgement.outcome != "scored"
    )
    return tuple(
        Missing(outcome=outcome, reason=reason, n=n) for (outcome, reason), n in counts.most_common(SHOWN)
    )
