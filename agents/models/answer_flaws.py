"""Signs that no model can have given an answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hallulab.agents.models.answers import read_limit
from hallulab.agents.models.log_probabilities import gives_token_numbers, read_first_token

LONGEST_TOKEN = 256
"""Characters of a token at most. Tokenizers have tokens of up to 128 spaces."""

_MOST_PROBABLE = 1.5
"""Probabilities of tokens that exclude each other add up to so much at most: servers round, and rescale."""


def find_answer_flaw(body: Mapping[str, Any], found: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a chat completion that no model can have given; None if nothing is.

    Args:
        body: the request.
        found: the answer.
    """
    choice, limit = found["choices"][0], read_limit(body)
    text = choice["message"].get("content")
    if limit is not None and isinstance(text, str) and len(text) > LONGEST_TOKEN * limit:
        return f"{len(text):,} characters where {limit:,} tokens were asked for"
    logprobs = choice.get("logprobs")
    if not body.get("logprobs") or logprobs is None or gives_token_numbers(logprobs):
        return None
    first = read_first_token(logprobs)
    if first is None:
        return "no log-probabilities of tokens, but something else"
    total = math.fsum(math.exp(likely.logprob) for likely in first)
    return f"probabilities of a token that add up to {total:.2f}" if total > _MOST_PROBABLE else None
