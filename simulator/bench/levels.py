"""The items of each level: replies, their sentences, their words; gold and the detector's view of each.

A sentence or word is positive if any gold span overlaps it. It is flagged if any flagged span overlaps it, or
if its score reaches the detector's threshold for such units. Where the detector could not score the text, the
item is not covered.
"""

from __future__ import annotations

import dataclasses
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.spans import Region, split_sentences
from hallulab.scenarios.transcript import Judgement
from hallulab.simulator.bench.evaluate import Evaluation
from hallulab.simulator.statistics.detection import Booleans, Sample
from hallulab.simulator.statistics.intervals import Floats, Integers

Level = Literal["response", "sentence", "word"]
LEVELS: tuple[Level, ...] = ("response", "sentence", "word")

Ends = tuple[int, int]
"""Start and end of a stretch of a reply."""
Scored = tuple[int, int, float]
"""Start, end and score of a stretch of a reply."""


@dataclass(frozen=True)
class Items:
    """Items of a level, and the detector's scores."""

    sample: Sample
    """Labels, scores, flags and group numbers of the scored items."""
    replies: Integers
    """Position of each scored item's reply in the evaluation."""
    places: Integers
    """Position of each scored item among all items."""
    gold: Booleans
    """Labels of all items, scored or not; False without a label."""
    owners: Integers
    """Position of each item's reply, for all items."""

    @property
    def n(self) -> int:
        """Number of items, scored or not."""
        return len(self.gold)

    @property
    def scored(self) -> Booleans:
        """Mask of the scored ones among all items."""
        mask = np.zeros(self.n, dtype=bool)
        mask[self.places] = True
        return mask

    def only(self, chosen: Booleans) -> Items:
        """Return the scored items that a mask over all items chooses."""
        mask = chosen[self.places]
        sample = self.sample.only(mask)
        return dataclasses.replace(self, sample=sample, replies=self.replies[mask], places=self.places[mask])

    def part(self, chosen: Booleans) -> Items:
        """Return the items, scored or not, that a mask over all items chooses."""
        kept = self.only(chosen)
        places = (np.cumsum(chosen) - 1)[kept.places]
        return dataclasses.replace(kept, places=places, gold=self.gold[chosen], owners=self.owners[chosen])


def group_numbers(replies: Sequence[LabelledReply]) -> dict[str, int]:
    """Number the groups of replies in alphabetical order."""
    return {group: number for number, group in enumerate(sorted({reply.group for reply in replies}))}


@lru_cache(maxsize=65536)
def split_items(text: str, level: Level) -> tuple[Region, ...]:
    """Return the items of a reply: itself, its sentences, or its words (white-space tokens)."""
    if level == "response":
        return (Region(0, len(text)),)
    if level == "sentence":
        return tuple(split_sentences(text))
    return tuple(Region(*match.span()) for match in re.finditer(r"\S+", text))


def collect_items(evaluation: Evaluation, level: Level, groups: Mapping[str, int]) -> Items:
    """Return the items of a level that have both a gold label and a score.

    Sentences and words have gold labels where their reply has gold spans (perhaps none in it).
    """
    known: list[Booleans] = []
    covered: list[Booleans] = []
    scores: list[Floats] = []
    flags: list[Booleans] = []
    owners: list[int] = []
    sizes: list[int] = []
    for place, (reply, judgement) in enumerate(zip(evaluation.replies, evaluation.judgements, strict=True)):
        gold = get_gold_labels(reply, level)
        if gold is None and level != "response":
            continue
        labels = np.zeros(1, dtype=bool) if gold is None else gold
        here = np.zeros(len(labels), dtype=bool)
        if gold is not None and judgement.outcome == "scored":
            here = mark_covered(reply.reply, judgement, level)
            scores.append(score_items(reply.reply, judgement, level)[here])
            flags.append(flag_items(reply.reply, judgement, level)[here])
        known.append(labels)
        covered.append(here)
        owners.append(place)
        sizes.append(len(labels))
    of_reply = np.repeat(np.array(owners, dtype=np.int64), sizes)
    numbers = np.array([groups[reply.group] for reply in evaluation.replies], dtype=np.int64)
    places = np.flatnonzero(_join_arrays(covered, bool))
    replies, every = of_reply[places], _join_arrays(known, bool)
    sample = Sample(
        labels=every[places],
        scores=_replace_infinite(_join_arrays(scores, float)),
        flags=_join_arrays(flags, bool),
        clusters=numbers[replies],
        probabilities=evaluation.probabilities,
    )
    return Items(sample, replies, places, gold=every, owners=of_reply)


def get_gold_labels(reply: LabelledReply, level: Level, kind: str | None = None) -> Booleans | None:
    """Return whether each item is hallucinated, by spans of `kind` if given; None without labels."""
    if level == "response" and kind is None:
        return None if reply.label is None else np.array([reply.label])
    if reply.spans is None:
        return None
    chosen = ((span.start, span.end) for span in reply.spans if kind in (None, span.label))
    return mark_touched(reply.reply, chosen, split_items(reply.reply, level))


