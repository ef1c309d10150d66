"""Run detectors over labelled replies, and count why judgements have no score."""

from __future__ import annotations

import asyncio
import dataclasses
import resource
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hallulab.agents.concurrency import gather_results
from hallulab.detectors.base.protocol import Detector, ThresholdProtocol
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.wording import shorten_line
from hallulab.scenarios.transcript import Frozen, Judgement, Outcome
from hallulab.scenarios.turn_views import TurnView
from hallulab.simulator.engine.replies import RepliesJudged, ReplyExecutor, ReplyJudge
from hallulab.simulator.metrics.spending import sum_calls
from hallulab.simulator.statistics.intervals import Rounded

_BATCH = 256
"""Replies given at once to a detector that judges in batches, so that progress shows."""


@dataclass(frozen=True)
class Evaluation:
    """Judgements of one detector on a data set."""

    detector: str
    threshold: float | None
    """Its threshold for replies, if any. `judgements` are already decided by it."""
    threshold_protocol: ThresholdProtocol
    replies: tuple[LabelledReply, ...]
    judgements: tuple[Judgement, ...]
    """One judgement a reply, in the same order."""
    seconds: float
    cold_s: float | None = None
    """Seconds of the first judgement, which is made alone and includes loading; with workers, the longest."""
    latencies_s: tuple[float | None, ...] = ()
    """Seconds of each judgement; for a batch detector, of its batch over the batch's size. None for the
    first (with workers: of each), which is made alone, and where nobody could judge. Empty where not
    measured."""
    batched: bool = False
    told_origin: bool = False
    train_s: float | None = None
    """Seconds of training here; None without training here."""
    memory_mb: float | None = None
    """Megabytes (10⁶ bytes) by which this process's highest memory grew; None: others judged."""
    probabilities: bool = True
    """True if its scores are meant as probabilities."""
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
    jury: ReplyJudge | None = None,
) -> Evaluation:
    """Judge every reply. A detector that raises has failed on that reply.

    The first reply is judged alone, to measure the cost of starting. Of several parts, each part's is.

    Args:
        concurrency: replies of a part judged at once by a detector without batches.
        on_judged: called with the number of newly judged replies.
        jury: judges; None: this process.

    Raises:
        OperationalError: a worker, the endpoint or the recording failed.
        ReplayMiss: the recording lacks an answer.
    """
    before = _measure_peak_mb() if jury is None else None
    jury = jury or ReplyJudge(ReplyExecutor([detector]))
    started = time.perf_counter()
    # Neighbours, which may share answers of models, stay in one part.
    ends = [len(replies) * number // jury.parts for number in range(jury.parts + 1)]
    parts = [replies[start:end] for start, end in pairwise(ends) if start < end]
    judged = await gather_results(
        _judge_part(detector, part, number, jury, concurrency, on_judged) for number, part in enumerate(parts)
    )
    first = [part[0].seconds for part in judged]
    cold = [seconds for seconds in first if seconds is not None]
    return Evaluation(
        detector=detector.name,
        threshold=detector.threshold,
        threshold_protocol=detector.threshold_protocol,
        replies=tuple(replies),
        judgements=tuple(judgement for part in judged for batch in part for judgement in batch.judgements),
        seconds=time.perf_counter() - started,
        cold_s=max(cold, default=None),
        latencies_s=tuple(seconds for part in judged for seconds in (None, *_spread_seconds(part[1:]))),
        batched=detector.traits.batch,
        told_origin=detector.traits.reads_origin,
        probabilities=detector.traits.probabilities,
        train_s=train_s,
        memory_mb=None if before is None else _measure_peak_mb() - before,
        version=detector.version,
    )


def _measure_peak_mb() -> float:
    """Return the most memory that this process ever had, in 10⁶ bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


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
    grown = [fold.memory_mb for fold in folds if fold.memory_mb is not None]
    return dataclasses.replace(
        folds[0],
        threshold=statistics.fmean(thresholds) if len(thresholds) == len(folds) else None,
        replies=tuple(replies[place] for place in back),
        judgements=tuple(judgements[place] for place in back),
        seconds=sum(fold.seconds for fold in folds),
        latencies_s=tuple(latencies[place] for place in back),
        train_s=sum(trained) if trained else None,
        memory_mb=sum(grown) if grown else None,
        fold_thresholds=thresholds,
        version="",
    )


async def _judge_part(
    detector: Detector,
    replies: Sequence[LabelledReply],
    part: int,
    jury: ReplyJudge,
    concurrency: int,
    on_judged: Callable[[int], object],
) -> list[RepliesJudged]:
    """Judge a part: the first reply alone, then the others, in batches if the detector judges so."""
    size, places = (_BATCH, 1) if detector.traits.batch else (1, concurrency)
    batches = [replies[:1], *(replies[at : at + size] for at in range(1, len(replies), size))]
    at_once = asyncio.Semaphore(places)

    def get_view(reply: LabelledReply) -> TurnView:
        reads_origin = detector.traits.reads_origin
        return reply.view.model_copy(update={"origin": reply.origin}) if reads_origin else reply.view

    async def judge(batch: Sequence[LabelledReply]) -> RepliesJudged:
        async with at_once:
            judged = await jury.judge(list(map(get_view, batch)), part, len(batches))
        on_judged(len(batch))
        return judged

    first = await judge(batches[0])
    return [first, *await gather_results(map(judge, batches[1:]))]


def _spread_seconds(batches: Sequence[RepliesJudged]) -> list[float | None]:
    """Return the seconds of each reply: those of its batch over the batch's size."""
    return [
        None if batch.seconds is None else batch.seconds / len(batch.judgements)
        for batch in batches
        for _ in batch.judgements
    ]


SHOWN = 5


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


class Costs(Frozen):
    """Costs and failures of judging, the same at each level; docs/bench.md explains the fields."""

    abstained: int
    failed: int
    parse_failures: int
    reasons: tuple[Missing, ...]
    truncated: int
    truncated_scored: int
    truncated_abstained: int
    calls: int
    replayed_calls: int
    tokens: int | None
    """Tokens read and written; None: unknown for an answered call."""
    calls_per_reply: Rounded | None
    tokens_per_reply: Rounded | None
    computed_tokens_per_reply: Rounded | None
    seconds: Rounded
    train_s: Rounded | None
    cold_s: Rounded | None
    p50_ms: Rounded | None
    p95_ms: Rounded | None
    memory_mb: Rounded | None = None
    batched: bool
    told_origin: bool


def compute_costs(evaluation: Evaluation) -> Costs:
    """Compute the costs and failures of judging."""
    judgements = evaluation.judgements
    number = len(judgements)
    calls = [call for judgement in judgements for call in judgement.calls]
    tokens = sum_calls(calls).all_tokens
    # Without judgements with a replayed answer, which takes no time.
    times = [
        seconds
        for seconds, judgement in zip(evaluation.latencies_s, judgements, strict=False)
        if seconds is not None
        and judgement.outcome == "scored"
        and not any(call.replayed for call in judgement.calls)
    ]
    p50, p95 = np.quantile(times, [0.5, 0.95]) * 1000 if times else (None, None)
    return Costs(
        abstained=sum(judgement.outcome == "abstained" for judgement in judgements),
        failed=sum(judgement.outcome == "failed" for judgement in judgements),
        parse_failures=sum(map(_is_unparseable, judgements)),
        reasons=count_reasons(judgements),
        truncated=sum(judgement.truncated for judgement in judgements),
        truncated_scored=sum(one.truncated and one.outcome == "scored" for one in judgements),
        truncated_abstained=sum(one.truncated and one.outcome == "abstained" for one in judgements),
        calls=len(calls),
        replayed_calls=sum(call.replayed for call in calls),
        tokens=tokens,
        calls_per_reply=len(calls) / number if number else None,
        tokens_per_reply=tokens / number if number and tokens is not None else None,
        computed_tokens_per_reply=_compute_mean_tokens(judgements),
        seconds=round(evaluation.seconds, 3),
        train_s=evaluation.train_s,
        cold_s=evaluation.cold_s,
        p50_ms=None if p50 is None else float(p50),
        p95_ms=None if p95 is None else float(p95),
        memory_mb=evaluation.memory_mb,
        batched=evaluation.batched,
        told_origin=evaluation.told_origin,
    )


def _compute_mean_tokens(judgements: Sequence[Judgement]) -> float | None:
    """Return the mean of tokens that the server computed for a reply; None if a call lacks them."""
    counts = [call.computed_tokens for one in judgements for call in one.calls if call.error is None]
    known = [count for count in counts if count is not None]
    return sum(known) / len(judgements) if judgements and len(known) == len(counts) else None


def _is_unparseable(judgement: Judgement) -> bool:
    """Return whether the judgement failed although every request was answered: in another form than asked."""
    calls = judgement.calls
    return judgement.outcome == "failed" and bool(calls) and all(call.error is None for call in calls)
