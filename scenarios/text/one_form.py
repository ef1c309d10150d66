"""One form of a text for every reader: letters as one sign each, and nothing that is only for the page.

PDF files and word processors write `ﬁ` for two letters, break words by hyphens, hide soft hyphens in them,
and set an accent behind its letter. A reader sees no difference; a comparison of words does. Each character
keeps its place in the text as it was.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

_HIDDEN = "\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
"""Soft hyphens, spaces of no width, and marks of the direction of writing. The joiners U+200C and U+200D
stay: they change letters in Persian and Indian scripts."""
HIDDEN_SIGNS = frozenset("\u00ad\u200b\u2060\ufeff")
"""Hidden signs that stand inside words, so that a quotation without them is found."""
_FORMS = (
    "\ufb00-\ufb06\ufb13-\ufb17\ufb1d-\ufdfb\ufe70-\ufefc\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff66-\uff9f"
)
"""Ligatures, shapes of Arabic and Hebrew letters, wide letters and digits, narrow katakana."""
_OTHER = re.compile(
    rf"(?<=\w)(?<![\u0e80-\u109f\u1780-\u17ff])[{_HIDDEN}]+(?:(?<=\u00ad)\n[ \t]*)?(?=\w)|[{_FORMS}]+"
    r"|(?<=[０-９])[．，](?=[０-９])"
)
"""Hidden signs inside words; elsewhere they part no words. In Lao, Burmese and Khmer they do."""
_SUSPECT = re.compile(f"[{_HIDDEN}{_FORMS}]")
_BREAK = re.compile(r"(?<=[^\W\d_])[-\u2010](?:\r?\n[ \t]*|[ ])(?=[^\W\d_])")
"""A hyphen at the end of a line, or where the line was joined to the next one by a space."""
_WORD_BEFORE = re.compile(r"[^\W\d_]+\Z")
_WORD_AFTER = re.compile(r"[^\W\d_]+")
_SPELLING = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
HYPHENATED_HALVES = frozenset(
    ["all", "cross", "ex", "full", "half", "high", "long", "low", "non", "part", "self", "short", "well"]
)
"""First halves of words that are written with a hyphen more often than not."""
CONJUNCTIONS = frozenset(["and", "e", "et", "o", "oder", "or", "ou", "to", "und", "y"])
"""Words after `two-` of `two- and three-year`: that hyphen stands for what follows them."""
_LONGEST = 64
"""Letters of a word that are looked at before and after a hyphen."""


@dataclass(frozen=True)
class OneForm:
    """A text in one form."""

    text: str
    places: tuple[tuple[int, int], ...] | None = None
    """For each character the first one, and one past the last, that it stands for in the text as it was;
    None: nothing is different."""

    def find_origin(self, start: int, end: int) -> tuple[int, int]:
        """Return where a stretch stands in the text as it was.

        >>> unify_text("of\ufb01ce").find_origin(2, 4)
        (2, 3)
        """
        if self.places is None or start >= end:
            return start, end
        return self.places[start][0], self.places[min(end, len(self.places)) - 1][1]


def unify_text(text: str, spellings: frozenset[str] = frozenset()) -> OneForm:
    """Return the one form of a text; for almost all texts that is the text itself.

    >>> unify_text("The re\\u00adplace\\u00adment of\ufb01ce, infor-\\nmation").text
    'The replacement office, information'

    Args:
        spellings: known words, see `collect_spellings`. A word that is among them with its hyphen keeps it at
            the end of a line, and so does one with a first half of `HYPHENATED_HALVES` that is not among them
            without. Where a space follows the hyphen, it goes only if the word is among them without.
    """
    return unify_form(OneForm(text), spellings)


def unify_form(made: OneForm, spellings: frozenset[str] = frozenset()) -> OneForm:
    """Return the one form of what is left of a text; its places are in the text as it was."""
    if is_in_one_form(made.text):
        return made
    if _breaks_words(made.text):
        made = _replace(made, list(_find_breaks(made.text, spellings)))
    found = [(*match.span(), _write_plainly(match[0])) for match in _OTHER.finditer(made.text)]
    made = _replace(made, found)
    if not unicodedata.is_normalized("NFC", made.text):
        made = _replace(made, list(_find_decomposed(made.text)))
    return made


def leave_out(text: str, stretches: Iterable[tuple[int, int]]) -> OneForm:
    """Return a text without some stretches of it, in order; the white space around them stays.

    >>> leave_out("I do not know. It is free.", [(0, 14)]).text
    ' It is free.'
    """
    return _replace(OneForm(text), [(start, end, "") for start, end in stretches])


def is_in_one_form(text: str) -> bool:
    """Return whether nothing in a text needs another form; it may say no where nothing does."""
    if _breaks_words(text):
        return False
    return text.isascii() or (not _SUSPECT.search(text) and unicodedata.is_normalized("NFC", text))


def join_broken_words(text: str) -> str:
    """Return a text without the hyphens that only break words; all else stays.

    >>> join_broken_words("The re-\\nplacement of a well-\\nknown book.")
    'The replacement of a well-known book.'
    """
    if not _breaks_words(text):
        return text
    return _replace(OneForm(text), list(_find_breaks(text, collect_spellings([text])))).text


def _breaks_words(text: str) -> bool:
    return ("-" in text or "\u2010" in text) and _BREAK.search(text) is not None


def collect_spellings(texts: Iterable[str]) -> frozenset[str]:
    """Return the words of texts in small letters, also those with hyphens, if any text breaks words at all.

    >>> sorted(collect_spellings(["a well-\\nknown", "Well-known."]))
    ['a', 'known', 'well', 'well-known']
    """
    texts = list(texts)
    if not any(map(_breaks_words, texts)):
        return frozenset()
    return frozenset(word.lower() for text in texts for word in _SPELLING.findall(text))


def _write_plainly(signs: str) -> str:
    if signs in ("．", "，"):
        return "." if signs == "．" else ","
    return unicodedata.normalize("NFKC", signs) if re.match(f"[{_FORMS}]", signs) else ""


def _find_breaks(text: str, spellings: frozenset[str]) -> Iterable[tuple[int, int, str]]:
    for match in _BREAK.finditer(text):
        start, end = match.span()
        before = _WORD_BEFORE.search(text[max(0, start - _LONGEST) : start])
        after = _WORD_AFTER.match(text[end : end + _LONGEST])
        if before is None or after is None or not after[0][0].islower() or after[0] in CONJUNCTIONS:
            continue
        first, second = before[0].lower(), after[0].lower()
        compound, whole = f"{first}-{second}" in spellings, first + second in spellings
        if "\n" in match[0]:
            keeps = compound or (first in HYPHENATED_HALVES and not whole)
            yield start, end, "-" if keeps else ""
        elif whole and not compound:
            yield start, end, ""


def _find_decomposed(text: str) -> Iterable[tuple[int, int, str]]:
    import regex

    for match in regex.finditer(r"\X", text):
        composed = unicodedata.normalize("NFC", match[0])
        if composed != match[0]:
            yield *match.span(), composed


def _replace(form: OneForm, edits: list[tuple[int, int, str]]) -> OneForm:
    """Return the text with other signs in some places; each new sign stands for all that it replaces."""
    if not edits:
        return form
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    at = 0

    def keep(end: int) -> None:
        pieces.append(form.text[at:end])
        places.extend(form.places[at:end] if form.places else pairwise(range(at, end + 1)))

    for start, end, text in edits:
        keep(start)
        pieces.append(text)
        places += [(form.find_origin(start, end))] * len(text)
        at = end
    keep(len(form.text))
    return OneForm("".join(pieces), tuple(places))
