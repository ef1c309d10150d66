"""How like people's the messages of simulated users are: measures, distances from people's, a noise floor.

A user is a persona and seed, who says the same first message to every chatbot; so first messages count once a
user. Intervals are over personas, each with the conversations of all its seeds, which are alike: of shares as
of all shares, of other numbers and of distances by the bootstrap. A distance of two
samples of one source is not 0 either. So personas are permuted: as many as there are on each side are drawn
from both together, without regard to whose they are, and the noise floor is the distance that 95% of these
draws do not exceed. Who takes another one's place has as many messages there as that one: of more, some are
drawn. Else simulated users of two turns would look less noisy beside people of twelve than they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.metrics.diversity import MOST
from hallulab.simulator.metrics.message_sample import (
    IN_SAMPLES,
    LEAST,
    MEASURES,
    DistanceName,
    Measure,
    MessageSample,
)
from hallulab.simulator.metrics.messages import CountedMessages
from hallulab.simulator.statistics.bootstrap import (
    compute_percentile_interval,
    draw_cluster_weights,
    is_mostly_defined,
)
from hallulab.simulator.statistics.differences import ALPHA
from hallulab.simulator.statistics.intervals import (
    Floats,
    Integers,
    Interval,
    Rounded,
    compute_share_interval,
    explain_no_interval,
)

RESAMPLES = 1_000
"""Bootstrap samples of medians, means and distances."""
PERMUTATIONS = 999
"""Draws of the noise floor; a p-value is at least 1 over one more."""
_SEED = 20_261
_TIE = 0.05
"""Distances are equal up to this share: users who are exchanged have other numbers of messages."""
_CELLS = 1_000_000
"""Largest number of weights in memory at once."""


class Side(Frozen):
    """A measure of the run's messages, or of people's."""

    messages: int
    users: int
    """Users who wrote them; of people's, conversations."""
    value: Rounded | None
    """The number; None: see `reason`."""
    ci95: Interval
    quartiles: Interval
    """Of a length, the lower and the upper quartile; not an interval."""
    reason: str | None
    """Why there is no number, or no interval."""


class PeopleCompared(Frozen):
    """A measure of the messages of a reference, and their distance from the run's."""

    people: Side
    distance: Rounded | None
    """None where either side has no number."""
    distance_ci95: Interval
    """Bootstrap over the users of both."""
    floor: Rounded | None
    """The distance that 95% of permutations do not exceed; None without a distance, and for numbers of
    `IN_SAMPLES`."""
    p_value: Rounded | None
    """Share of permutations with a distance as large, with one more for the data as they are."""


class RealismRow(Frozen):
    """A measure of the run's messages and of each reference's."""

    measure: str
    label: str
    by: DistanceName
    """Which distance: Wasserstein-1 in the measure's unit; Jensen–Shannon distance to base 2, in [0, 1]; or
    the absolute difference."""
    run: Side
    """The simulated users' messages."""
    comparisons: tuple[PeopleCompared, ...]
    """With each reference, in the order of `Realism.references`."""


class Reference(Frozen):
    """People whose messages a run's are compared with, and how many measures show no difference."""

    name: str
    """Short name, unique in a result."""
    source: str
    """Where the messages are from."""
    tested: int
    """Measures with a noise floor."""
    within: int
    """Measures of them whose p-value is not below 0.05."""
    above: tuple[str, ...]
    """Fields of the others; first the distance that is most times its floor."""


class Bars(Frozen):
    """How the numbers of messages are distributed."""

    label: str
    bins: tuple[str, ...]
    run: tuple[Rounded, ...] | None
    """Share of the simulated users' messages in each; None without messages."""
    people: tuple[tuple[Rounded, ...] | None, ...]
    """Share of the messages of each reference."""


class Realism(Frozen):
    """How like people's the messages of a run are."""

    run: str
    """The run's folder, as it was given."""
    references: tuple[Reference, ...]
    sample: int | None
    """First messages of a sample, in which diversity is measured; None: too few."""
    rows: tuple[RealismRow, ...]
    bars: tuple[Bars, ...]
    warnings: tuple[str, ...] = ()
    """Which conversations of the run failed, where it is much: their messages are few."""
    failed: str | None = None
    """Why `hallulab realism` exits with 1: no conversation succeeded; None: it does not."""


