"""Decisions between options, read from the probabilities of a first token or from printed words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from hallulab.agents.models.answers import Completion
from hallulab.agents.models.errors import UnparseableAnswer

DECISION: Mapping[str, Any] = {"temperature": 0.0, "max_tokens": 1, "logprobs": True, "top_logprobs": 20}
"""Arguments of a request for a decision by log-probabilities, without the seed."""

WORD_TOKENS = 8
"""Limit of a printed decision in tokens: a word, and what a model puts before it."""

SAMPLE_TEMPERATURE = 1.0
"""Temperature of printed decisions that are asked several times: at 1 their shares estimate probabilities."""

_FIRST_WORD = re.compile(r"\W*(\w+)(\s*)(\w?)")


def share_of_tokens(step: str, completion: Completion, options: Sequence[str]) -> dict[str, float]:
    """Return the probability of each option as the first token, normalised over the options.

    Raises:
        UnparseableAnswer: there are no log-probabilities, or no option is among the tokens.
    """
    if completion.first_token is None:
        raise UnparseableAnswer(f"{step}: the endpoint gives no log-probabilities of tokens.")
    mass = dict.fromkeys(options, 0.0)
    by_word = {option.lower(): option for option in options}
    for token in completion.first_token:
        word = token.text.strip().lower()
        if word in by_word:
            mass[by_word[word]] += math.exp(token.logprob)
    total = sum(mass.values())
    if total <= 0.0:
        raise UnparseableAnswer(f"{step}: the model answered with none of {', '.join(options)}.")
    return {option: value / total for option, value in mass.items()}


def share_of_words(step: str, printed: Sequence[str], options: Sequence[str]) -> dict[str, float]:
    """Return each option's share of the answers that print an option.

    Raises:
        UnparseableAnswer: no answer prints one.
    """
    said = [option for text in printed if (option := printed_option(text, options)) is not None]
    if not said:
        raise UnparseableAnswer(
            f"{step}: the model printed {printed[0][:40]!r}, none of {', '.join(options)}."
        )
    return {option: said.count(option) / len(said) for option in options}


def printed_option(text: str, options: Sequence[str]) -> str | None:
    """Return the option that is the first word of a text; None if the first word is no option.

    An option of one letter must stand alone: in "A lawyer should …" the first word is an article.
    """
    found = _FIRST_WORD.match(text)
    if found is None:
        return None
    word, gap, following = found.groups()
    if len(word) == 1 and following and "\n" not in gap:
        return None
    return next((option for option in options if option.lower() == word.lower()), None)
