"""A test between chatbots that may look after each batch: the decision by confidence sequences.

Every two chatbots have a `MeanSequence` for the mean difference of their HPT. Each is given
`LEVEL / (chatbots - 1)`, and not `LEVEL` over all pairs: of the chatbots that are truly best take one, t.
Only its own `chatbots - 1` differences can make a decision wrong.

- Another chatbot is named best, or others are called alike without t, only after t was dropped; and t is
  dropped only where a chatbot is found better than it, so where their difference is excluded wrongly.
- t itself is named best beside another one that is as good only if their difference 0 is excluded wrongly.
- A chatbot that is as good as t is dropped only if it is found worse than all leaders, and t is one.
- Chatbots are wrongly called alike, with t among them, only if one of them is at least the margin worse than
  t, and this difference is excluded wrongly.

A chatbot that answers less than another one (`answering.py`) is never found better than it, however clear the
difference: that takes findings away and adds none, so the above holds.

By Bonferroni over t's pairs one of these happens, ever, with a probability of at most `LEVEL`. It is the idea
of multiple comparisons with the best (Hsu 1996, Multiple Comparisons, chapter 4), with an unknown best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.text.wording import format_count, join_names
from hallulab.scenarios.transcript import Count, Frozen, Number
from hallulab.simulator.statistics.answering import AnsweredShares, answers_less
from hallulab.simulator.statistics.intervals import Ratio
from hallulab.simulator.statistics.mean_sequence import CEILING, MeanSequence

LEVEL = 0.05
"""Probability of a wrong decision, at any time, at most."""
MARGIN = 0.2
"""Differences below this many hallucinations a turn do not matter, unless another margin is given."""

Booleans = NDArray[np.bool_]


class PairState(Frozen):
    """The state of two chatbots' difference."""

    a: str
    b: str
    persons: Count
    """Persons of whom both have an HPT; only these enter."""
    difference: Number | None
    """Mean HPT of `a` minus `b` over them; None without any."""
    low: Number
    """The true difference is above this."""
    high: Number
    """The true difference is below this."""
    a_answered: Number | None = None
    """Share of the replies of `a` that answers, of those that answer or decline, over the persons that both
    talked to; None: there are none."""
    b_answered: Number | None = None
    """The same of `b`."""
    better: str | None
    """The one that hallucinates less, if that is clear and it answers as much."""
    alike: bool
    """True if the difference is clearly below the margin."""


class BatchStep(Frozen):
    """The state after a batch."""

    persons: Count
    pairs: tuple[PairState, ...]
    worse: tuple[str, ...]
    """Chatbots that are clearly worse."""


class SequenceState(Frozen):
    """The decision after some conversations."""

    kind: Literal["best", "alike", "open"]
    """`best`: one is better than all others. `alike`: all differences of those left are below the margin."""
    best: str | None
    """The best one, if `kind` is so."""
    alike: tuple[str, ...]
    """Those that are alike, if `kind` is so."""
    worse: tuple[str, ...]
    """Chatbots that are clearly worse than all that may still be best."""
    persons: Count
    asked: dict[str, Count]
    """Chatbot → persons that it has talked to."""
    scored: dict[str, Count]
    """Chatbot → persons of whom it has an HPT; the others enter nowhere."""
    clipped: dict[str, Count]
    """Chatbot → persons whose HPT was above `ceiling` and counts as that much."""
    pairs: tuple[PairState, ...]
    """Every two chatbots, as they stand."""
    steps: tuple[BatchStep, ...]
    """The same after each batch."""
    margin: Number
    """Differences below this do not matter."""
    level: Number
    """Probability of a wrong decision, at most."""
    ceiling: Number
    """Largest HPT of a person that counts."""


def find_worse(better: Booleans) -> Booleans:
    """Find the chatbots that are clearly worse than all leaders; nobody is found better than a leader.

    Args:
        better: `better[..., a, b]`: whether a is found better than b. Earlier axes are other experiments.

    Returns:
        `worse[..., b]`. Nobody is worse if there is no leader, so if findings contradict each other.

    >>> find_worse(np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]], bool)).tolist()
    [False, False, True]
    >>> find_worse(np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]], bool)).tolist()
    [False, False, False]
    """
    leads: Booleans = np.logical_not(better.any(axis=-2))
    below_all = (better | ~leads[..., :, np.newaxis]).all(axis=-2)
    return np.asarray(below_all & ~leads & leads.any(axis=-1, keepdims=True))


def compute_pair_level(chatbots: int) -> float:
    """Return the level of each pair's sequence."""
    return LEVEL / (chatbots - 1)


