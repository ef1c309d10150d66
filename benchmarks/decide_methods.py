"""Methods that could decide between two chatbots at any time: how often each is wrong, and its persons.

`python -m benchmarks.decide_methods` makes 2,000 experiments of each setting with two chatbots of
`benchmarks.decide`, and looks after every person from the 10th. A cell has the mean number of persons at the
first decision, and in brackets the percentage of experiments with a wrong one after any person.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import t as student

from benchmarks.command import build_parser, format_table, get_exit_code
from benchmarks.decide import EXPERIMENTS, HORIZON, SETTINGS, Booleans, Integers, Setting
from hallulab.simulator.statistics.sequence import CEILING, LEVEL, MARGIN, STAKES, Floats, compute_bar

LEAST = 10
"""Persons before which no method is asked."""
BURN_IN = 20
"""Persons before which the asymptotic method is not asked."""
PLANNED = 40
"""Persons that the asymptotic method is tuned to."""
_SEED = 36
_CLOSE = 1e-9

Exclude = Callable[[Floats, Floats, float], Booleans]
"""Whether "at most this mean" is excluded after each person, by differences as they are and clipped."""


def exclude_ordinarily(raw: Floats, clipped: Floats, mean: float) -> Booleans:
    """Student's interval of 95%, which is meant to be looked at once."""
    count, average, deviation = _accumulate(raw)
    others = np.maximum(count - 1, 1)
    half = student.ppf(1 - LEVEL / 2, others) * deviation / np.sqrt(others)
    return np.asarray(average - half > mean)


def exclude_by_central_limit(raw: Floats, clipped: Floats, mean: float) -> Booleans:
    """Asymptotic confidence sequence: Waudby-Smith et al. 2024, Annals of Statistics, Theorem 2.2."""
    count, average, deviation = _accumulate(raw)
    bar = -2 * np.log(LEVEL)
    scale = count * (bar + np.log(bar + 1)) / PLANNED
    half = deviation * np.sqrt(2 * (scale + 1) / (count * scale) * np.log(np.sqrt(scale + 1) / LEVEL))
    return np.asarray((average - half > mean) & (count >= BURN_IN))


def exclude_by_symmetry(raw: Floats, clipped: Floats, mean: float) -> Booleans:
    """Self-normalised, for differences symmetric about their mean: de la Peña 1999, Gaussian mixture."""
    shifted = raw - mean
    total, squares = shifted.cumsum(axis=1), (shifted**2).cumsum(axis=1)
    spread = 0.25
    logarithm = total**2 / (2 * (squares + 1 / spread)) - np.log1p(squares * spread) / 2
    return np.asarray((logarithm >= -np.log(LEVEL)) & (total > 0))


def exclude_by_variance(raw: Floats, clipped: Floats, mean: float) -> Booleans:
    """Predictable plug-in empirical Bernstein: Waudby-Smith and Ramdas 2024, Theorem 2."""
    value = (clipped + CEILING) / (2 * CEILING)
    stake, guess = _plug_in(value)
    stake = np.minimum(stake, 0.5)
    spent = (4 * (value - guess) ** 2 * (-np.log1p(-stake) - stake) / 4).cumsum(axis=1)
    weights = stake.cumsum(axis=1)
    low = ((stake * value).cumsum(axis=1) - spent - compute_bar(LEVEL)) / weights
    return np.asarray(low > (mean + CEILING) / (2 * CEILING))


def exclude_by_plug_in(raw: Floats, clipped: Floats, mean: float) -> Booleans:
    """Hedged capital with a predictable plug-in stake: Waudby-Smith and Ramdas 2024, Theorem 3."""
    value = (clipped + CEILING) / (2 * CEILING)
    tried = (mean + CEILING) / (2 * CEILING)
    stake = np.minimum(_plug_in(value)[0], 0.75 / tried)
    return np.asarray(np.log1p(stake * (value - tried)).cumsum(axis=1) >= compute_bar(LEVEL))