def compute_sample_distances(
    measure: Measure, sides: tuple[MessageSample, MessageSample], weights: tuple[Floats, Floats], size: int
) -> Floats:
    """Compute the distance of two samples under weights of their users, shape (resamples,)."""
    from scipy.spatial.distance import jensenshannon

    if measure.distance == "Wasserstein-1":
        support = np.unique(np.concatenate([side.numbers(measure.field)[0] for side in sides]))
        first, second = (
            side.accumulate(measure.field, support, held) for side, held in zip(sides, weights, strict=True)
        )
        # The area between the two distribution functions; both are 1 from the last number on.
        areas: Floats = np.abs(first - second) @ np.append(np.diff(support), 0)
        return areas
    one, other = (side.values(measure, held, size) for side, held in zip(sides, weights, strict=True))
    if measure.distance == "difference":
        return np.abs(one - other)
    # Of two equal shares rounding may leave the root of a number below 0.
    with np.errstate(invalid="ignore"):
        found = jensenshannon(np.stack([one, 1 - one]), np.stack([other, 1 - other]), base=2, axis=0)
    return np.where(np.isclose(one, other), 0.0, found)


def compare_messages(
    run: MessageSample, references: Sequence[MessageSample]
) -> tuple[int | None, tuple[RealismRow, ...]]:
    """Measure a run's messages and those of each reference.

    Returns:
        First messages of a sample of diversity (None: too few), and the rows.
    """
    enough = [len(side.texts) for side in (run, *references) if len(side.texts) >= LEAST]
    size = min(enough, default=LEAST)
    rows = tuple(
        RealismRow(
            measure=measure.field,
            label=measure.label,
            by=measure.distance,
            run=_build_side(measure, run, size),
            comparisons=tuple(_compare_sides(measure, (run, people), size) for people in references),
        )
        for measure in MEASURES
    )
    return min(size, MOST) if enough else None, rows


def summarize_reference(name: str, source: str, rows: Mapping[str, PeopleCompared]) -> Reference:
    """Count the measures, by field, whose distance from a reference is within the noise floor."""
    tested, above = 0, dict[str, float]()
    for field, row in rows.items():
        if row.distance is None or row.floor is None or row.p_value is None:
            continue
        tested += 1
        # Not by the floor, which a distance may exceed by `_TIE` alone.
        if row.p_value < ALPHA:
            above[field] = row.distance / row.floor if row.floor else np.inf
    return Reference(
        name=name,
        source=source,
        tested=tested,
        within=tested - len(above),
        above=tuple(sorted(above, key=lambda field: -above[field])),
    )


def _compare_sides(measure: Measure, sides: tuple[MessageSample, MessageSample], size: int) -> PeopleCompared:
    run, people = sides
    distance, ci95, floor, p_value = None, None, None, None
    if all(side.reason(measure) is None for side in sides):
        first, second = _draw_weights(run), _draw_weights(people)
        # Equal numbers of personas get equal weights; the other order makes them independent.
        drawn = compute_sample_distances(
            measure, sides, (first, np.concatenate([second[:1], second[:0:-1]])), size
        )
        distance = None if np.isnan(drawn[0]) else float(drawn[0])
        enough = all(explain_no_interval(side.personas(measure)) is None for side in sides)
        ci95 = compute_percentile_interval(drawn[1:]) if enough and distance is not None else None
        if distance is not None and measure.field not in IN_SAMPLES:
            floor, p_value = _compute_noise_floor(measure, sides, size, distance)
    return PeopleCompared(
        people=_build_side(measure, people, size),
        distance=distance,
        distance_ci95=ci95,
        floor=floor,
        p_value=p_value,
    )


def _build_side(measure: Measure, sample: MessageSample, size: int) -> Side:
    messages, users = sample.measured(measure)
    value, ci95, quartiles = None, None, None
    reason = sample.reason(measure)
    if reason is None:
        is_share, personas = measure.statistic == "share", sample.personas(measure)
        weights = _leave_out_personas(sample) if is_share else _draw_weights(sample)
        whole, *others = sample.values(measure, weights, size)
        value = None if np.isnan(whole) else float(whole)
        reason = "too few words" if value is None else explain_no_interval(personas, "person")
        if value is not None and reason is None:
            drawn = np.array(others)
            ci95 = (
                compute_share_interval(value, drawn, personas)
                if is_share
                else compute_percentile_interval(drawn)
            )
            if ci95 is None and is_mostly_defined(drawn):
                reason = "the same whoever is left out" if is_share else "the same in every resample"
        quartiles = sample.quartiles(measure.field) if measure.statistic == "median" else None
    return Side(messages=messages, users=users, value=value, ci95=ci95, quartiles=quartiles, reason=reason)


def _draw_weights(sample: MessageSample) -> Floats:
    """Return each user once, and then how often resamples of personas take them: (1 + `RESAMPLES`, users)."""
    drawn = draw_cluster_weights(len(np.unique(sample.persona)), RESAMPLES).astype(np.float64)
    return np.concatenate([np.ones((1, sample.users)), drawn[:, sample.persona]])


