"""Prediction-powered inference: correct a detector's numbers by annotations of some turns.

The turns that a detector scored, with what people found in those that they looked at.
Corrected numbers are made of sums over personas: all conversations with a persona, of every chatbot and with
every seed, are resampled together.

Correct a detector's numbers by people's annotations of some turns: prediction-powered inference.
Let T turns be judged by the detector, which says f of each, and n of them be annotated: people say y. With λ,

    θ = mean of y over the n + λ (mean of f over the T - mean of f over the n)

estimates the mean of y over all turns, whatever the detector's mistakes, if the n are as good as drawn at
random (turns or whole conversations). λ = 0 ignores the detector; λ = 1 is its number plus its mean error on
the n. Angelopoulos, Duchi and Zrnic (2023, PPI++: Efficient prediction-powered inference, arXiv 2311.01453,
sections 2 and 6) take the λ with the least variance. In their words, with N = T - n turns that nobody looked
at, λ' = cov(y, f) / ((1 + n / N) var(f)) weighs the mean over these N; as λ' (mean over N - mean over n) =
λ (mean over T - mean over n) for λ' = λ N / T, ours is cov(y, f) / var(f). Covariances are over the n,
variances over all T, both in [0, 1] together, as in the authors' package ppi-python 0.2.3. That package is
not used, since it takes turns for independent.

Chatbots under a detector share λ: it is the one with the least sum of their variances. One chatbot's few
annotations would make it noise.

Turns that hallulab drew to be annotated are not equally likely; `drawn_turns` has their weights.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hallulab.scenarios.datasets.annotations import Draw, TurnPlace
from hallulab.scenarios.text.spans import Region, split_sentences
from hallulab.scenarios.transcript import Conversation, Span, Verdict
from hallulab.simulator.metrics.annotations import Annotations
from hallulab.simulator.metrics.hallucinations import ByDetector, index_by_detector
from hallulab.simulator.records.journals import Journals
from hallulab.simulator.statistics.drawn_turns import (
    CELL,
    Draws,
    compute_cell_sums,
    compute_drawn_lambda,
    compute_drawn_thetas,
)
from hallulab.simulator.statistics.intervals import Floats
from hallulab.simulator.statistics.prevalence import compute_jackknife_error
from hallulab.simulator.statistics.sums import Person, PersonSums

SUMS = 7
"""Sums of a cluster: turns, f, f²; annotated turns, their y, f, y f."""


@dataclass(frozen=True)
class PPIEstimate:
    """A number by prediction-powered inference."""

    value: float
    """θ; may lie outside of its range."""
    weight: float
    """λ."""
    annotated: int
    """n."""
    clusters: int
    """Clusters with an annotated turn."""
    error: float | None
    """Standard error by leaving clusters out; None where that leaves no annotated turn."""


def compute_turn_sums(said: int, true: int | None) -> tuple[int, ...]:
    """Return the sums of one turn.

    Args:
        said: f.
        true: y; None: nobody looked.
    """
    if true is None:
        return (1, said, said**2, 0, 0, 0, 0)
    return (1, said, said**2, 1, true, said, true * said)


def estimate_means(sums: Floats, draws: Draws = ()) -> list[PPIEstimate]:
    """Estimate the mean of y of each chatbot, and, last, of all turns of all chatbots.

    That of all turns weighs each chatbot's θ by its turns, because the annotated shares may differ. The error
    is that of θ with its λ: both are made anew without each cluster in turn. So turns of a cluster need not
    be independent, nor conversations of several chatbots and seeds with the same persona.

    Args:
        sums: those of each cluster of each chatbot, shape (clusters, chatbots, `SUMS`), 0 where a chatbot
            lacks a cluster. Each chatbot has an annotated turn. After these stand the sums of drawn turns, if
            there are any (`drawn_turns`).
        draws: how they were drawn.
    """
    totals = sums.sum(axis=0)
    found = []
    for place in range(sums.shape[1]):
        own = sums[sums[:, place, 0] > 0]
        others = np.repeat(totals[None], len(own), axis=0)
        others[:, place] -= own[:, place]
        found.append(_estimate_mean(totals, others, own[:, place, 3], place, draws))
    return [*found, _estimate_mean(totals, totals - sums, sums[:, :, 3].sum(axis=1), slice(None), draws)]


def _estimate_mean(
    totals: Floats, others: Floats, annotated: Floats, part: int | slice, draws: Draws
) -> PPIEstimate:
    """Estimate one number.

    Args:
        totals: shape (chatbots, `SUMS`).
        others: the totals without each cluster in turn, shape (clusters, chatbots, `SUMS`).
        annotated: annotated turns of the clusters.
        part: the chatbot, or all.
        draws: how turns were drawn.
    """
    error = None
    if len(others) > 1 and (others[..., 3] > 0).all():
        error = compute_jackknife_error(_compute_theta(others, part, draws))
    return PPIEstimate(
        value=float(_compute_theta(totals[None], part, draws)[0]),
        weight=float(compute_lambda(totals, draws)),
        annotated=round(float(annotated.sum())),
        clusters=int((annotated > 0).sum()),
        error=error,
    )


def _compute_theta(totals: Floats, part: int | slice, draws: Draws) -> Floats:
    """Compute θ of a chatbot or of all from totals of shape (..., chatbots, `SUMS`)."""
    values = compute_thetas(totals, draws)
    if isinstance(part, int):
        one: Floats = values[..., part]
        return one
    turns = totals[..., 0]
    together: Floats = (values * turns).sum(axis=-1) / turns.sum(axis=-1)
    return together


def compute_lambda(totals: Floats, draws: Draws = ()) -> Floats:
    """Compute λ from totals of shape (..., chatbots, `SUMS`), of drawn turns as `drawn_turns` says."""
    if draws:
        return compute_drawn_lambda(totals, draws)
    turns, f, squares, annotated, y, of_annotated, products = np.moveaxis(totals, -1, 0)
    variance = (squares - f**2 / turns) / np.maximum(turns - 1, 1e-9)
    covariance = products / annotated - y / annotated * of_annotated / annotated
    unseen = np.maximum(1 / annotated - 1 / turns, 0.0)
    spread = (unseen * variance).sum(axis=-1)
    weight = (unseen * covariance).sum(axis=-1) / np.where(spread > 1e-12, spread, np.inf)
    clipped: Floats = np.clip(weight, 0.0, 1.0)
    return clipped


def compute_thetas(totals: Floats, draws: Draws = ()) -> Floats:
    """Compute each chatbot's θ from totals of shape (..., chatbots, `SUMS`), with the λ of these totals."""
    if draws:
        return compute_drawn_thetas(totals, draws)
    turns, f, _, annotated, y, of_annotated, _ = np.moveaxis(totals, -1, 0)
    value: Floats = y / annotated + compute_lambda(totals)[..., None] * (f / turns - of_annotated / annotated)
    return value