class Decider:
    """Takes persons in the order they were drawn, and says what is decided.

    Args:
        chatbots: Names, at least two.
        margin: Differences below this many hallucinations a turn do not matter.
        keep_all: True if clearly worse chatbots continue.

    Raises:
        UsageError: there is nothing to decide between, or the margin is none.

    >>> decider = Decider(["editor", "vanilla"])
    >>> for number in range(40):
    ...     decider.add(f"person {number}", {"editor": 0.25, "vanilla": 0.75})
    >>> decision = decider.end_batch()
    >>> decision.kind, decision.best, decider.next_chatbots
    ('best', 'editor', ('editor',))
    """

    def __init__(self, chatbots: Sequence[str], margin: float = MARGIN, keep_all: bool = False) -> None:
        if len(set(chatbots)) != len(chatbots) or len(chatbots) < 2:
            raise UsageError(
                "only two chatbots or more with different names can be decided between; "
                f"these are given: {join_names(chatbots) or 'none'}"
            )
        if not 0 < margin < CEILING:
            raise UsageError(f"the margin {margin} is not between 0 and {CEILING:g} hallucinations a turn")
        self._chatbots = tuple(chatbots)
        self._margin = margin
        self._keep_all = keep_all
        self._seen: set[str] = set()
        self._asked = dict.fromkeys(chatbots, 0)
        self._scored = dict.fromkeys(chatbots, 0)
        self._clipped = dict.fromkeys(chatbots, 0)
        level = compute_pair_level(len(chatbots))
        self._sequences = {pair: MeanSequence(level) for pair in combinations(self._chatbots, 2)}
        self._steps: list[BatchStep] = []
        self._answered = AnsweredShares()

    def add(
        self,
        person: str,
        rates: Mapping[str, float | None],
        answered: Mapping[str, Ratio] = MappingProxyType({}),
    ) -> None:
        """Take the next person.

        Args:
            person: Identifies the person; nobody counts twice.
            rates: Chatbot → HPT with this person, or None if it could not be scored. A chatbot that was not
                asked is not in it.
            answered: Chatbot → replies that answer over those that answer or decline; empty: not known.

        Raises:
            ValueError: the person was taken already, a chatbot is unknown, or an HPT is below 0.
        """
        if person in self._seen:
            raise ValueError(f"person {person!r} was taken already")
        if unknown := sorted(set(rates) - set(self._chatbots)):
            raise ValueError(f"unknown chatbots: {join_names(unknown)}")
        scored = {name: rate for name, rate in rates.items() if rate is not None}
        if wrong := [name for name, rate in scored.items() if not rate >= 0]:
            raise ValueError(f"HPT of {join_names(wrong)} with {person!r} is no number from 0")
        self._seen.add(person)
        self._answered.add(answered)
        for name in rates:
            self._asked[name] += 1
        for name, rate in scored.items():
            self._scored[name] += 1
            self._clipped[name] += rate > CEILING
        for (a, b), sequence in self._sequences.items():
            if a in scored and b in scored:
                sequence.add(min(scored[a], CEILING) - min(scored[b], CEILING))

    def end_batch(self) -> SequenceState:
        """Keep what is known now as a step, and return the decision with it."""
        now = self.state()
        self._steps.append(BatchStep(persons=now.persons, pairs=now.pairs, worse=now.worse))
        return now.model_copy(update={"steps": tuple(self._steps)})

    @property
    def next_chatbots(self) -> tuple[str, ...]:
        """Chatbots that the next batch asks: without those that are clearly worse, unless all are kept."""
        worse = () if self._keep_all else self.state().worse
        return tuple(name for name in self._chatbots if name not in worse)

    def state(self) -> SequenceState:
        """Return what is decided now, with the steps of the batches before."""
        pairs = tuple(self._describe_pair(a, b) for a, b in self._sequences)
        number = {name: place for place, name in enumerate(self._chatbots)}
        better = np.zeros((len(number), len(number)), dtype=np.bool_)
        for pair in pairs:
            if pair.better is not None:
                loser = pair.b if pair.better == pair.a else pair.a
                better[number[pair.better], number[loser]] = True
        worse = tuple(
            name for name, flag in zip(self._chatbots, find_worse(better).tolist(), strict=True) if flag
        )
        left = tuple(name for name in self._chatbots if name not in worse)
        alike = all(pair.alike for pair in pairs if pair.a in left and pair.b in left)
        kind: Literal["best", "alike", "open"] = "best" if len(left) == 1 else "alike" if alike else "open"
        return SequenceState(
            kind=kind,
            best=left[0] if kind == "best" else None,
            alike=left if kind == "alike" else (),
            worse=worse,
            persons=len(self._seen),
            asked=dict(self._asked),
            scored=dict(self._scored),
            clipped=dict(self._clipped),
            pairs=pairs,
            steps=tuple(self._steps),
            margin=self._margin,
            level=LEVEL,
            ceiling=CEILING,
        )

    def _describe_pair(self, a: str, b: str) -> PairState:
        sequence = self._sequences[a, b]
        shares = self._answered.share(a, b), self._answered.share(b, a)
        fewer = b if sequence.low >= 0 else a if sequence.high <= 0 else None
        is_silent = fewer is not None and answers_less(*(shares if fewer == a else shares[::-1]))
        return PairState(
            a=a,
            b=b,
            persons=sequence.count,
            difference=sequence.mean,
            low=sequence.low,
            high=sequence.high,
            a_answered=shares[0],
            b_answered=shares[1],
            better=None if is_silent else fewer,
            alike=-self._margin <= sequence.low and sequence.high <= self._margin,
        )


SURE = (
    f"at most {LEVEL:.0%} of such runs decide wrongly; HPT of a persona above {CEILING:g} counts "
    f"as {CEILING:g}"
)


def describe_decision(decision: SequenceState) -> str:
    """Say in a sentence what is decided, after how many personas."""
    after = f"after {format_count(decision.persons, 'persona')}"
    if decision.kind == "best":
        return f"{decision.best} hallucinates least: it is better than every other chatbot, {after} ({SURE})."
    if decision.kind == "alike":
        alike = join_names(decision.alike)
        return f"{alike} are alike: they differ by less than {decision.margin:g} a turn, {after} ({SURE})."
    return f"It is still open which chatbot hallucinates least, {after}."