def _leave_out_personas(sample: MessageSample) -> Floats:
    """Return each user once, and then all but those of each persona in turn: (1 + personas, users)."""
    personas = np.unique(sample.persona)
    return np.concatenate([np.ones((1, sample.users)), sample.persona != personas[:, None]])


def _compute_noise_floor(
    measure: Measure, sides: tuple[MessageSample, MessageSample], size: int, distance: float
) -> tuple[float | None, float | None]:
    """Return the distance that 95% of permutations do not exceed, and the p-value of a distance."""
    pooled, own = _pool_messages(measure, sides)
    draws = _permute_personas(pooled.persona, own)
    found = np.concatenate(
        [compute_sample_distances(measure, (pooled, pooled), weights, size) for weights in draws]
    )
    if not is_mostly_defined(found):
        return None, None
    defined = found[~np.isnan(found)]
    hits = int(np.count_nonzero(defined >= distance * (1 - _TIE)))
    return float(np.quantile(defined, 0.95, method="higher")), (hits + 1) / (len(defined) + 1)


def _pool_messages(measure: Measure, sides: tuple[MessageSample, MessageSample]) -> tuple[MessageSample, int]:
    """Return the messages of both sides as users of one message each, and how many personas are the run's.

    The run's personas come first; those without a message that the measure is about are left out.
    """
    joined, vectors = list[CountedMessages](), dict[str, Floats]()
    for number, side in enumerate(sides):
        values, places = side.numbers(measure.field)
        for at, (value, place) in enumerate(zip(values.tolist(), places.tolist(), strict=True)):
            user = str(number), f"{side.persona[place]:09}", at
            counts = {"questions": (0.0,), measure.field: (value,)}
            joined.append(CountedMessages(user, counts, side.held[place][0].first_text))
        if side.vectors is not None:
            vectors |= zip(side.texts, side.vectors, strict=True)
    return MessageSample(joined, vectors or None), sides[0].personas(measure)


def _permute_personas(persona: Integers, own: int) -> Iterator[tuple[Floats, Floats]]:
    """Draw `PERMUTATIONS` times which persona takes whose place, and yield weights of messages on both sides.

    A place has as many messages as its own persona. Who takes it gives so many, drawn at random, or all, if
    there are fewer, each of which weighs more then. Shape of each: (draws, messages).

    Args:
        persona: that of each message, from 0.
        own: personas of the first side, which are the first ones.
    """
    generator = np.random.default_rng(_SEED)
    sizes = np.bincount(persona)
    shuffled = generator.permutation(len(persona))
    order = shuffled[np.argsort(persona[shuffled], kind="stable")]
    ranks = np.empty_like(persona)
    ranks[order] = np.arange(len(persona)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = max(1, _CELLS // len(persona))
    for done in range(0, PERMUTATIONS, rows):
        everybody = np.tile(np.arange(len(sizes)), (min(rows, PERMUTATIONS - done), 1))
        places = generator.permuted(everybody, axis=1)
        given = np.minimum(sizes[places], sizes)
        first = generator.integers(0, sizes, size=places.shape)
        drawn = (ranks + first[:, persona]) % sizes[persona] < given[:, persona]
        weights = drawn * (sizes[places] / given)[:, persona]
        of_run = weights * (places < own)[:, persona]
        yield of_run, weights - of_run


_BINS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("first_words", "Words of a first message", (5, 10, 15, 20, 30, 50)),
    ("follow_up_words", "Words of a follow-up", (5, 10, 15, 20, 30, 50)),
    ("turns", "Turns of a conversation", (1, 2, 3, 4, 6, 8, 12)),
    ("questions", "Questions of a message", (0, 1, 2)),
)
"""Field, title and the highest numbers of the bins."""


def compute_distributions(run: MessageSample, references: Sequence[MessageSample]) -> tuple[Bars, ...]:
    """Return how lengths, turns and questions are distributed."""
    return tuple(
        Bars(
            label=title,
            bins=_label_bins(ends),
            run=_compute_shares(run, field, ends),
            people=tuple(_compute_shares(people, field, ends) for people in references),
        )
        for field, title, ends in _BINS
    )


def _label_bins(ends: Sequence[int]) -> tuple[str, ...]:
    ranges = [f"{low + 1}–{high}" if low + 1 < high else f"{high}" for low, high in pairwise((-1, *ends))]
    return (*ranges, f"{ends[-1] + 1}+")


def _compute_shares(sample: MessageSample, field: str, ends: Sequence[int]) -> tuple[float, ...] | None:
    numbers, _ = sample.numbers(field)
    if not len(numbers):
        return None
    counts = np.bincount(np.searchsorted(ends, numbers), minlength=len(ends) + 1)
    return tuple(float(share) for share in counts / len(numbers))