@dataclass(frozen=True, slots=True)
class JudgedTurn:
    """A turn that a detector scored and localised."""

    chatbot: str
    person: Person
    """Whom the chatbot talked to."""
    depth: int
    """Exchanges before the turn."""
    flagged: bool
    """Whether the reply is flagged."""
    spans: int
    """Hallucinations by the detector, unlocated ones included."""
    sentences: int
    flagged_sentences: int
    """Those that a located span touches."""
    annotated: int | None
    """Hallucinations by people; None: nobody looked."""
    draw: Draw | None = None
    """How the turn was drawn to be annotated; None: not by hallulab."""


class TurnSums:
    """The turns that one detector scored, added up by persona, depth and chatbot."""

    def __init__(self) -> None:
        self._sums = PersonSums(_WIDTH)
        self._drawn = PersonSums(2 * CELL)

    def add(self, turn: JudgedTurn) -> None:
        """Add a turn."""
        true, flagged = turn.annotated, int(turn.flagged)
        numbers = (
            1,
            flagged,
            turn.spans,
            turn.sentences,
            turn.flagged_sentences,
            *compute_turn_sums(flagged, None if true is None else int(true > 0)),
            *compute_turn_sums(turn.spans, true),
        )
        self._sums.add(turn.person, (turn.depth, turn.chatbot), numbers)
        if turn.draw is not None and true is not None:
            cell = (*compute_cell_sums(flagged, int(true > 0)), *compute_cell_sums(turn.spans, true))
            self._drawn.add(turn.person, (turn.depth, turn.chatbot, turn.draw), cell)

    def merge(self, other: TurnSums) -> None:
        """Add the turns of other personas."""
        self._sums.merge(other._sums)
        self._drawn.merge(other._drawn)

    @property
    def depths(self) -> list[int]:
        """The depths that there are."""
        return sorted({depth for depth, _ in self._sums.keys})

    def panel(self, chatbots: Sequence[str], depth: int | None) -> Panel:
        """Return the sums of turns at a depth, or of all for None, of the personas that have any."""
        depths = self.depths if depth is None else [depth]
        tables = [
            (place, *self._sums.table((each, name))) for place, name in enumerate(chatbots) for each in depths
        ]
        rows = {
            person: at
            for at, person in enumerate(sorted({one for _, persons, _ in tables for one in persons}))
        }
        found = np.zeros((len(rows), len(chatbots), _WIDTH))
        for place, persons, numbers in tables:
            found[[rows[person] for person in persons], place] += numbers
        cells = sorted(key for key in self._drawn.keys if key[0] in depths and key[1] in chatbots)
        draws = tuple(sorted({draw for _, _, draw in cells}))
        drawn = np.zeros((len(rows), len(chatbots), len(draws), 2 * CELL))
        for key in cells:
            persons, numbers = self._drawn.table(key)
            at = ([rows[person] for person in persons], chatbots.index(key[1]), draws.index(key[2]))
            drawn[at] += numbers
        return Panel(found, drawn, draws)


