"""Scripts: where words and sentences begin and end in those that do not write them as English does.

Words are those of Unicode's rules (UAX 29, by the library `regex`), which count a vowel sign with its letter.
Chinese and Japanese put no spaces between words; the rules cut them into single characters, and katakana into
runs. Thai is cut into words by Google's BudouX, whose model has 33 kB. For Lao, Burmese, Khmer and Tibetan
there is no light segmenter: their words cannot be told apart here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby
from typing import Any

UNSPACED = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Ranges, for a class of a pattern, of scripts without spaces between words: Thai, Lao, Tibetan, Burmese,
Khmer, Japanese, Chinese."""
_BEYOND_LATIN = re.compile("[\u0300-\u1fff\u2c00-\U000fffff]")
"""Letters and marks after Latin's, without the punctuation and symbols that English texts have."""
_UNSPACED = re.compile(f"[{UNSPACED}]")
_THAI = re.compile("([\u0e01-\u0e3a\u0e40-\u0e4e]+)")
_OTHER_WORDS = rf"[\p{{M}}{UNSPACED}]"
STOPS = (
    "\u0589\u061d-\u061f\u06d4\u0700-\u0702\u0964\u0965\u104a\u104b\u1362\u1367\u1368\u17d4\u17d5\u3002"
    "\ufe52\ufe56\ufe57\uff01\uff0e\uff1f\uff61"
)
"""Ranges, for a class of a pattern, of marks outside ASCII with Unicode's property Sentence_Terminal, of
scripts in use today: `।`, `؟`, `۔`, `。`."""
QUESTION_MARKS = re.compile("[?\u037e\u055e\u061f\u1367\ufe56\uff1f]")
"""The question marks of all scripts in use today: `?`, `؟`, `？`."""
STOP_WITHOUT_SPACE = re.compile(
    rf"(?:[{STOPS}](?<!\d\uff0e)[{STOPS}.!?…]*"
    rf"|[.!?](?<=[{UNSPACED}].)(?=[\"'”’)\]」』】》〉]*[{UNSPACED}])|[!?](?<=[{UNSPACED}].)[!?]*)"
    r"[\"'”’)\]」』】》〉]*"
)
"""Where a sentence ends although no white space may follow. A mark of ASCII ends one between two letters of a
script without spaces, too."""


def write_mark_ranges(codes: Iterable[int]) -> str:
    """Return the combining marks among code points, as ranges for a class of a pattern.

    >>> write_mark_ranges(range(0x41, 0x340))
    '\u0300-\u033f'
    """
    runs = []
    for is_mark, run in groupby(codes, lambda code: unicodedata.category(chr(code)).startswith("M")):
        if is_mark:
            first, *others = run
            runs.append(f"{chr(first)}-{chr(others[-1] if others else first)}")
    return "".join(runs)


def has_other_words(text: str) -> bool:
    """Return whether a text has words that a run of letters and digits (`\\w+`) does not give.

    >>> has_other_words("naïve café"), has_other_words("पुस्तक"), has_other_words("图书")
    (False, True, True)
    """
    if text.isascii() or not _BEYOND_LATIN.search(text):
        return False
    import regex

    return regex.search(_OTHER_WORDS, text) is not None


def split_runs(text: str) -> Iterator[str]:
    """Yield runs of letters, digits and underscores with their vowel signs, cut where no spaces part words.

    >>> list(split_runs("पुस्तक 20, 图书"))
    ['पुस्तक', '20', '图', '书']
    """
    import regex

    for run in regex.findall(r"[\w\p{M}\u200c\u200d]+", text):
        if _UNSPACED.search(run):
            yield from split_by_unicode(run)
        else:
            yield run


def split_by_unicode(text: str) -> Iterator[str]:
    """Yield the words of a text by UAX 29, and Thai words by BudouX: `1.250,50` is one, spaces are none.

    >>> list(split_by_unicode("Gebühr: 1.250,50 €"))
    ['Gebühr', '1.250,50']
    """
    import regex

    for number, part in enumerate(_THAI.split(text)):
        if number % 2:
            yield from _build_thai_parser().parse(part)
        else:
            yield from regex.findall(r"(?V1ws)\b\w.*?\b", part)


@cache
def _build_thai_parser() -> Any:
    import budoux

    return budoux.load_default_thai_parser()
