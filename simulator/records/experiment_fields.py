"""Parts of an experiment: when a run that goes on until it is decided ends, and what tokens cost."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_serializer, field_validator

from hallulab.scenarios.transcript import Call, Frozen

DEFAULT_MARGIN = 0.2
"""Hallucinations a turn below which chatbots count as alike, where no number is given."""

CEILING = 3.0
"""A margin is below this, the largest HPT of a persona that counts (`simulator/statistics/sequence.py`)."""

BATCH = 4
"""Personas of a batch. After each, the chatbots are compared."""

Unit = Literal["personas", "tokens", "minutes"]

_BUDGET = re.compile(r"\s*([1-9][0-9]{0,11})\s*(personas|tokens|minutes)\s*")


class Budget(Frozen):
    """The most that a run may use; it ends behind the batch that reaches it.

    >>> read_budget("40 personas")
    Budget(amount=40, unit='personas')
    """

    amount: int = Field(ge=1)
    """The number."""
    unit: Unit
    """Its unit. Personas are those that every chatbot left talked to; tokens are those of all calls, as
    the report adds them up; minutes are those of the batches, over all calls of the command."""

    def __str__(self) -> str:
        return f"{self.amount:,} {self.unit}"


def read_budget(text: str) -> Budget:
    """Read a budget as people write it.

    Raises:
        ValueError: it is none.
    """
    found = _BUDGET.fullmatch(text)
    if found is None:
        raise ValueError(
            "must be a whole number with its unit, such as 40personas, 200000tokens or 30minutes, not "
            f"{text!r}"
        )
    return Budget.model_validate({"amount": int(found[1]), "unit": found[2]})


class UntilDecided(Frozen):
    """When a run ends that goes on until its chatbots are significantly different, or alike."""

    margin: float = Field(default=DEFAULT_MARGIN, gt=0, lt=CEILING)
    """Hallucinations a turn; chatbots that differ by less are alike."""
    budget: Budget | None = None
    """The most that it may use; None: all personas that the experiment selects."""
    keep_all: bool = False
    """True if clearly worse chatbots continue."""

    @field_validator("budget", mode="before")
    @classmethod
    def _read_text(cls, value: Any) -> Any:
        return value if value is None or isinstance(value, Budget) else read_budget(str(value))

    @field_serializer("budget")
    def _write_text(self, budget: Budget | None) -> str | None:
        return None if budget is None else f"{budget.amount} {budget.unit}"

    def most(self, unit: Unit) -> int | None:
        """Return the budget if it is one of these; None if it is not."""
        return self.budget.amount if self.budget is not None and self.budget.unit == unit else None


# `true` is all defaults, `false` is nothing.
MaybeUntilDecided = Annotated[
    UntilDecided | None,
    BeforeValidator(lambda value: ({} if value else None) if isinstance(value, bool) else value),
]


def join_deciding(values: Mapping[str, Any], newer: Mapping[str, Any]) -> dict[str, Any]:
    """Return `until_decided` of an experiment's fields with newer ones over it, if both have it."""
    older, given = values.get("until_decided"), newer.get("until_decided")
    if isinstance(older, Mapping) and isinstance(given, Mapping):
        return {"until_decided": {**older, **given}}
    return {}


def require_decidable(chatbots: int, detectors: int, count: int | None) -> None:
    """Check that an experiment can go on until it is decided.

    Raises:
        ValueError: there is one chatbot or no detector, or users are drawn otherwise.
    """
    if chatbots < 2:
        raise ValueError("`until_decided` tells chatbots apart; give at least two")
    if not detectors:
        raise ValueError("`until_decided` needs a detector, the first of `detectors`; give one")
    if count is not None:
        raise ValueError(
            "`until_decided` and `count` exclude each other; give `until_decided` a budget of personas"
        )


MILLION = 1_000_000


class Price(Frozen):
    """Prices of a model, in any currency, for a million tokens."""

    input: float = Field(ge=0)
    """Tokens read."""
    output: float = Field(ge=0)
    """Tokens written."""
    cached: float | None = Field(default=None, ge=0)
    """Tokens read out of the provider's cache; None: as others that are read."""


Prices = Mapping[str, Price]
"""Served name of a model → its price."""


def compute_money(calls: Iterable[Call], prices: Prices) -> float | None:
    """Return what calls cost; None if it is not known of one of them.

    It is not known of an answered call whose model has no price, or whose tokens the server did not report.
    Failed calls without reported tokens are left out, as of sums of tokens.
    """
    found = []
    for call in calls:
        price, lacks = prices.get(call.model), call.prompt_tokens is None or call.completion_tokens is None
        if lacks and call.error is not None:
            continue
        if price is None or call.prompt_tokens is None or call.completion_tokens is None:
            return None
        cached = min(call.cached_tokens or 0, call.prompt_tokens)
        for_cached = price.input if price.cached is None else price.cached
        read = (call.prompt_tokens - cached) * price.input + cached * for_cached
        found.append((read + call.completion_tokens * price.output) / MILLION)
    return math.fsum(found)
