"""Measure what `--until-decided` decides, and after how many persons, where the truth is known.

`python -m benchmarks.decide` makes 2,000 experiments of each setting. A person has 2 to 8 turns with
each chatbot, and hallucinations by Poisson at the chatbot's rate, times a factor that the person has with all
chatbots, times one with this chatbot: so counts are overdispersed and chatbots correlated.

A decision is wrong if it names a best chatbot that another one equals, calls chatbots alike that differ by
the margin or more, or drops one that is truly best. It is looked for after every person, also after the
experiment would have ended. Beside the persons stand fixed designs, 5% two-sided, Bonferroni over pairs: one
planned for the margin with 80% power, as by somebody who does not know the difference, and two planned by
somebody who knows how far the best is from the next, with 80% and with 99%. In brackets: conversations that
were held, without those of dropped chatbots, as a share of the design's.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from benchmarks.command import build_parser, format_table
from hallulab.simulator.records.experiment_fields import BATCH
from hallulab.simulator.statistics.mean_sequence import (
    CEILING,
    STAKES,
    Floats,
    compute_bar,
    compute_capital,
    compute_growth,
)
from hallulab.simulator.statistics.sequence import LEVEL, MARGIN, compute_pair_level, find_worse

EXPERIMENTS = 2_000
"""Experiments of a setting."""
HORIZON = 600
"""Persons after which an experiment ends."""
POWERS = (0.8, 0.8, 0.99)
"""Of the fixed designs: for the margin, and two for the difference that is known."""
TURNS = (2, 8)
"""Fewest and most turns of a conversation."""
_SEED = 36
_CLOSE = 1e-9
"""True differences closer than this are equal."""

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class Setting:
    """Chatbots whose true rates are known."""

    name: str
    rates: tuple[float, ...]
    """Hallucinations a turn, one a chatbot."""
    common: float = 5.0
    """Shape of the gamma factor that a person has with all chatbots; its variance is one over it."""
    own: float = 10.0
    """Shape of the factor that a person has with one chatbot."""
    share: float = 1.0
    """Share of persons with whom there are hallucinations at all."""

    def draw(self, experiments: int, persons: int, source: np.random.Generator) -> Floats:
        """Draw HPT by experiment, person and chatbot."""
        shape = (experiments, persons, len(self.rates))
        factor = source.gamma(self.common, 1 / self.common, (*shape[:2], 1))
        factor = factor * (source.random((*shape[:2], 1)) < self.share) / self.share
        factor = factor * source.gamma(self.own, 1 / self.own, shape)
        turns = source.integers(TURNS[0], TURNS[1] + 1, shape)
        return np.asarray(source.poisson(turns * np.array(self.rates) * factor) / turns)


SETTINGS = (
    Setting("two equal", (0.6, 0.6)),
    Setting("two equal, rare", (0.1, 0.1)),
    Setting("two, 0.1 apart", (0.5, 0.6)),
    Setting("two, at the margin: 0.2 apart", (0.5, 0.7)),
    Setting("two, 0.3 apart", (0.4, 0.7)),
    Setting("two, 0.4 against 0.8", (0.4, 0.8)),
    Setting("two, 0.5 apart", (0.4, 0.9)),
    Setting("two, 0.5 apart, other rates", (0.8, 1.3)),
    Setting("two equal, overdispersed", (0.6, 0.6), 2.0, 3.0),
    Setting("two, at the margin, overdispersed", (0.5, 0.7), 2.0, 3.0),
    Setting("two, 0.5 apart, overdispersed", (0.4, 0.9), 2.0, 3.0),
    Setting("two, at the margin, a fifth of persons has all", (0.1, 0.3), share=0.2),
    Setting("five equal", (0.6,) * 5),
    Setting("five, one better by 0.5", (0.3, 0.8, 0.8, 0.8, 0.8)),
    Setting("five, two alike", (0.4, 0.5, 0.8, 1.0, 1.0)),
    Setting("five, steps of 0.2", (0.3, 0.5, 0.7, 0.9, 1.1)),
)


@dataclass(frozen=True)
class Followed:
    """What became of each experiment."""

    right: Booleans
    """Whether it ended with a right decision."""
    wrong: Booleans
    """Whether it ended with a wrong one."""
    ever_wrong: Booleans
    """Whether there was a wrong one after any person."""
    persons: Integers
    """Persons when it ended."""
    conversations: Integers
    """Conversations until then, without those of chatbots that were dropped."""


def follow(rates: Floats, truth: Floats, margin: float = MARGIN) -> Followed:
    """Follow experiments person by person, as `hallulab.simulator.statistics.sequence.Decider` does.

    Args:
        rates: HPT by experiment, person and chatbot.
        truth: True mean HPT of each chatbot.
        margin: Differences below this do not matter.
    """
    experiments, persons, chatbots = rates.shape
    first, second = (np.array(side) for side in zip(*combinations(range(chatbots), 2), strict=True))
    bar = compute_bar(compute_pair_level(chatbots))
    clipped = np.minimum(rates, CEILING)
    logs = np.zeros((experiments, len(first), 2, 2, len(STAKES)))
    passed = np.zeros(logs.shape[:-1], dtype=np.bool_)
    state = _decide(passed, first, second, truth, margin)
    ended = np.full(experiments, persons)
    right, wrong, ever = (np.zeros(experiments, dtype=np.bool_) for _ in range(3))
    conversations = np.zeros(experiments, dtype=np.int64)
    going = np.ones(experiments, dtype=np.bool_)
    asked = np.full(experiments, chatbots)
    for number in range(1, persons + 1):
        differences = clipped[:, number - 1, first] - clipped[:, number - 1, second]
        both = np.stack([differences, -differences], axis=-1)[..., np.newaxis]
        logs += compute_growth(both, np.array([0.0, -margin]))
        found = passed | (compute_capital(logs) >= bar)
        if (found != passed).any():
            passed = found
            state = _decide(passed, first, second, truth, margin)
            ever |= state.wrong
        conversations[going] += asked[going]
        if number % BATCH == 0:
            done = going & state.decided
            ended[done] = number
            right[done], wrong[done] = ~state.wrong[done], state.wrong[done]
            going &= ~done
            asked = state.left
    return Followed(right, wrong, ever, ended, conversations)


@dataclass(frozen=True)
class _State:
    decided: Booleans
    wrong: Booleans
    left: Integers


def _decide(passed: Booleans, first: Integers, second: Integers, truth: Floats, margin: float) -> _State:
    """Decide each experiment, by which means of each pair are excluded: [.., above or below, 0 or margin]."""
    chatbots = len(truth)
    better = np.zeros((len(passed), chatbots, chatbots), dtype=np.bool_)
    better[:, second, first] = passed[:, :, 0, 0]
    better[:, first, second] = passed[:, :, 1, 0] & ~passed[:, :, 0, 0]
    worse = find_worse(better)
    left = ~worse
    pairs_left = left[:, first] & left[:, second]
    alike = (passed[..., 1].all(axis=-1) | ~pairs_left).all(axis=-1)
    least = truth.min() + _CLOSE
    far = np.abs(truth[first] - truth[second]) >= margin - _CLOSE
    best = left.sum(axis=-1) == 1
    dropped_best = (worse & (truth <= least)).any(axis=-1)
    wrong = dropped_best | (~best & alike & (pairs_left & far).any(axis=-1))
    return _State(best | alike, wrong, left.sum(axis=-1))


def plan_persons(deviation: float, difference: float, pairs: int, power: float) -> float:
    """Plan a fixed number of persons that finds a difference, two-sided, `LEVEL` over all pairs."""
    quantiles = norm.ppf(1 - LEVEL / (2 * pairs)) + norm.ppf(power)
    return float((quantiles * deviation / difference) ** 2)


_COLUMNS = (
    "chatbots",
    "HPT",
    "right, %",
    "wrong, %",
    "wrong ever, %",
    "persons (10, 50, 90%)",
    "planned for the margin",
    "planned knowing, 80%",
    "planned knowing, 99%",
)


def measure(setting: Setting, experiments: int = EXPERIMENTS, persons: int = HORIZON) -> tuple[str, ...]:
    """Measure a setting, and return its line of the table."""
    drawn = setting.draw(experiments, persons, np.random.default_rng(_SEED))
    truth = np.array(setting.rates)
    result = follow(drawn, truth)
    order = np.argsort(truth, kind="stable")
    pairs = len(truth) * (len(truth) - 1) // 2
    deviation = max(float((drawn[..., order[0]] - drawn[..., other]).std()) for other in order[1:])
    gap = float(truth[order[1]] - truth[order[0]])
    spent = float(result.conversations.mean()) / len(truth)
    designs = [
        plan_persons(deviation, difference, pairs, power) if difference > _CLOSE else None
        for difference, power in zip((MARGIN, gap, gap), POWERS, strict=True)
    ]
    low, middle, high = np.quantile(result.persons, [0.1, 0.5, 0.9])
    return (
        setting.name,
        ", ".join(f"{rate:.2f}" for rate in setting.rates),
        *(f"{100 * flags.mean():.1f}" for flags in (result.right, result.wrong, result.ever_wrong)),
        f"{result.persons.mean():.0f} ({low:.0f}, {middle:.0f}, {high:.0f})",
        *("" if fixed is None else f"{fixed:.0f} ({spent / fixed:.2f})" for fixed in designs),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table of all settings; return the exit code."""
    build_parser("decide", __doc__).parse_args(arguments)
    print(format_table(_COLUMNS, [measure(setting) for setting in SETTINGS]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
