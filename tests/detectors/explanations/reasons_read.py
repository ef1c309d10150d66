"""Check what a reason says against the texts, without the code that words it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hallulab.scenarios.text.items import find_items
from hallulab.scenarios.text.words import TOKEN, read_word

_QUOTED = re.compile(r'"([^"]+)"')
_NO_PASSAGE = re.compile(r'No passage has the words? ((?:"[^"]+"(?:, | or )?)+)')
_NEITHER = re.compile(r'Neither the evidence nor the user has the words? ((?:"[^"]+"(?:, | or )?)+)')
_ABSENT = re.compile(r'((?:"[^"]+"(?:, | and )?)+(?:\d+ others )?)(?: is| are|is|are) not in the evidence')
_ALL_WORDS = re.compile(r'The evidence has all words of "([^"]+)"')
_CITED = re.compile(
    r"(?:on the same matter it has|On this the evidence has|It says:|nearest evidence is:"
    r'|nearest sentence is:|in another connection:|The evidence has "[^"]+" in:|left out here:'
    r'|the evidence says|it has|That passage is about) "([^"]+)"'
)


def find_untrue(reason: str, texts: Sequence[str], user_text: str = "") -> list[str]:
    """Return what a reason names that the texts refute: words or items that stand in one, false quotations.

    Args:
        reason: of a rule; of anything else nothing is found.
        texts: those of all passages of the turn.
        user_text: the user's words.
    """
    return [
        *(word for listed in _NO_PASSAGE.findall(reason) for word in _find_words(listed, texts)),
        *(word for listed in _NEITHER.findall(reason) for word in _find_words(listed, [*texts, user_text])),
        *(word for told in _ALL_WORDS.findall(reason) for word in _find_lacking(told, texts)),
        *(item for listed in _ABSENT.findall(reason) for item in _find_items(listed, texts)),
        *(quote for quote in _CITED.findall(reason) if not any(_stands(quote, text) for text in texts)),
    ]


def find_written(words: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Return the words that stand in a text as written, case aside."""
    return [word for word in words if any(_stands_whole(word, text) for text in texts)]


def _find_words(listed: str, texts: Sequence[str]) -> list[str]:
    """Return the words that stand in a text, as written or with the same stem."""
    stems = {read_word(match[0]).stem for text in texts for match in TOKEN.finditer(text)}
    words = _QUOTED.findall(listed)
    return [*find_written(words, texts), *(word for word in words if read_word(word).stem in stems)]


def _find_lacking(told: str, texts: Sequence[str]) -> Iterator[str]:
    """Yield the words, numbers aside, that stand in no text, as written or with the same stem."""
    stems = {read_word(match[0]).stem for text in texts for match in TOKEN.finditer(text)}
    for word in TOKEN.findall(told):
        stem = read_word(word).stem
        if not (stem in stems or stem[0].isdigit() or find_written([word], texts)):
            yield word


def _find_items(listed: str, texts: Sequence[str]) -> Iterator[str]:
    keys = {item.key for text in texts for item in find_items(text)}
    for text in _QUOTED.findall(listed):
        named = {item.key for item in find_items(text) if item.kind != "name"}
        if named & keys or any(_stands_whole(text, known) for known in texts):
            yield text


def _stands_whole(words: str, text: str) -> bool:
    plain = " ".join(words.split()).lower()
    pattern = rf"(?<!\w){re.escape(plain)}(?!\w)"
    read = " ".join(text.lower().split())
    return plain in read and re.search(pattern, read) is not None


def _stands(quote: str, text: str) -> bool:
    return quote in " ".join(text.split())
