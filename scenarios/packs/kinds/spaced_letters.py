"""Words whose letters are parted by spaces, as in headlines: `O P E N I N G   H O U R S`."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

_SPACE = "[ \u00a0\u2000-\u200a\u202f]"
_WORDS = re.compile(
    rf"(?<!\S)[^\W\d_](?:{_SPACE}[^\W\d_]){{3,}}(?:{_SPACE}{{2,9}}[^\W\d_](?:{_SPACE}[^\W\d_])+)*(?!\S)"
)
_GAP = re.compile(rf"{_SPACE}{{2,}}")
_VOWELS = frozenset("aeiouyаеиоуыэюяєіαεηιουω")


def join_spaced_letters(text: str) -> str:
    """Return a text in which such words are written as others; two spaces or more part them.

    At least four letters are such a word, and vowels are 30 to 75 % of them: the days of a
    week (`M T W T F S S`) are none, nor is a part of the alphabet.

    >>> join_spaced_letters("O P E N I N G   H O U R S"), join_spaced_letters("M T W T F S S")
    ('OPENING HOURS', 'M T W T F S S')
    """
    return _WORDS.sub(_join, text)


def _join(found: re.Match[str]) -> str:
    letters = [letter for letter in unicodedata.normalize("NFD", found[0].lower()) if letter.isalpha()]
    vowels = sum(letter in _VOWELS for letter in letters)
    alphabet = all(ord(after) - ord(before) == 1 for before, after in pairwise(letters))
    if alphabet or not 0.3 * len(letters) <= vowels <= 0.75 * len(letters):
        return found[0]
    return " ".join("".join(word.split()) for word in _GAP.split(found[0]))
