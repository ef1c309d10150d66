"""What tokens cost: the prices of an experiment file, and the money for some calls."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from pydantic import Field

from hallulab.scenarios.transcript import Call, Frozen

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
    found = [_compute_one(call, prices) for call in calls]
    known = [money for money in found if money is not None]
    return math.fsum(known) if len(known) == len(found) else None


def _compute_one(call: Call, prices: Prices) -> float | None:
    if call.prompt_tokens is None or call.completion_tokens is None:
        return 0.0 if call.error is not None else None
    price = prices.get(call.model)
    if price is None:
        return None
    cached = min(call.cached_tokens or 0, call.prompt_tokens)
    for_cached = price.input if price.cached is None else price.cached
    read = (call.prompt_tokens - cached) * price.input + cached * for_cached
    return (read + call.completion_tokens * price.output) / MILLION