def mark_characters(length: int, spans: Iterable[Ends]) -> Booleans:
    """Return whether each of so many characters is under any of the spans."""
    marks = np.zeros(length, dtype=bool)
    for start, end in spans:
        marks[start:end] = True
    return marks


def mark_touched(text: str, spans: Iterable[Ends], places: Sequence[Region]) -> Booleans:
    """Return whether any of `spans` shares a character with each of `places`."""
    before = np.concatenate([[0], np.cumsum(mark_characters(len(text), spans))])
    bounds = np.array(places, dtype=np.int64).reshape(-1, 2)
    found: Booleans = before[bounds[:, 1]] > before[bounds[:, 0]]
    return found


def list_located_ends(judgement: Judgement) -> list[Ends]:
    """Return start and end of the flagged spans that have a place."""
    return [
        (span.start, span.end)
        for span in judgement.spans or ()
        if span.start is not None and span.end is not None
    ]


def flag_items(text: str, judgement: Judgement, level: Level) -> Booleans:
    """Return whether the detector flags each item. A flag without places flags all items of the reply."""
    places = split_items(text, level)
    if level != "response" and level in judgement.unit_thresholds:
        return score_items(text, judgement, level) >= judgement.unit_thresholds[level]
    found = locate_spans(judgement)
    if level == "response" or found is None:
        return np.full(len(places), bool(judgement.flagged))
    return mark_touched(text, ((start, end) for start, end, _ in found), places)


def score_items(text: str, judgement: Judgement, level: Level) -> Floats:
    """Return the score of each item: the highest score that overlaps it.

    Scores come from the first of these that the detector has: units of the item's kind, units of any kind
    with a place, flagged spans. An item that none overlaps has score −inf: the detector found nothing there.
    A detector that does not say where gives each item the reply's score.
    """
    places = split_items(text, level)
    whole = float(judgement.score or 0.0)
    if level == "response":
        return np.array([whole])
    found = _choose_units(text, judgement, level) or locate_spans(judgement)
    if found is None:
        return np.full(len(places), whole)
    heat = np.full(len(text) + 1, -np.inf)
    for start, end, score in found:
        np.maximum(heat[start:end], score, out=heat[start:end])
    bounds = np.array(places, dtype=np.int64).reshape(-1)
    # `reduceat` also gives the maxima between the items; every second one is an item's.
    highest: Floats = np.maximum.reduceat(heat, bounds)[::2] if len(bounds) else np.zeros(0)
    return highest


def mark_covered(text: str, judgement: Judgement, level: Level) -> Booleans:
    """Return whether the detector judged each item. It did not where all units that overlap it lack a score.

    A detector that does not say where has judged all items, and so has one without such units.
    """
    places = split_items(text, level)
    unscored = [
        (unit.start, unit.end)
        for unit in judgement.units
        if unit.score is None and unit.start is not None and unit.end is not None
    ]
    said = locate_spans(judgement)
    if level == "response" or not unscored or said is None:
        return np.ones(len(places), dtype=bool)
    scored = ((start, end) for start, end, _ in (*_choose_units(text, judgement, level), *said))
    return mark_touched(text, scored, places) | ~mark_touched(text, unscored, places)


def locate_spans(judgement: Judgement) -> list[Scored] | None:
    """Return the flagged spans with a place; None where the detector flags a reply and does not say where."""
    if judgement.spans is None:
        return None
    found = [
        (span.start, span.end, float(judgement.score or 0.0) if span.score is None else span.score)
        for span in judgement.spans
        if span.start is not None and span.end is not None
    ]
    return found if found or not judgement.flagged else None


def _choose_units(text: str, judgement: Judgement, level: Level) -> list[Scored]:
    return _collect_units(text, judgement, level) or _collect_units(text, judgement, None)


def _collect_units(text: str, judgement: Judgement, kind: Level | None) -> list[Scored]:
    """Return the scored units of a kind, or of any, that have a place. Scored words are units, too."""
    found = [
        (unit.start, unit.end, unit.score)
        for unit in judgement.units
        if unit.start is not None and unit.end is not None and unit.score is not None
        if kind is None or unit.kind == kind
    ]
    if judgement.word_scores is not None and kind in ("word", None):
        words = zip(split_items(text, "word"), judgement.word_scores, strict=True)
        found += [(word.start, word.end, score) for word, score in words]
    return found


def _replace_infinite(scores: Floats) -> Floats:
    """Replace −inf, the score of items that nothing overlaps, by a finite score that no other one is below.

    It is 0, or, if other scores are negative, as log-odds may be, the next number below the lowest of them.
    It is the same for all replies, because items of all replies are ranked together.
    """
    untouched = np.isneginf(scores)
    lowest = float(scores[~untouched].min(initial=0.0))
    return np.where(untouched, math.nextafter(lowest, -sys.float_info.max) if lowest else 0.0, scores)


def _join_arrays(parts: Sequence[np.ndarray], kind: type) -> NDArray[Any]:
    return np.concatenate(parts).astype(kind) if parts else np.zeros(0, dtype=kind)
