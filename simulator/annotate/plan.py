"""Plan which turns to annotate: how many of each chatbot and class of the detector's score.

Turns of a chatbot are ranked by what the detector says (hallucinations, then its score) and divided into
classes. Of N turns in a cell, m are drawn, so that the variance of the corrected number is least: m is
proportional to N s, where s² is how much the detector's mistakes vary in the class (Neyman 1934, On the two
different aspects of the representative method, Journal of the Royal Statistical Society 97). At least two are
drawn of each cell, so no turn has a propensity of 0, and each cell shows how much its turns vary.

Before there are labels, s² is a guess: that mistakes vary with the number of hallucinations, as counts do.
Labels then take its place, draw by draw (Lee and others 2025, arXiv 2511.21140, allocate labels that way).
More classes make the variance smaller and Student's t wider, since fewer degrees of freedom are left; so
there are as many as make the expected interval narrowest, and leave each chatbot an interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hallulab.simulator.statistics.intervals import Floats, Integers
from hallulab.simulator.statistics.prediction_powered import LEAST_FREEDOM, PRIOR

MOST_CLASSES = 6
"""Classes of the score at most; more gain little (Cochran 1977, Sampling techniques, section 5A.8)."""
LEAST_DRAWN = 2
GUESS = 0.25
"""Variance of a detector's mistakes, over that of counts with the mean of what it says, before any label."""
LEAST_MEAN = 0.05
"""Hallucinations a turn that the guess reckons with at least, where the detector found hardly any."""
LABELS = 4.0
"""Labels that this guess is worth."""


@dataclass(frozen=True, slots=True)
class ScoredTurn:
    """A turn that the detector scored and localised."""

    conversation: str
    turn: int
    chatbot: str
    spans: int
    score: float
    annotated: int | None
    """Hallucinations by annotators; None: nobody looked."""


@dataclass(frozen=True)
class Cell:
    """Turns that are equally likely to be drawn."""

    stratum: int
    """Class of the score, from 0."""
    places: tuple[int, ...]
    drawn: int

    @property
    def propensity(self) -> float:
        """Probability with which one of them is drawn."""
        return self.drawn / len(self.places)


@dataclass(frozen=True)
class DrawPlan:
    """How many turns to draw of which."""

    cells: tuple[Cell, ...]
    """Every turn that nobody annotated is in one of them."""
    width: float | None
    """Expected width of the 95% interval of this run's HPT-1, all chatbots; None: unknown."""
    random_width: float | None
    """Likewise, were as many turns drawn with equal probability."""


def plan_draw(turns: Sequence[ScoredTurn], number: int) -> DrawPlan:
    """Plan a draw of so many turns, or of all that are left, if there are fewer."""
    planner = _Planner(turns, number)
    plans = [planner.plan(classes) for classes in range(1, MOST_CLASSES + 1)]
    possible = [plan for plan in plans if plan is not None]
    return min(possible, key=lambda plan: np.inf if plan.width is None else plan.width)


def draw_cells(plan: DrawPlan, random: np.random.Generator) -> list[tuple[Cell, int]]:
    """Draw turns by a plan; return their cells and places, in an order that tells nothing of them."""
    chosen = [
        (cell, int(place))
        for cell in plan.cells
        for place in random.choice(cell.places, cell.drawn, replace=False)
    ]
    return [chosen[at] for at in random.permutation(len(chosen))]