@dataclass(frozen=True)
class Panel:
    """Sums of turns, shape (personas, chatbots, values); personas are sorted by name."""

    sums: Floats
    drawn: Floats
    """Those of drawn turns, by draw: shape (personas, chatbots, draws, values)."""
    draws: Draws
    """How these were drawn."""

    @property
    def flags(self) -> Floats:
        """Turns, turns, flagged turns."""
        return self.sums[:, :, [0, 0, 1]]

    @property
    def spans(self) -> Floats:
        """Turns, turns, hallucinations."""
        return self.sums[:, :, [0, 0, 2]]

    @property
    def sentences(self) -> Floats:
        """Turns, sentences, flagged sentences."""
        return self.sums[:, :, [0, 3, 4]]

    @property
    def looked_flags(self) -> Floats:
        """Sums of `compute_turn_sums` of whether turns are flagged, then those of drawn turns."""
        return self._join(self.sums[:, :, 5 : 5 + SUMS], self.drawn[..., :CELL])

    @property
    def looked_spans(self) -> Floats:
        """Likewise of their hallucinations."""
        return self._join(self.sums[:, :, 5 + SUMS :], self.drawn[..., CELL:])

    def _join(self, sums: Floats, drawn: Floats) -> Floats:
        """Put the sums of drawn turns behind those of all."""
        return np.concatenate([sums, drawn.reshape(*drawn.shape[:2], -1)], axis=2)


_WIDTH = 5 + 2 * SUMS


def sum_judged_turns(turns: Iterable[JudgedTurn]) -> TurnSums:
    """Add up turns that one detector scored."""
    sums = TurnSums()
    for turn in turns:
        sums.add(turn)
    return sums


class JudgedTurns:
    """Adds up the scored turns of each detector, conversation by conversation."""

    def __init__(self, annotations: Annotations) -> None:
        self._annotations = annotations
        self.sums: dict[str, TurnSums] = defaultdict(TurnSums)

    def add(self, conversation: Conversation, verdicts: ByDetector) -> None:
        """Add the turns of a conversation."""
        for detector, turns in verdicts.items():
            for _, turn in collect_placed_turns(conversation, turns, self._annotations):
                self.sums[detector].add(turn)

    def merge(self, other: JudgedTurns) -> None:
        """Add the turns of other conversations."""
        for detector, sums in other.sums.items():
            self.sums[detector].merge(sums)


def collect_judged_turns(
    conversations: Sequence[Conversation], verdicts: Sequence[Verdict], annotations: Annotations
) -> dict[str, list[JudgedTurn]]:
    """Return the scored turns of each detector, in the order of the conversations.

    Raises:
        UsageError: a turn has two verdicts of one detector.
    """
    judged: dict[str, list[JudgedTurn]] = defaultdict(list)
    for conversation, found in Journals(conversations, verdicts).judged(by_case=False):
        for detector, turns in index_by_detector(found).items():
            placed = collect_placed_turns(conversation, turns, annotations)
            judged[detector] += [turn for _, turn in placed]
    return dict(sorted(judged.items()))


def collect_placed_turns(
    conversation: Conversation, verdicts: Mapping[int, Verdict], annotations: Annotations
) -> list[tuple[TurnPlace, JudgedTurn]]:
    """Return the turns of a conversation that one detector scored, with their places in the run.

    Args:
        verdicts: the detector's, by turns.
        annotations: what annotators found.
    """
    found = []
    person = (conversation.scenario, conversation.persona)
    for turn in conversation.turns:
        verdict = verdicts.get(turn.index)
        if verdict is None or verdict.spans is None or not verdict.localised:
            continue
        sentences, place = split_sentences(turn.reply), (conversation.id, turn.index)
        judged = JudgedTurn(
            chatbot=conversation.chatbot,
            person=person,
            depth=conversation.depth(turn.index),
            flagged=bool(verdict.flagged),
            spans=len(verdict.spans),
            sentences=len(sentences),
            flagged_sentences=_count_touched(turn.reply, verdict.spans, sentences),
            annotated=annotations.counts.get(place),
            draw=annotations.drawn.get(place),
        )
        found.append((place, judged))
    return found


def sum_turns(
    turns: Iterable[JudgedTurn],
    chatbots: Sequence[str],
    of_turn: Callable[[JudgedTurn], tuple[float, ...]],
) -> Floats:
    """Add up what `of_turn` gives: shape (personas, chatbots, values)."""
    turns = list(turns)
    rows = {person: place for place, person in enumerate(sorted({turn.person for turn in turns}))}
    columns = {name: place for place, name in enumerate(chatbots)}
    values = np.array([of_turn(turn) for turn in turns], dtype=np.float64)
    found = np.zeros((len(rows), len(columns), values.shape[1]))
    np.add.at(
        found, ([rows[turn.person] for turn in turns], [columns[turn.chatbot] for turn in turns]), values
    )
    return found


def _count_touched(reply: str, spans: Sequence[Span], places: Sequence[Region]) -> int:
    """Count the places that a located span touches, in time that grows with the reply and with the spans."""
    if not any(span.start is not None for span in spans):
        return 0
    ends = np.zeros(len(reply) + 1, dtype=np.int64)
    for span in spans:
        if span.start is not None and span.end is not None:
            ends[span.start] += 1
            ends[span.end] -= 1
    before = np.concatenate([[0], np.cumsum(np.cumsum(ends) > 0)])
    return sum(bool(before[place.end] > before[place.start]) for place in places)
