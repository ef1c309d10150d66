"""Words of a language as they are compared: case, accents' spelling and the spelling of numbers aside."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from hallulab.scenarios.text.numbers import (
    HAN_NUMBER,
    join_groups,
    parse_han_number,
    parse_number,
    write_number,
)
from hallulab.scenarios.text.one_form import unify_text
from hallulab.scenarios.text.scripts import split_by_unicode
from hallulab.scenarios.text.spans import split_words

WITHOUT_WORDS = frozenset({"bo", "km", "lo", "my"})
"""Languages whose words cannot be told apart here: no space parts them, and no rule or light library does."""
_ARABIC_SIGNS = re.compile("[\u0640\u064b-\u0652\u0670]")
"""Signs that lengthen a word on the page, and short vowels, which are mostly left out."""


def list_word_values(text: str, language: str) -> list[str]:
    """Return the words of a text in a form in which equal ones are equal, numbers by their value.

    English words are those of `split_words`, whose numbers end at points and commas.

    >>> list_word_values("Straße 1.250,50", "de"), list_word_values("फीस १२५०.५", "hi")
    (['strasse', '1250.5'], ['फीस', '1250.5'])
    >>> list_word_values("借28天", "zh") == list_word_values("借二十八天", "zh")
    True
    """
    if language == "en":
        return split_words(text)
    plain = join_groups(unify_text(text).text)
    return list(_write_words(plain, language))


def _write_words(text: str, language: str) -> Iterator[str]:
    at = 0
    if language in ("zh", "ja"):
        for match in HAN_NUMBER.finditer(text):
            number = parse_han_number(match[0])
            if number is not None:
                yield from (
                    _write_word(word, language) for word in split_by_unicode(text[at : match.start()])
                )
                yield str(number)
                at = match.end()
    yield from (_write_word(word, language) for word in split_by_unicode(text[at:]))


def _write_word(word: str, language: str) -> str:
    if word[0].isdecimal():
        value = parse_number(word, language)
        return word if value is None else write_number(value)
    return unicodedata.normalize("NFC", _ARABIC_SIGNS.sub("", word.casefold())) or word