class _Planner:
    """Knows what is needed of the turns of a run to plan a draw."""

    def __init__(self, turns: Sequence[ScoredTurn], number: int) -> None:
        self._said = np.array([turn.spans for turn in turns], dtype=np.float64)
        self._score = np.array([turn.score for turn in turns])
        names = sorted({turn.chatbot for turn in turns})
        self._bots: Integers = np.array([names.index(turn.chatbot) for turn in turns])
        self._looked = np.array([turn.annotated is not None for turn in turns])
        true = np.array([turn.annotated or 0 for turn in turns], dtype=np.float64)
        self._left = [self._find(bot, ~self._looked) for bot in range(len(names))]
        self._number = min(number, sum(map(len, self._left)))
        self._fit(true)

    def _find(self, bot: int, of: Floats | Integers) -> Integers:
        return np.flatnonzero(of & (self._bots == bot))

    def _fit(self, true: Floats) -> None:
        """Learn from labels what the detector gets wrong."""
        said, there = self._said[self._looked], true[self._looked]
        spread = PRIOR * float(self._said.var())
        of_labels = said - said.mean() if len(said) else said
        above, below = spread + float((of_labels * there).sum()), spread + float((of_labels * said).sum())
        self._wrong = true - np.clip(above / below if below > 0 else 1.0, 0.0, 1.0) * self._said
        self._mean = max(float(self._said.mean()), LEAST_MEAN)
        self._scale = GUESS
        if len(said) > 1:
            wrong = self._wrong[self._looked]
            squares = float(((wrong - wrong.mean()) ** 2).sum()) / (2 * self._mean)
            self._scale = (LABELS * GUESS + squares) / (LABELS + len(said) - 1)

    def _estimate_variance(self, places: Integers, like: Integers) -> float:
        """Estimate s² of turns, by annotated turns that are like them."""
        guess = self._scale * (float(self._said[places].mean()) + self._mean)
        wrong = self._wrong[like]
        squares = float(((wrong - wrong.mean()) ** 2).sum()) if len(like) else 0.0
        return (LABELS * guess + squares) / (LABELS + max(len(like) - 1, 0))

    def plan(self, classes: int) -> DrawPlan | None:
        """Plan a draw with so many classes of the score; None where a cell would be drawn from too seldom."""
        bots = [left for left in self._left if len(left)]
        groups = [np.concatenate(bots)] if self._number < LEAST_DRAWN * len(bots) else bots
        cells = [
            Cell(stratum, tuple(part.tolist()), 0)
            for group in groups
            for stratum, part in self._divide(group, classes)
        ]
        sizes = np.array([len(cell.places) for cell in cells])
        least = np.minimum(LEAST_DRAWN, sizes)
        of_class = [self._match(cells, stratum) for stratum in range(classes)]
        variances = np.array([of_class[cell.stratum] for cell in cells])
        drawn = _allocate(sizes, variances, np.minimum(least, self._number), self._number)
        cells = [replace(cell, drawn=int(number)) for cell, number in zip(cells, drawn, strict=True)]
        if classes > 1 and not self._gives_intervals(cells):
            return None
        width = self._expect_width(cells, variances)
        return DrawPlan(tuple(cells), width, self._expect_random_width())

    def _gives_intervals(self, cells: Sequence[Cell]) -> bool:
        """Return whether each chatbot keeps the degrees of freedom that an interval of its own takes."""
        freedom = [0] * len(self._left)
        for cell in cells:
            freedom[self._bots[cell.places[0]]] += cell.drawn - 1
        return all(
            one >= min(LEAST_FREEDOM, len(left) - 1)
            for one, left in zip(freedom, self._left, strict=True)
            if len(left)
        )

    def _divide(self, places: Integers, classes: int) -> Iterator[tuple[int, Integers]]:
        """Yield the numbers and turns of the classes: N s is the same in each, by the guess."""
        ranked = places[np.lexsort((self._score[places], self._said[places]))]
        sums = np.cumsum(np.sqrt(self._said[ranked] + self._mean))
        strata = np.minimum((classes * (sums - sums[0] / 2) / sums[-1]).astype(int), classes - 1)
        for stratum in np.unique(strata):
            yield int(stratum), ranked[strata == stratum]

    def _match(self, cells: Sequence[Cell], stratum: int) -> float:
        """Estimate s² of a class of all chatbots: one of their own would take more labels than there are."""
        own = np.array(
            [place for cell in cells if cell.stratum == stratum for place in cell.places], dtype=int
        )
        if not len(own):
            return 0.0
        low, high = self._said[own].min(), self._said[own].max()
        like = np.flatnonzero(self._looked & (self._said >= low) & (self._said <= high))
        return self._estimate_variance(own, like)

    def _expect_width(self, cells: Sequence[Cell], variances: Floats) -> float | None:
        parts: dict[int, tuple[float, int]] = {}
        for cell, variance in zip(cells, variances, strict=True):
            size = len(cell.places)
            share = size / len(self._said)
            more = share**2 * variance * (1 / cell.drawn - 1 / size)
            so_far, freedom = parts.get(cell.stratum, (0.0, 0))
            parts[cell.stratum] = (so_far + more, freedom + cell.drawn - 1)
        together = sum(one for one, _ in parts.values())
        of_squares = sum(one**2 / freedom for one, freedom in parts.values() if freedom)
        return self._compute_width(together, together**2 / of_squares if of_squares else 0.0)

    def _expect_random_width(self) -> float | None:
        left = sum(map(len, self._left))
        together = 0.0
        for bot, places in enumerate(self._left):
            if not len(places):
                continue
            drawn = self._number * len(places) / left
            # The number drawn of a chatbot varies, and few cost more than many gain.
            inverse = (1 + (1 - len(places) / left) / drawn) / drawn
            variance = self._estimate_variance(places, self._find(bot, self._looked))
            together += (len(places) / len(self._said)) ** 2 * variance * max(inverse - 1 / len(places), 0)
        return self._compute_width(together, self._number - len(self._left))

    def _compute_width(self, variance: float, freedom: float) -> float | None:
        """Compute the expected width, with what is annotated already."""
        from scipy.stats import t

        before = 0.0
        bots = range(len(self._left))
        known = [self._find(bot, self._looked) for bot in bots]
        if all(map(len, known)):
            for bot, places in enumerate(known):
                every = np.flatnonzero(self._bots == bot)
                share = len(every) / len(self._said)
                before += (
                    share**2 * self._estimate_variance(every, places) * (1 / len(places) - 1 / len(every))
                )
            freedom += max(sum(map(len, known)) - len(known), 0)
        if freedom < LEAST_FREEDOM:
            return None
        if before > 0 and variance > 0:
            variance = 1 / (1 / before + 1 / variance)
        return float(2 * t.ppf(0.975, freedom) * variance**0.5)


def _allocate(sizes: Integers, variances: Floats, least: Integers, number: int) -> Integers:
    """Share out a number of turns, each where it makes the variance less by most.

    Args:
        sizes: turns of each cell.
        variances: s² of each.
        least: drawn of each at least.
    """
    drawn = least.astype(np.int64)
    while drawn.sum() > number:
        drawn[np.argmax(drawn)] -= 1
    while drawn.sum() < number:
        # One more turn takes N² s² (1/m − 1/(m + 1)) off the variance.
        gain = sizes.astype(np.float64) ** 2 * np.maximum(variances, 1e-9) / (drawn * (drawn + 1.0))
        drawn[np.argmax(np.where(drawn < sizes, gain, -1.0))] += 1
    return drawn
