"""Prediction-powered inference from turns that hallulab drew, with the probability of each.

`hallulab annotate` draws turns within cells of a chatbot and a class of the detector's score, some cells more
densely than others. An annotated turn then counts 1 / π turns, where π is its propensity, the probability
with which it was drawn: inverse propensity weights, as in Zrnic and Candès (2024, Active statistical
inference, arXiv 2403.03208). With sums over a draw's annotated turns, and R turns that nobody had annotated
before it,

    mean of y over all turns = (y of those annotated before + R Σ(y / π) / Σ(1 / π)) / turns

is right on average given what was annotated before, whatever made people look there; likewise of f. So each
draw estimates both means, and so does what was annotated without any draw, which is taken for drawn at
random. They are averaged with weights by how many equally likely turns each is worth, (Σ 1/π)² / Σ 1/π²
(Kish 1965, Survey sampling), and θ = mean of y + λ (mean of f over all turns - that estimate of it). Turns
that were drawn but not annotated are taken for missing at random.

λ is the slope of y on f within chatbots, of drawn turns, as if `PRIOR` more turns had the slope 1. Of twenty
labels, the slope that fits them best also fits their noise: θ would lie too low, since counts are skewed, and
its error would look too small. With λ = 1 neither happens, and a detector that says nothing costs most.

Weights are numbers of the design, and what is added up over personas are whole numbers by cell; so the sums
of several processes merge without rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hallulab.scenarios.datasets.annotations import Draw
from hallulab.simulator.statistics.intervals import Floats

CELL = 6
"""Sums of a chatbot's turns that were drawn alike: turns, y, f, y f, y², f²."""
PRIOR = 5.0
"""Turns with a slope of 1 that λ starts from."""
LEAST_FREEDOM = 3
"""Degrees of freedom below which there is no interval: quantiles of Student's t are above 3.2 there."""

Draws = tuple[Draw, ...]
"""Which turns were drawn alike, in the order of their sums."""


@dataclass(frozen=True)
class DrawnError:
    """How far the number of all turns of the run may be from an estimate by some of them."""

    error: float
    """Standard error, by the draws alone."""
    freedom: float
    """Degrees of freedom (Satterthwaite)."""


class _WeighedDraw(NamedTuple):
    """What one draw says, each of shape (..., chatbots)."""

    share: Floats
    """Weight among the draws of the chatbot."""
    unseen: Floats
    """Turns that nobody had annotated before."""
    y: Floats
    """The mean of y over all turns, as estimated."""
    f: Floats


def compute_cell_sums(said: int, true: int) -> tuple[int, ...]:
    """Return the sums of one drawn turn: f is what the detector says, y what annotators say."""
    return 1, true, said, said * true, true**2, said**2


def compute_drawn_thetas(totals: Floats, draws: Draws) -> Floats:
    """Compute each chatbot's θ.

    Args:
        totals: the sums of `prediction_powered`, then those of each cell: shape (..., chatbots, values).
        draws: how the cells were drawn.
    """
    rounds = _weigh_rounds(totals, draws)
    y = sum((one.share * one.y for one in rounds), start=np.zeros(()))
    f = sum((one.share * one.f for one in rounds), start=np.zeros(()))
    weight = compute_drawn_lambda(totals, draws)[..., None]
    theta: Floats = y + weight * (totals[..., 1] / totals[..., 0] - f)
    return theta


def compute_drawn_lambda(totals: Floats, draws: Draws) -> Floats:
    """Compute λ, which the chatbots share; arguments as `compute_drawn_thetas`."""
    turns, f, squares = (totals[..., place] for place in range(3))
    cells = _get_cells(totals, draws)
    weights = 1 / _get_propensities(draws)
    n, y_mean, f_mean, products, _, f_squares = np.moveaxis(
        _divide((cells * weights[:, None]).sum(axis=-2), (cells[..., 0] * weights).sum(axis=-1)[..., None]),
        -1,
        0,
    )
    some = turns * (n > 0)
    everything = np.maximum(some.sum(axis=-1), 1e-9)
    covariance = (some * (products - y_mean * f_mean)).sum(axis=-1) / everything
    variance = (some * (f_squares - f_mean**2)).sum(axis=-1) / everything
    spread = (squares - _divide(f**2, turns)).sum(axis=-1) / np.maximum((turns - 1).sum(axis=-1), 1e-9)
    labels = cells[..., 0].sum(axis=(-2, -1))
    above = labels * covariance + PRIOR * spread
    below = labels * variance + PRIOR * spread
    found: Floats = np.clip(above / np.where(below > 1e-12, below, np.inf), 0.0, 1.0)
    return found