def exclude_by_grid(raw: Floats, clipped: Floats, mean: float) -> Booleans:
    """Hedged capital, split over a grid of stakes: what `hallulab.simulator.decide` does."""
    odds = (clipped - mean) / (CEILING + mean)
    capital = np.full(odds.shape, -np.inf)
    for stake in STAKES:
        capital = np.logaddexp(capital, np.log1p(stake * odds).cumsum(axis=1))
    return np.asarray(capital - np.log(len(STAKES)) >= compute_bar(LEVEL))


METHODS: dict[str, Exclude] = {
    "ordinary interval": exclude_ordinarily,
    "asymptotic": exclude_by_central_limit,
    "symmetric": exclude_by_symmetry,
    "empirical Bernstein": exclude_by_variance,
    "hedged, plug-in": exclude_by_plug_in,
    "hedged, grid": exclude_by_grid,
}
"""What is compared, by heading."""


def measure(setting: Setting, experiments: int = EXPERIMENTS, persons: int = HORIZON) -> tuple[str, ...]:
    """Measure every method on the same experiments, and return a line of the table."""
    drawn = setting.draw(experiments, persons, np.random.default_rng(_SEED))
    raw = drawn[..., 0] - drawn[..., 1]
    held = np.minimum(drawn, CEILING)
    clipped = held[..., 0] - held[..., 1]
    truth = setting.rates[0] - setting.rates[1]
    cells = [_count(exclude, raw, clipped, truth) for exclude in METHODS.values()]
    return (setting.name, *cells)


def _count(exclude: Exclude, raw: Floats, clipped: Floats, truth: float) -> str:
    above, near_above = (_find_first(exclude(raw, clipped, mean)) for mean in (0.0, -MARGIN))
    below, near_below = (_find_first(exclude(-raw, -clipped, mean)) for mean in (0.0, -MARGIN))
    better = np.minimum(above, below)
    alike = np.maximum(near_above, near_below)
    persons = raw.shape[1]
    wrong = (above <= persons) & (truth <= _CLOSE) | (below <= persons) & (truth >= -_CLOSE)
    if abs(truth) >= MARGIN - _CLOSE:
        wrong |= alike < better
    first = np.minimum(np.minimum(better, alike), persons)
    return f"{first.mean():.0f} ({100 * wrong.mean():.1f})"


def _find_first(excluded: Booleans) -> Integers:
    """Return after how many persons a mean is first excluded; one more than there are, if never."""
    asked = excluded.copy()
    asked[:, : LEAST - 1] = False
    first = np.where(asked.any(axis=1), asked.argmax(axis=1), excluded.shape[1])
    return np.asarray(first + 1, dtype=np.int64)


def _accumulate(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Return count, mean and standard deviation after each person."""
    count = np.arange(1, values.shape[1] + 1, dtype=np.float64)
    average = values.cumsum(axis=1) / count
    variance = (values**2).cumsum(axis=1) / count - average**2
    return count, average, np.sqrt(np.maximum(variance, 0))


def _plug_in(value: Floats) -> tuple[Floats, Floats]:
    """Return each person's stake, and the mean that is expected of the person, by the persons before."""
    count = np.arange(1, value.shape[1] + 1)
    average = (0.5 + value.cumsum(axis=1)) / (count + 1)
    variance = (0.25 + ((value - average) ** 2).cumsum(axis=1)) / (count + 1)
    earlier_mean = np.concatenate([np.full((len(value), 1), 0.5), average[:, :-1]], axis=1)
    earlier = np.concatenate([np.full((len(value), 1), 0.25), variance[:, :-1]], axis=1)
    stake = np.sqrt(2 * compute_bar(LEVEL) / (earlier * count * np.log1p(count)))
    return np.asarray(stake), np.asarray(earlier_mean)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit code, as of `hallulab`."""
    build_parser("decide_methods", __doc__).parse_args(arguments)
    return get_exit_code(lambda: print(show_table(), end=""))


def show_table() -> str:
    """Return the table of all settings with two chatbots."""
    lines = [measure(setting) for setting in SETTINGS if len(setting.rates) == 2]
    return format_table(("chatbots", *METHODS), lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
