"""Prediction-powered inference: correct a detector's numbers by annotations of some turns.

Let T turns be judged by the detector, which says f of each, and n of them be annotated: people say y. With λ,

    θ = mean of y over the n + λ (mean of f over the T - mean of f over the n)

estimates the mean of y over all turns, whatever the detector's mistakes, if the n are as good as drawn at
random (turns or whole conversations). λ = 0 ignores the detector; λ = 1 is its number plus its mean error on
the n. Angelopoulos, Duchi and Zrnic (2023, PPI++: Efficient prediction-powered inference, arXiv 2311.01453,
sections 2 and 6) take the λ with the least variance. In their words, with N = T - n turns that nobody looked
at, λ' = cov(y, f) / ((1 + n / N) var(f)) weighs the mean over these N; as λ' (mean over N - mean over n) =
λ (mean over T - mean over n) for λ' = λ N / T, ours is cov(y, f) / var(f). Covariances are over the n,
variances over all T, both in [0, 1] together, as in the authors' package ppi-python 0.2.3. That package is
not used, since it takes turns for independent. Chatbots under a detector share λ: it is the one with the
least sum of their variances. One chatbot's few annotations would make it noise.

Turns that `hallulab annotate` drew are not equally likely: it draws within cells of a chatbot and a class of
the detector's score, some cells more densely than others. An annotated turn then counts 1 / π turns, where π
is its propensity, the probability with which it was drawn: inverse propensity weights, as in Zrnic and Candès
(2024, Active statistical inference, arXiv 2403.03208). With sums over a draw's annotated turns, and R turns
that nobody had annotated before it,

    mean of y over all turns = (y of those annotated before + R Σ(y / π) / Σ(1 / π)) / turns

is right on average given what was annotated before, whatever made people look there; likewise of f. So each
draw estimates both means, and so does what was annotated without any draw, which is taken for drawn at
random. They are averaged with weights by how many equally likely turns each is worth, (Σ 1/π)² / Σ 1/π²
(Kish 1965, Survey sampling), and θ = mean of y + λ (mean of f over all turns - that estimate of it). Turns
that were drawn but not annotated are taken for missing at random.

λ is the slope of y on f within chatbots, of drawn turns, as if `PRIOR` more turns had the slope 1. Of twenty
labels, the slope that fits them best also fits their noise: θ would lie too low, since counts are skewed, and
its error would look too small. With λ = 1 neither happens, and a detector that says nothing costs most.

Weights are numbers of the design, and the sums over personas are whole numbers by cell; so the sums of
several processes merge without rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hallulab.scenarios.datasets.annotations import Draw
from hallulab.simulator.statistics.intervals import Floats, compute_jackknife_error

SUMS = 7
"""Sums of a cluster: turns, f, f²; annotated turns, their y, f, y f."""
CELL = 6
"""Sums of a chatbot's turns that were drawn alike: turns, y, f, y f, y², f²."""
PRIOR = 5.0
"""Turns with a slope of 1 that λ starts from."""
LEAST_FREEDOM = 3
"""Degrees of freedom below which there is no interval: quantiles of Student's t are above 3.2 there."""

Draws = tuple[Draw, ...]
"""Which turns were drawn alike, in the order of their sums."""


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

    The estimate for all turns weighs each chatbot's θ by its turns, because the annotated shares may differ.
    The error is that of θ with its λ: both are made anew without each cluster in turn. So turns of a cluster
    need not be independent, nor conversations of several chatbots and seeds with the same persona.

    Args:
        sums: those of each cluster of each chatbot, shape (clusters, chatbots, `SUMS`), 0 where a chatbot
            lacks a cluster. Each chatbot has an annotated turn. After these stand the sums of drawn turns, if
            there are any .
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
    """Compute λ from totals of shape (..., chatbots, `SUMS`)."""
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


@dataclass(frozen=True)
class DrawnError:
    """How far the number of all turns of the run may be from an estimate by some of them."""

    error: float
    """Standard error, by the draws alone."""
    freedom: float
    """Degrees of freedom (Satterthwaite)."""


class _WeighedDraw(NamedTuple):
    """The estimate of one draw, each of shape (..., chatbots)."""

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