def estimate_drawn_error(totals: Floats, draws: Draws, part: int | None) -> DrawnError | None:
    """Estimate how far what labels of all turns would give may be from θ; None where that cannot be told.

    This is the error by the draws alone: it says nothing of other personas. In a class of the score, what
    the detector gets wrong varies alike for all chatbots, if the number is of all of them. It cannot be told
    where turns were annotated that hallulab did not draw, or too few.

    Args:
        totals: as of `compute_drawn_thetas`, shape (chatbots, values).
        draws: how the cells were drawn.
        part: the chatbot; None: all.
    """
    cells = _get_cells(totals, draws)
    own = cells if part is None else cells[[part]]
    chosen = totals if part is None else totals[[part]]
    if not draws or (own[..., 0].sum(axis=1) != chosen[:, 3]).any():
        return None
    weight = float(compute_drawn_lambda(totals, draws))
    rounds = dict(zip(_number_rounds(draws), _weigh_rounds(chosen, draws), strict=True))
    n, y, f, products, y_squares, f_squares = np.moveaxis(own, -1, 0)
    residual = y - weight * f
    squares = y_squares - 2 * weight * products + weight**2 * f_squares - _divide(residual**2, n)
    turns = chosen[:, 0].sum()
    sizes = n / _get_propensities(draws)
    parts: list[tuple[float, float, int]] = []
    for number, stratum in sorted({(draw.number, draw.stratum) for draw in draws}):
        at = [place for place, draw in enumerate(draws) if draw[:2] == (number, stratum)]
        whole = [place for place, draw in enumerate(draws) if draw.number == number]
        one = rounds[number]
        size = _divide(one.unseen, sizes[:, whole].sum(axis=1))[:, None] * sizes[:, at]
        left = np.maximum(_divide(np.ones_like(size), n[:, at]) - _divide(np.ones_like(size), size), 0)
        factor = float(((one.share[:, None] * size / turns) ** 2 * left).sum())
        freedom = int(np.maximum(n[:, at] - 1, 0).sum())
        parts.append((factor, float(squares[:, at].sum()), freedom))
    freedom_of_all = sum(freedom for *_, freedom in parts)
    if freedom_of_all < LEAST_FREEDOM:
        return None
    together = sum(spread for _, spread, _ in parts) / freedom_of_all
    found = [
        (factor * (spread / freedom if freedom else together), freedom or freedom_of_all)
        for factor, spread, freedom in parts
    ]
    variance = sum(one for one, _ in found)
    if variance <= 0:
        return None
    of_squares = sum(one**2 / freedom for one, freedom in found)
    return DrawnError(variance**0.5, max(variance**2 / of_squares, 1.0))


def _weigh_rounds(totals: Floats, draws: Draws) -> list[_WeighedDraw]:
    """Return what was annotated without a draw, then each draw."""
    cells = _get_cells(totals, draws)
    propensities = _get_propensities(draws)
    turns = totals[..., 0]
    drawn = cells.sum(axis=-2)
    alone = [totals[..., place] - drawn[..., own] for place, own in ((3, 0), (4, 1), (5, 2))]
    before = [np.zeros_like(turns) for _ in range(3)]
    found: list[tuple[Floats, Floats, Floats, Floats]] = []
    for number in _number_rounds(draws):
        if number is None:
            sums, weighed, squares = alone, alone, alone[0]
        else:
            at = [place for place, draw in enumerate(draws) if draw.number == number]
            weights = 1 / propensities[at]
            own = cells[..., at, :]
            sums = [own[..., place].sum(axis=-1) for place in range(3)]
            weighed = [(own[..., place] * weights).sum(axis=-1) for place in range(3)]
            squares = (own[..., 0] * weights**2).sum(axis=-1)
        unseen = np.maximum(turns - before[0], 0)
        y, f = ((before[place] + unseen * _divide(weighed[place], weighed[0])) / turns for place in (1, 2))
        worth = _divide(weighed[0] ** 2, squares)
        left = np.maximum(_divide(np.ones_like(worth), worth) - _divide(np.ones_like(worth), unseen), 1e-9)
        precision = np.where(sums[0] > 1e-9, 1 / ((np.maximum(unseen, 1e-3) / turns) ** 2 * left), 0.0)
        found.append((precision, unseen, y, f))
        before = [one + more for one, more in zip(before, sums, strict=True)]
    all_of_it = sum((one[0] for one in found), start=np.zeros(()))
    return [_WeighedDraw(_divide(precision, all_of_it), *others) for precision, *others in found]


def _number_rounds(draws: Draws) -> list[int | None]:
    """Return None, for what was annotated without a draw, and the numbers of the draws."""
    return [None, *sorted({draw.number for draw in draws})]


def _get_cells(totals: Floats, draws: Draws) -> Floats:
    """Return the sums of the cells, shape (..., chatbots, draws, `CELL`)."""
    drawn = totals[..., totals.shape[-1] - CELL * len(draws) :]
    return drawn.reshape(*totals.shape[:-1], len(draws), CELL)


def _get_propensities(draws: Draws) -> Floats:
    return np.array([draw.propensity for draw in draws])


def _divide(above: Floats, below: Floats) -> Floats:
    """Divide; 0 where there is nothing to divide by."""
    found: Floats = np.divide(
        above, below, out=np.zeros(np.broadcast(above, below).shape), where=below > 1e-9
    )
    return found
