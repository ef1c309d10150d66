"""The course of a run until it is decided: batch by batch, what is decided, and why the run ends.

The run follows it while it goes on, and the report once more from the journals, so both say the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from hallulab.simulator.decide.decision import Decider, Standing, describe_decision
from hallulab.simulator.decide.talks import Talks
from hallulab.simulator.metrics.spending import sum_known
from hallulab.simulator.records.experiment_fields import BATCH, UntilDecided
from hallulab.simulator.records.experiment_json import Drawn, SavedExperiment

Ending = Literal["decided", "budget", "personas"]
"""Why a run ends: it is decided, the budget is spent, or all personas have talked."""


def split_batches(personas: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the personas of each batch.

    >>> [*split_batches("abcdef")]
    ['abcd', 'ef']
    """
    return (personas[start : start + BATCH] for start in range(0, len(personas), BATCH))


class Course:
    """Follows a run, batch by batch.

    Args:
        until: when it ends.
        chatbots: their names.
        of: the personas that there are.
    """

    def __init__(self, until: UntilDecided, chatbots: Sequence[str], of: int) -> None:
        self._until, self._of = until, of
        self._decider = Decider(chatbots, until.margin, until.keep_all)
        self._tokens: list[int | None] = []
        """Tokens of each batch."""
        self.decision: Standing = self._decider.state()
        self.ending: Ending | None = None
        """Why the run ends; None: it goes on."""

    @property
    def chatbots(self) -> tuple[str, ...]:
        """The chatbots that talk in the next batch."""
        return self._decider.asked_next

    @property
    def tokens(self) -> int | None:
        """Tokens of all calls so far; None: no server reports any."""
        return sum_known(self._tokens)

    def take(self, batch: Sequence[str], talks: Talks, seconds: Sequence[float] = ()) -> None:
        """Add a batch.

        Args:
            batch: its personas.
            talks: what their conversations came to.
            seconds: how long each batch took, as far as that is known.
        """
        chatbots = self.chatbots
        for persona in batch:
            self._decider.add(persona, talks.rates(persona, chatbots))
        self._tokens.append(talks.tokens(batch))
        self.decision = self._decider.end_batch()
        if self.decision.kind != "open":
            self.ending = "decided"
        elif self._is_spent(math.fsum(seconds[: len(self._tokens)])):
            self.ending = "budget"
        elif self.decision.persons == self._of:
            self.ending = "personas"

    def _is_spent(self, seconds: float) -> bool:
        """Return whether the budget is spent."""
        used = {"personas": self.decision.persons, "tokens": self.tokens or 0, "minutes": seconds / 60}
        budget = self._until.budget
        return budget is not None and used[budget.unit] >= budget.amount

    def describe(self) -> str:
        """Say in one sentence what is decided, and why the run ends if it does so undecided."""
        found = describe_decision(self.decision)
        if self.ending == "budget":
            return f"{found[:-1]}: the budget of {self._until.budget} is spent."
        if self.ending == "personas":
            return (
                f"{found[:-1]}: all {self._of} personas of the experiment are spent, and "
                "`hallulab init-scenario --personas` writes more."
            )
        return found


@dataclass(frozen=True)
class Deciding:
    """A run that goes on until it is decided, as experiment.json says."""

    until: UntilDecided
    chatbots: tuple[str, ...]
    detector: str
    """The detector that decides: the first of the experiment."""
    seeds: int
    """Conversations of a persona with a chatbot."""
    drawn: Drawn


def find_deciding(saved: SavedExperiment) -> Deciding | None:
    """Return how a run goes on until it is decided; None: it does not."""
    experiment = saved.experiment
    if experiment.until_decided is None or saved.drawn is None:
        return None
    return Deciding(
        experiment.until_decided,
        tuple(bot.name for bot in experiment.chatbots),
        experiment.detectors[0].name,
        experiment.repeats,
        saved.drawn,
    )


def retrace(deciding: Deciding, talks: Talks) -> Course:
    """Return the course that a run took, up to the last batch that was held and judged as a whole.

    Args:
        deciding: the run.
        talks: what its conversations came to.
    """
    until, drawn = deciding.until, deciding.drawn
    course = Course(until, deciding.chatbots, drawn.of)
    for batch in split_batches(drawn.personas[: until.most("personas")]):
        if not all(talks.are_held(persona, course.chatbots, deciding.seeds) for persona in batch):
            break
        course.take(batch, talks, drawn.seconds)
        if course.ending is not None:
            break
    return course
