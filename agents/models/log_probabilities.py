"""Log-probabilities of an answer's first token: read them, and add up the spellings of each word.

Servers spell one token in many ways: as its text, as its bytes, as its entry in the tokenizer's vocabulary.
All spellings of a word are one form, and their probabilities add up.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, zip_longest
from typing import Any
from unicodedata import normalize

LEAST_MASS = 0.5
"""Probability of all options together at least. Below it, the model mostly says something else, and what is
left would be a guess."""

_DECORATED_FROM = 0.01
"""Probability from which words in marks (`"Yes`, `**No`, `(A`) count. Small models give traces of them,
and decisions that were recorded before these counted are as they were."""

_ROUNDING = 1e-3
"""Servers exceed a probability of 1 by up to so much."""

_SAME = 1e-6
"""Log-probabilities of one token are written with so little difference."""

_TOKEN_NUMBER = re.compile(r"token_id:\d+")
_OWN_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_WRITTEN_BYTE = re.compile(r"\\x([0-9A-Fa-f]{2})")
_WRITTEN_BYTES = re.compile(r"bytes:(.*)|b'(.*)'|b\"(.*)\"", re.DOTALL)
_MARKS = re.compile(r"[\W_]+")
_END = re.compile(r"(?:\s*<[^<>]{1,40}>)*\s*")
"""Marks of an answer's end, such as `<|im_end|>`."""


@dataclass(frozen=True)
class Likely:
    """A possible token at one place of the answer."""

    text: str
    logprob: float
    """Its log-probability, at most 0 except for rounding."""


@dataclass(frozen=True)
class OptionShares:
    """Probabilities of the options by the first token."""

    mass: float
    """Probability of all options together."""
    shares: Mapping[str, float] | None
    """Each option's part of it; None: there is none."""


def read_first_token(logprobs: Any) -> tuple[Likely, ...] | None:
    """Return the likeliest first tokens with the sampled one; None if they come in no form that we know.

    Some servers (LMDeploy) leave the sampled token out of the likeliest, some tell one of them twice, or none
    for a probability of 0. Numbers of tokens are no texts.
    """
    try:
        sampled = (list_tokens(logprobs) or [None])[0]
        likeliest = [one for one in sampled.get("top_logprobs") or () if _is_told(one)]
        found = list(dict.fromkeys(_read_likely(one) for one in likeliest))
        own = _read_likely(sampled) if _is_told(sampled) or not found else None
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError):
        return None
    if found and own is not None and not _is_among(own, sampled, found, likeliest):
        found.append(own)
    return tuple(found)


def list_tokens(logprobs: Any) -> list[Any] | None:
    """Return the tokens of an answer with their log-probabilities; None if they come in no form that we know.

    Some servers (Together, Fireworks) give them as completions of texts have them: a list of tokens, one of
    their log-probabilities, and for each an object of the likeliest.
    """
    if not isinstance(logprobs, dict):
        return None
    told = logprobs.get("content") or logprobs.get("refusal")
    if not told and isinstance(logprobs.get("tokens"), list):
        columns = [logprobs.get(name) or [] for name in ("tokens", "token_logprobs", "top_logprobs")]
        if not all(isinstance(column, list) for column in columns):
            return None
        return [
            {"token": token, "logprob": logprob, "top_logprobs": _list_likeliest(likeliest)}
            for token, logprob, likeliest in zip_longest(*columns)
            if token is not None
        ]
    return told if isinstance(told, list) else None if told else []


def _list_likeliest(told: Any) -> Any:
    if not isinstance(told, dict):
        return told
    return [{"token": token, "logprob": logprob} for token, logprob in told.items()]


def read_answers_first_token(logprobs: Any, text: str) -> tuple[Likely, ...] | None:
    """Return the likeliest first tokens of an answer, as `read_first_token` does.

    Some servers (SGLang, vLLM with a reasoning parser) give the tokens of thoughts, too, which come first.

    Args:
        text: the answer without thoughts.

    Returns:
        None: they come in no form that we know. Nothing: they are of something else than the answer.
    """
    told, answer = list_tokens(logprobs), text.strip()
    found = read_first_token(logprobs)
    if found is None or not answer or told is None or len(told) == 1:
        return found
    spelled = [_spell_sampled(one) for one in told]
    texts = [max(forms, key=lambda form: form[:1].isspace()) for forms in spelled]
    if any(answer.startswith(form.strip()) for form in spelled[0]):
        whole = "".join(texts).strip()
        if answer.startswith(whole) or _spells(whole, answer):
            return found
    whole = "".join(texts)
    begin = whole.rfind(answer)
    place = bisect_right(list(accumulate(map(len, texts))), begin)
    if begin < 0 or not _spells(whole[begin:], answer) or not answer.startswith(texts[place].strip()):
        return ()
    return read_first_token({"content": told[place:]})


def _spells(told: str, answer: str) -> bool:
    """Return whether tokens spell an answer, and perhaps its end."""
    return told.startswith(answer) and _END.fullmatch(told, len(answer)) is not None


def is_empty(logprobs: Any) -> bool:
    """Return whether an answer has a place for log-probabilities, and none in it."""
    return not logprobs or (isinstance(logprobs, dict) and not any(logprobs.values()))


def _is_told(token: Any) -> bool:
    """Return whether a token comes with a log-probability: -Infinity is no number in JSON."""
    return token is not None and not (isinstance(token, dict) and token.get("logprob") is None)


