"""Decisions: the probability of each option as the first token of an answer, or the printed word."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from unicodedata import normalize

from hallulab.agents.models.answers import Completion, UnlikelyOptions, UnparseableAnswer
from hallulab.agents.models.log_probabilities import LEAST_MASS, share_out

DECISION: Mapping[str, Any] = {"temperature": 0.0, "max_tokens": 1, "logprobs": True, "top_logprobs": 20}
"""Arguments of a request for a decision by log-probabilities, without the seed."""

WORD_TOKENS = 8
"""Limit of a printed decision in tokens: a word, and what a model puts before it."""

SAMPLE_TEMPERATURE = 1.0
"""Temperature of printed decisions that are asked several times: at 1 their shares estimate probabilities."""

_ALTERNATIVE = re.compile(r"\W{0,3}(?:/|\||\bor\b)\W{0,3}(\w{1,40})", re.IGNORECASE)
_LABEL = re.compile(r"\W*(?:(?:final\W{1,3})?(?:answer|verdict|decision)|boxed)\W{1,9}(?=\w)", re.IGNORECASE)
"""Words that models put before a decision: `Answer: Yes`, `\\boxed{Yes}`, `{"answer": "Yes"}`."""
_FIRST_WORD = re.compile(r"\W*(\w+)(\s*)(\w?)")


def share_of_tokens(step: str, completion: Completion, options: Sequence[str]) -> dict[str, float]:
    """Return the probability of each option as the first token, normalised over the options.

    Raises:
        UnlikelyOptions: the options have less than `LEAST_MASS` of the probability.
        UnparseableAnswer: there are no log-probabilities.
    """
    if completion.first_token is None:
        raise UnparseableAnswer(f"{step}: the endpoint gives no log-probabilities of tokens.")
    found = share_out(completion.first_token, options)
    if found.shares is None or round(found.mass, 6) < LEAST_MASS:
        listed = ", ".join(options)
        told = (
            f"{found.mass:.0%} of the probability is on"
            if found.shares
            else "the model answered with none of"
        )
        raise UnlikelyOptions(f"{step}: {told} {listed}.", found.shares)
    return dict(found.shares)


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

    An option of one letter must stand alone: in "A lawyer should …" the first word is an article. A model
    that repeats the question ("Yes or No") has not answered. A label before it is skipped ("Answer: Yes").
    """
    text = normalize("NFKC", text)
    found = _FIRST_WORD.match(_LABEL.sub("", text, count=1) if _LABEL.match(text) else text)
    if found is None:
        return None
    other = _ALTERNATIVE.match(found.string[found.end(1) :])  # `Yes/No`, `Yes or No`
    if other is not None and any(option.lower() == other[1].lower() for option in options):
        return None
    word, gap, following = found.groups()
    if len(word) == 1 and following and "\n" not in gap:
        return None
    return next((option for option in options if option.lower() == word.lower()), None)
