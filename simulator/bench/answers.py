"""Short answers: whether two are the same, and which kinds of wrong ones can be planted."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal

from hallulab.scenarios.text.spans import split_words
from hallulab.scenarios.text.words import MOST_DIGITS

_SMALL_WORDS = frozenset({"a", "an", "the", "of", "and", "for"})
_UNITS = split_words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TENS = split_words("twenty thirty forty fifty sixty seventy eighty ninety")
_FIRST = split_words(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth"
)
_SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9}
_CARDINALS = {word: number for number, word in enumerate(_UNITS)} | {
    word: 10 * number for number, word in enumerate(_TENS, start=2)
}
_ORDINALS = {word: number for number, word in enumerate(_FIRST, start=1)} | {
    f"{word[:-1]}ieth": 10 * number for number, word in enumerate(_TENS, start=2)
}

NUMBER_WORDS = frozenset(_CARDINALS) | frozenset(_SCALES)

# What Unicode does not take for a letter with an accent.
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"})
_THOUSANDS = re.compile(r"(?<=\d)[,'’\u00a0\u2009\u202f](?=\d{3}(?!\d))")
_DOTTED = re.compile(r"\b[^\W\d_](?:\.\s?[^\W\d_]\b)+\.?")
_DOTS = re.compile(r"[.\s]")
_CAPITALS = re.compile(r"\b[A-Z]{2,}\b")
_TOKEN = re.compile(r"\d+\.\d+|\w+")
_FIGURES = re.compile(rf"(\d{{1,{MOST_DIGITS}}}(?:\.\d{{1,{MOST_DIGITS}}})?)(st|nd|rd|th)?")


def extract_content(text: str) -> list[str]:
    """Return the words that matter, in lower case and one spelling: `Zürich` is `zurich`, `two` is `2`.

    Numbers are in figures without separators (`1,200`, `twelve hundred` and `1.2 thousand` are `1200`,
    `third` and `3rd` are `3th`). `U. S.` is `us`. Articles, `of`, `and` and `for` are left out.
    """
    decomposed = unicodedata.normalize("NFKD", _THOUSANDS.sub("", text))
    plain = _remove_dots("".join(letter for letter in decomposed if not unicodedata.combining(letter)))
    tokens = _TOKEN.findall(plain.casefold().translate(_LETTERS))
    return list(_convert_to_figures([token for token in tokens if token not in _SMALL_WORDS]))


def is_same_answer(first: str, second: str) -> bool:
    """Return whether two answers differ in additions, omissions or initials at most."""
    one, other = extract_content(first), extract_content(second)
    one, other = (
        _shorten_to_initials(one, _find_initials(second)),
        _shorten_to_initials(other, _find_initials(first)),
    )
    return set(one) <= set(other) or set(other) <= set(one)


def _remove_dots(text: str) -> str:
    return _DOTTED.sub(lambda found: _DOTS.sub("", found[0]), text)


def _find_initials(text: str) -> set[str]:
    """Return words such as `NYC` and `U.S.`, in lower case without their dots."""
    return {found.lower() for found in _CAPITALS.findall(_remove_dots(text))}


def _shorten_to_initials(said: Sequence[str], initials: set[str]) -> list[str]:
    """Return the words, with the initials in place of each run of words that they stand for."""
    left = list(said)
    for short in sorted(initials):
        for start in range(len(left) - len(short) + 1):
            run = left[start : start + len(short)]
            if "".join(word[0] for word in run) == short:
                left[start : start + len(short)] = [short]
                break
    return left


class _NumberParser:
    """A number, while its words are read."""

    def __init__(self) -> None:
        self._total = Decimal(0)
        self._part = Decimal(0)
        self._room = 0
        self._begun = False

    def __bool__(self) -> bool:
        return self._begun

    def begin(self, value: Decimal) -> None:
        """Begin with a number in figures."""
        self._part, self._begun = value, True

    def add(self, value: int) -> bool:
        """Add a word's value if it continues the number (`one` after `twenty`, not after `two`)."""
        if self._begun and not 0 < value < self._room:
            return False
        self._part += value
        self._room = 10 if value >= 20 else 0  # `twenty` takes a digit, `twelve` takes nothing
        self._begun = True
        return True

    def scale(self, factor: int) -> None:
        """Multiply the number by a hundred, a thousand and so on."""
        part = self._part or Decimal(0 if self._total else 1)
        if (self._total + self._part).adjusted() >= MOST_DIGITS:
            return  # `million` a thousand times over is no count
        if factor == _SCALES["hundred"]:
            self._part = part * factor
        else:
            self._total = (self._total + part * factor) if part else self._total * factor
            self._part = Decimal(0)
        self._room, self._begun = factor, True

    def __str__(self) -> str:
        digits = f"{self._total + self._part:f}"
        return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _convert_to_figures(tokens: Sequence[str]) -> Iterator[str]:
    """Yield the tokens, with the words of each number joined into one token."""
    number = _NumberParser()
    for token in tokens:
        figures = _FIGURES.fullmatch(token)
        value = _CARDINALS.get(token, _ORDINALS.get(token))
        if token in _SCALES:
            number.scale(_SCALES[token])
        elif value is not None:
            if not number.add(value):
                yield str(number)
                number = _NumberParser()
                number.add(value)
        else:
            if number:
                yield str(number)
                number = _NumberParser()
            if figures is None:
                yield token
            else:
                number.begin(Decimal(figures[1]))
        if number and (token in _ORDINALS or (figures and figures[2])):
            yield f"{number}th"
            number = _NumberParser()
    if number:
        yield str(number)