def _spell_sampled(token: Any) -> list[str]:
    """Return the spellings of a sampled token; "" if it is none."""
    if not isinstance(token, dict):
        return [""]
    octets = token.get("bytes")
    if isinstance(octets, list) and octets:
        with suppress(ValueError, TypeError):
            return [bytes(octets).decode("utf-8", "ignore")]
    return _list_spellings(str(token.get("token", "")))


def gives_token_numbers(logprobs: Any) -> bool:
    """Return whether the first token is given as its number, as vLLM's `return_tokens_as_token_ids` does."""
    first = (list_tokens(logprobs) or [None])[0]
    return isinstance(first, dict) and _is_number(first.get("token"))


def share_out(tokens: Sequence[Likely], options: Sequence[str]) -> OptionShares:
    """Add up the probability of each option over the spellings of its word.

    A token counts for an option if it is the same word without spaces, in lower case and usual width. One in
    quotes, stars or brackets counts, too, if such tokens have a probability of 0.01 together.
    """
    plain, decorated = dict.fromkeys(options, 0.0), dict.fromkeys(options, 0.0)
    by_word = {option.lower(): option for option in options}
    for token in tokens:
        words = [normalize("NFKC", word).strip().lower() for word in _list_spellings(token.text)]
        option = next((by_word[word] for word in words if word in by_word), None)
        if option is not None:
            plain[option] += math.exp(token.logprob)
            continue
        bare = (_strip_marks(word) for word in words)
        option = next((by_word[word] for word in bare if word in by_word), None)
        if option is not None:
            decorated[option] += math.exp(token.logprob)
    if sum(decorated.values()) >= _DECORATED_FROM:
        plain = {option: value + decorated[option] for option, value in plain.items()}
    total = sum(plain.values())
    if total <= 0.0:
        return OptionShares(0.0, None)
    return OptionShares(total, {option: value / total for option, value in plain.items()})


def _read_likely(found: Mapping[str, Any]) -> Likely:
    """Read one token, by its bytes if they are given: its text may be half a character.

    Raises:
        ValueError: its log-probability is not valid, or its number is given in place of its text.
    """
    token, logprob, octets = found["token"], float(found["logprob"]), found.get("bytes")
    if _is_number(token):
        raise ValueError(f"a token's number {token}")
    if not math.exp(logprob) <= 1.0 + _ROUNDING:
        raise ValueError(f"a token has the log-probability {logprob}")
    text = bytes(octets).decode("utf-8", "ignore") if isinstance(octets, list) and octets else str(token)
    return Likely(text, logprob)


def _is_number(token: Any) -> bool:
    return isinstance(token, int) or (
        isinstance(token, str) and _TOKEN_NUMBER.fullmatch(token.strip()) is not None
    )


def _is_among(
    own: Likely, sampled: Mapping[str, Any], found: Sequence[Likely], likeliest: Sequence[Mapping[str, Any]]
) -> bool:
    """Return whether the sampled token is one of the likeliest: the same token, or one spelled otherwise."""
    if any(one["token"] == sampled["token"] for one in likeliest):
        return True
    words = {spelling.strip() for spelling in _list_spellings(own.text)}
    return any(
        abs(one.logprob - own.logprob) <= _SAME
        and any(spelling.strip() in words for spelling in _list_spellings(one.text))
        for one in found
    )


def _list_spellings(text: str) -> list[str]:
    """Return a token's text, and what it spells as an entry of a tokenizer's vocabulary."""
    found = [text]
    written = _WRITTEN_BYTES.fullmatch(text)
    if written is not None:
        inner = next(group for group in written.groups() if group is not None)
        found.append(_decode(_WRITTEN_BYTE.sub(lambda one: chr(int(one[1], 16)), inner)))
    if _OWN_BYTE.search(text) is not None:
        found.append(_decode(_OWN_BYTE.sub(lambda one: chr(int(one[1], 16)), text)))
    found.append(text.replace("\N{LOWER ONE EIGHTH BLOCK}", " "))
    by_letter = _map_letters_to_bytes()
    if all(letter in by_letter for letter in text):
        found.append(bytes(by_letter[letter] for letter in text).decode("utf-8", "ignore"))
    return found


def _decode(text: str) -> str:
    """Return a text whose letters below 256 are bytes."""
    try:
        return text.encode("latin-1").decode("utf-8", "ignore")
    except UnicodeEncodeError:
        return text


def _strip_marks(word: str) -> str:
    """Return a word without the punctuation around it."""
    begun = _MARKS.match(word)
    word = word[begun.end() :] if begun else word
    end = len(word)
    # Not by a pattern: one that ends in `$` is tried from each letter, which takes quadratic time.
    while end and (word[end - 1] == "_" or not word[end - 1].isalnum()):
        end -= 1
    return word[:end]


@lru_cache(maxsize=1)
def _map_letters_to_bytes() -> Mapping[str, int]:
    """Return the letters with which byte-level tokenizers (GPT-2) write bytes: `Ġ` is a space."""
    printable = [
        *range(ord("!"), ord("~") + 1),
        *range(ord("¡"), ord("¬") + 1),
        *range(ord("®"), ord("ÿ") + 1),
    ]
    others = [byte for byte in range(256) if byte not in printable]
    return {
        **{chr(byte): byte for byte in printable},
        **{chr(256 + place): byte for place, byte in enumerate(others)},
    }
