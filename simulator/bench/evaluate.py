"""Run detectors over labelled replies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from detectors.protocol import Detector, ThresholdProtocol
from scenarios.labelled import LabelledReply
from scenarios.transcript import Judgement, TurnView


@dataclass(frozen=True)
class Evaluation:
    """What one detector said of a data set."""

    detector: str
    """Its name."""
    threshold: float | None
    """The response-level threshold it decides by, where it has one."""
    threshold_protocol: ThresholdProtocol
    """Where that comes from."""
    replies: tuple[LabelledReply, ...]
    """What was judged."""
    judgements: tuple[Judgement, ...]
    """One for each reply, in the same order."""
    seconds: float
    """Wall-clock time of the whole evaluation."""


async def evaluate(
    detector: Detector,
    replies: Sequence[LabelledReply],
    concurrency: int,
    on_judged: Callable[[], None] = lambda: None,
) -> Evaluation:
    """Judge every reply; a detector that raises has failed on that reply."""
    bench = asyncio.Semaphore(concurrency)

    async def judge(reply: LabelledReply) -> Judgement:
        view = TurnView(
            history=reply.history, question=reply.question, passages=reply.passages, reply=reply.reply
        )
        async with bench:
            try:
                judgement = await detector.detect(view)
            except Exception as error:  # noqa: BLE001 - somebody else's detector may raise anything
                judgement = Judgement(outcome="failed", error=f"{type(error).__name__}: {error}")
        on_judged()
        return judgement

    started = time.perf_counter()
    judgements = await asyncio.gather(*(judge(reply) for reply in replies))
    return Evaluation(
        detector=detector.name,
        threshold=detector.threshold,
        threshold_protocol=detector.threshold_protocol,
        replies=tuple(replies),
        judgements=tuple(judgements),
        seconds=time.perf_counter() - started,
    )
