"""Replies, judgements and evaluations, for the tests of the benchmark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Judgement, Span, Unit
from hallulab.simulator.bench.evaluate import Evaluation
from hallulab.simulator.bench.results import BenchData
from tests.builders import labelled, places

T = TypeVar("T")

DATA = BenchData(dataset="d", replies=3, split="all replies", tested_on=3)
TEXT = "Chalk came first. Crayons cost Rs 5."
"""Two sentences, [0, 17) and [18, 36)."""
FAILED = Judgement(outcome="failed", error="no answer")


def known(value: T | None) -> T:
    """The value, which is there."""
    assert value is not None
    return value


def reply(*spans: tuple[int, int], text: str = TEXT, group: str = "g", **fields: Any) -> LabelledReply:
    """A reply with gold spans, hallucinated if it has any."""
    given = {"id": f"{group}-{spans}", "task": "qa", "spans": places(*spans), "group": group}
    return labelled(text, **{"label": bool(spans), **given, **fields})


def judged(*spans: tuple[int, int] | None, text: str = TEXT, **fields: Any) -> Judgement:
    """A judgement that flags those spans; None: one without a place. `fields` are others of `Judgement`."""
    found = [
        Span(start=None, end=None, text="gone") if ends is None else
        Span(start=ends[0], end=ends[1], text=text[slice(*ends)])
        for ends in spans
    ]  # fmt: skip
    given = {"score": float(bool(spans)), "flagged": bool(spans), "spans": tuple(found)}
    return Judgement.model_validate({"outcome": "scored", **given, **fields})


def unit(start: int, end: int, score: float | None, kind: str | None = None) -> Unit:
    return Unit.model_validate(
        {"kind": kind, "text": TEXT[start:end], "start": start, "end": end, "score": score}
    )


FAILED_SENTENCE = (unit(0, 17, 0.9, "sentence"), unit(18, 36, None, "sentence"))


def evaluation(
    replies: Iterable[LabelledReply], *judgements: Judgement, name: str = "d", **fields: Any
) -> Evaluation:
    """What a detector said of replies, in no time."""
    return Evaluation(name, 0.5, "given", tuple(replies), judgements, **{"seconds": 0.0, **fields})
