"""Four rules for the agreement of flagged with gold spans. Each is exactly 1 where the two are the same.

1. Characters (primary): the union of the characters under each side's spans, counts added up over replies.
2. Pairwise, as LettuceDetect's evaluation by characters: overlaps of every flagged with every gold span, over
   the lengths of the spans, counts added up over replies. Where spans of one side overlap each other, an
   overlap counts more than once, and precision could exceed 1; it is capped.
3. Mean intersection over union of those characters, over the replies with a span on either side.
4. Exact: a span counts where the other side has one with the same two ends.

A flagged span without a place in the reply (a quotation that is not there) has no characters. So it costs
nothing by rules 1 to 3, and is a wrong span by rule 4. Such spans are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Judgement
from hallulab.simulator.measure.detection import compute_precision_recall_f1

Ends = tuple[int, int]


@dataclass(frozen=True)
class HitCounts:
    """Hits, flagged and gold, in the unit of a rule."""

    hits: int
    """Number on both sides."""
    flagged: int
    """Number on the detector's side."""
    gold: int
    """Number on the annotators' side."""


@dataclass(frozen=True)
class SpanCounts:
    """Agreement on one reply under each rule."""

    characters: HitCounts
    """Rule 1."""
    pairwise: HitCounts
    """Rule 2."""
    iou: float | None
    """Rule 3; None without any span."""
    exact: HitCounts
    """Rule 4."""
    unlocated: int
    """Flagged spans without a place in the reply."""


def count_spans(reply: LabelledReply, judgement: Judgement) -> SpanCounts | None:
    """Count the agreement on a reply; None where the annotators or the detector do not say where."""
    if reply.spans is None or judgement.spans is None or not judgement.localised:
        return None
    length = len(reply.reply)
    flagged = [
        (span.start, min(span.end, length))
        for span in judgement.spans
        if span.start is not None and span.end is not None and span.start < length
    ]
    unlocated = len(judgement.spans) - len(flagged)
    gold = [(span.start, span.end) for span in reply.spans]
    characters = _count_characters(length, flagged, gold)
    union = characters.flagged + characters.gold - characters.hits
    once, gold_once = set(flagged), set(gold)
    return SpanCounts(
        characters=characters,
        pairwise=_count_pairwise(flagged, gold),
        iou=characters.hits / union if union else None,
        exact=HitCounts(len(once & gold_once), len(once) + unlocated, len(gold_once)),
        unlocated=unlocated,
    )


def compute_span_numbers(counted: Sequence[SpanCounts]) -> dict[str, float | None]:
    """Compute precision, recall and F1 under the rules, the primary one without a prefix, and `iou`."""
    ious = [item.iou for item in counted if item.iou is not None]
    return {
        **_compute_numbers("", [item.characters for item in counted]),
        **_compute_numbers("pairwise_", [item.pairwise for item in counted]),
        "iou": sum(ious) / len(ious) if ious else None,
        **_compute_numbers("exact_", [item.exact for item in counted]),
    }


def _count_characters(length: int, flagged: Sequence[Ends], gold: Sequence[Ends]) -> HitCounts:
    masks = np.zeros((2, length), dtype=bool)
    for mask, spans in zip(masks, (flagged, gold), strict=True):
        for start, end in spans:
            mask[start:end] = True
    return HitCounts(int((masks[0] & masks[1]).sum()), int(masks[0].sum()), int(masks[1].sum()))


def _count_pairwise(flagged: Sequence[Ends], gold: Sequence[Ends]) -> HitCounts:
    overlap = sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in flagged for b in gold)
    return HitCounts(overlap, sum(end - start for start, end in flagged), sum(b - a for a, b in gold))


def _compute_numbers(prefix: str, counts: Sequence[HitCounts]) -> dict[str, float | None]:
    hits, flagged, gold = (
        sum(getattr(item, field) for item in counts) for field in ("hits", "flagged", "gold")
    )
    found = compute_precision_recall_f1(hits, flagged, gold)
    if hits > min(flagged, gold):
        precision, recall = min(1.0, hits / flagged), min(1.0, hits / gold)
        found = {
            "precision": precision,
            "recall": recall,
            "f1": 2 * precision * recall / (precision + recall),
        }
    return {f"{prefix}{name}": value for name, value in found.items()}
