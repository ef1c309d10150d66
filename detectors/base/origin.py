"""Where a labelled reply comes from, for the detectors whose options ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from detectors.base.protocol import BatchDetector
from scenarios.labelled import LabelledReply
from scenarios.transcript import Judgement, TurnView


@dataclass(frozen=True)
class Origin:
    """Who wrote a reply, and about what: known of labelled data, not of a chatbot under test."""

    collection: str = ""
    """Where the source comes from; empty: not known."""
    generator: str = ""
    """The model that wrote the reply; empty: not known."""
    temperature: float | None = None
    """Of that model; None: not known."""


UNKNOWN = Origin()
"""Of a chatbot's reply."""


@runtime_checkable
class OriginDetector(BatchDetector, Protocol):
    """A detector that can read where replies come from; of gold labels it sees none."""

    reads_origin: bool
    """Whether its options ask for that. Where they do not, it is never told."""

    def detect_from(self, views: Sequence[TurnView], origins: Sequence[Origin]) -> list[Judgement]:
        """Judge every reply like `detect_batch`, knowing its origin."""
        ...


def origin_of(reply: LabelledReply) -> Origin:
    """What the `meta` of a labelled reply says of its origin: `source`, `model`, `temperature`."""
    temperature = reply.meta.get("temperature")
    return Origin(
        collection=str(reply.meta.get("source") or reply.dataset),
        generator=str(reply.meta.get("model") or ""),
        temperature=float(temperature) if isinstance(temperature, int | float) else None,
    )
