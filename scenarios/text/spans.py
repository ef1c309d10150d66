"""Span arithmetic on literal strings: sentences, quotations, words and their overlaps.

Offsets are Unicode code points, end exclusive. Every detector finds its quotations in a reply by `locate`, so
one stated rule holds for all.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from hallulab.scenarios.text.abbreviations import is_abbreviation
from hallulab.scenarios.text.languages import identify_language
from hallulab.scenarios.text.one_form import HIDDEN_SIGNS, is_in_one_form, unify_text
from hallulab.scenarios.text.scripts import STOP_WITHOUT_SPACE, has_other_words, split_runs

FUZZY_SCORE = 85.0
"""Partial ratio (rapidfuzz, 0 to 100) from which a quotation that is not verbatim counts as found."""
FUZZY_LENGTHS = (0.67, 1.5)
"""Allowed length of a fuzzy match, as a share of the quotation's length."""
FUZZY_MIN_LENGTH = 12
"""Shorter quotations (in characters) are matched verbatim or not at all."""


class Region(NamedTuple):
    """A non-empty stretch of a text."""

    start: int
    """First character."""
    end: int
    """One past the last character."""

    def of(self, text: str) -> str:
        """Return the stretch of `text`.

        >>> Region(4, 7).of("The fee is Rs 500.")
        'fee'
        """
        return text[self.start : self.end]


_GREEK_QUESTION = re.compile(r"(?<=\w);(?=\s)")
_WORD = re.compile(r"\w+")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*•–]|\(?(?:\d{1,2}|[a-zA-Z])[.)])[ \t]+\S")
_LIST_MARK = re.compile(r"(?:[*_]{1,2})?\(?(?:\d{1,2}|[a-zA-Z])[.)]\Z")
_HEADING_LINE = re.compile(r"[ \t]*+(?:#{1,6} .*|\*\*[^*\n]+\*\*:?|[^\n]*\*\*:)[ \t]*\Z")
_BLANK_LINE = re.compile(r"[ \t]*(?:\n|\Z)")
_NO_BLANK = re.compile(r"[^ \t]")
_NO_SPACE = re.compile(r"\S")
_LONG = 7
"""A run of this many letters and digits before a full stop is no list mark and no word of
`is_abbreviation`."""
_LONGEST = 64
"""Characters before a full stop that are looked at for an abbreviation."""
# Both patterns begin with the stop's own characters, so a search can leap to them. A row of stops is tried
# from its first one only. A word after a stop is read only as far as a name of a site or a person can reach:
# longer words would be read again for every stop.
_STOP = re.compile(
    r"[.!?…](?<![.!?…][.!?…])(?:[.!?…]*+[\"'”’)\]*_]*+(?=\s)"
    r"|(?<=[a-z]{2}[.!?])(?=[A-Z][a-z]++(?![\w.@/-]{0,100}[.@/]\w)))"
)


def split_sentences(text: str) -> list[Region]:
    """Return the sentences of a reply, in order; every character but white space is in exactly one.

    A sentence ends at a blank line, before a list item, after a Markdown heading, and at `.`, `!`, `?` or `…`
    followed by white space (or directly by a capitalised word: `Agartala.You`), unless the full stop belongs
    to an abbreviation, an initial, or the number of a list item. The marks of other scripts, such as `।`, `؟`
    and `。`, and in Greek `;`, end a sentence, too, the former without white space. Other line breaks, as in
    addresses, end nothing.

    >>> text = "Ask Dr. Rao. He knows!"
    >>> [region.of(text) for region in split_sentences(text)]
    ['Ask Dr. Rao.', 'He knows!']
    """
    cuts = {0, len(text), *_find_line_cuts(text), *_stop_cuts(text)}
    if not text.isascii():
        cuts.update(match.end() for match in STOP_WITHOUT_SPACE.finditer(text))
        if identify_language(text) == "el":
            cuts.update(match.end() for match in _GREEK_QUESTION.finditer(text))
    pieces = (_strip_region(text, start, end) for start, end in pairwise(sorted(cuts)))
    return [piece for piece in pieces if piece is not None]


def split_spoken_sentences(text: str) -> list[Region]:
    """Return the sentences with a letter or digit; `---` or an emoji alone says nothing.

    >>> split_spoken_sentences("It is free. 🙂")
    [Region(start=0, end=11)]
    """
    return [region for region in split_sentences(text) if re.search(r"\w", region.of(text))]


def _find_line_cuts(text: str) -> Iterable[int]:
    start = 0
    in_list = False
    for match in re.finditer(r"\n", text):
        line, end = text[start : match.start()], match.end()
        in_list = _LIST_ITEM.match(line) is not None or (in_list and line.startswith((" ", "\t")))
        blank = not line.strip() or _BLANK_LINE.match(text, end)
        after_item = in_list and text[end : end + 1].isupper()
        if blank or after_item or _LIST_ITEM.match(text, end) or _HEADING_LINE.match(line):
            yield end
        start = end


def _stop_cuts(text: str) -> Iterable[int]:
    line = seen = 0
    first = _find_first_not_blank(text, 0)
    for match in _STOP.finditer(text):
        stop, end = match.span()
        before, line = line, text.rfind("\n", seen, stop) + 1 or line
        if line != before:
            first = _find_first_not_blank(text, line)
        seen = stop
        if text[stop] == "." and _is_part_of_word(text, first, stop, end):
            continue
        if match[0].startswith(("..", "…")) and _find_next_character(text, end).islower():
            continue
        yield end


def _find_next_character(text: str, at: int) -> str:
    found = _NO_SPACE.search(text, at)
    return found[0] if found else ""


def _find_first_not_blank(text: str, at: int) -> int:
    found = _NO_BLANK.search(text, at)
    return found.start() if found else len(text)


def _is_part_of_word(text: str, first: int, stop: int, end: int) -> bool:
    """Return whether the full stop at `stop` belongs to a list mark or an abbreviation.

    It looks at few characters: whole lines of a long text would cost more than everything else.

    Args:
        first: first character of the stop's line that is no blank.
        end: start of the text after the stop.
    """
    if stop >= _LONG and text[stop - _LONG : stop].isalnum() and not text.endswith("str", 0, stop):
        return False
    if _LIST_MARK.match(text, first, stop + 1):
        return True
    since = max(first, stop - _LONGEST)
    tail = text[max(since, text.rfind(" ", since, stop) + 1) : stop]
    word = tail.split()[-1] if tail and not tail[-1].isspace() else ""
    language = identify_language(text)
    following = (
        _find_next_character(text, end) if language in (None, "en") else text[end : end + _LONGEST].lstrip()
    )
    return is_abbreviation(word, following, language)


def strip(text: str, region: Region) -> Region | None:
    """Return the region without white space at its ends, or None if nothing is left.

    >>> strip(" a b ", Region(0, 5))
    Region(start=1, end=4)
    """
    return _strip_region(text, region.start, min(region.end, len(text)))


def _strip_region(text: str, start: int, end: int) -> Region | None:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return Region(start, end) if start < end else None


def locate(quote: str, text: str, *, near: int | None = None, mention: int = 0) -> Region | None:
    """Return where `quote` stands in `text`, or None.

    Four ways are tried in this order: verbatim; with case, white space, dashes and quotation marks made
    equal; the same without punctuation around the quotation; the stretch that rapidfuzz's
    `partial_ratio_alignment` finds, widened to whole words, if it scores `FUZZY_SCORE` or more and its length
    is within `FUZZY_LENGTHS`.

    The first three may find several occurrences. Places that begin or end inside a word count only if there
    are no others: `Rs 5` is not in `Rs 500` if it also stands alone.

    >>> locate("the FEE", "Pay the fee.")
    Region(start=4, end=11)
    >>> locate("Rs 5", "Rs 500 or Rs 5.")
    Region(start=10, end=14)
    >>> locate("a refund", "Pay the fee.") is None
    True

    Args:
        near: take the occurrence that starts nearest to this offset.
        mention: without `near`, take the occurrence of this number (from 0; the last one if there are fewer).
    """
    quote = quote.strip()
    if not quote:
        return None
    verbatim = [Region(at, at + len(quote)) for at in _find_occurrences(quote, text)]
    found = _pick(verbatim, text, near, mention)
    if found is not None:
        return found
    likened, origin = _normalize_again(text)
    wanted = normalize_text(quote)
    for form in dict.fromkeys((wanted, wanted.strip(" .,;:!?\"'*_-()[]…"))):
        spots = [
            Region(origin[at], origin[at + len(form) - 1] + 1) for at in _find_occurrences(form, likened)
        ]
        found = _pick(spots, text, near, mention)
        if found is not None:
            return strip(text, found)
    return _find_fuzzy(wanted, text, likened, origin)


def locate_mentions(quotes: Sequence[str], text: str) -> list[Region | None]:
    """Locate quotations in order of mention: the n-th equal quotation is the n-th occurrence.

    >>> locate_mentions(["a fee", "a fee"], "a fee, a fee")
    [Region(start=0, end=5), Region(start=7, end=12)]
    """
    seen: Counter[str] = Counter()
    regions = []
    for quote in quotes:
        key = normalize_text(quote)
        regions.append(locate(quote, text, mention=seen[key]))
        seen[key] += 1
    return regions


def _find_occurrences(needle: str, text: str) -> Iterable[int]:
    at = text.find(needle) if needle else -1
    while at >= 0:
        yield at
        at = text.find(needle, at + 1)


def _pick(spots: Sequence[Region], text: str, near: int | None, mention: int) -> Region | None:
    if not spots:
        return None
    whole = [s for s in spots if not _is_inside_word(text, s.start) and not _is_inside_word(text, s.end)]
    spots = whole or spots
    if near is not None:
        return min(spots, key=lambda spot: abs(spot.start - near))
    return spots[min(mention, len(spots) - 1)]


def _is_inside_word(text: str, at: int) -> bool:
    """Return whether the boundary before character `at` has letters or digits on both sides."""
    return 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()


_SAME = {ord(a): b for group, b in (("‘’‚‛`´", "'"), ("“”„‟«»", '"'), ("‐‑‒–—―−", "-")) for a in group}


def _normalize_text(text: str) -> tuple[str, list[int]]:
    """Make case, white space, dashes and quotation marks equal; also return each character's origin.

    Soft hyphens and signs without width are left out.
    """
    out: list[str] = []
    origin: list[int] = []
    for index, character in enumerate(text):
        if character in HIDDEN_SIGNS:
            continue
        for made in unicodedata.normalize("NFKC", character.translate(_SAME)).casefold():
            if made.isspace():
                if not out or out[-1] == " ":
                    continue
                made = " "
            out.append(made)
            origin.append(index)
    while out and out[-1] == " ":
        out.pop()
        origin.pop()
    return "".join(out), origin


# Many quotations are looked for in one text.
_normalize_again = lru_cache(maxsize=2)(_normalize_text)


def _find_fuzzy(wanted: str, text: str, likened: str, origin: Sequence[int]) -> Region | None:
    from rapidfuzz.fuzz import partial_ratio_alignment

    if len(wanted) < FUZZY_MIN_LENGTH or not likened:
        return None
    best = partial_ratio_alignment(wanted, likened, score_cutoff=FUZZY_SCORE)
    if best is None or best.dest_end <= best.dest_start:
        return None
    share = (best.dest_end - best.dest_start) / len(wanted)
    if not FUZZY_LENGTHS[0] <= share <= FUZZY_LENGTHS[1]:
        return None
    start, end = origin[best.dest_start], origin[best.dest_end - 1] + 1
    while _is_inside_word(text, start):
        start -= 1
    while _is_inside_word(text, end):
        end += 1
    return strip(text, Region(start, end))


def normalize_text(text: str) -> str:
    """Return the text that `locate` compares: case, white space, dashes and quotation marks made equal.

    >>> normalize_text("The  “fee” – Rs 5")
    'the "fee" - rs 5'
    """
    return _normalize_text(text)[0]


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case: runs of letters, digits and underscores.

    They are words of the text's one form, without ligatures and soft hyphens. Vowel signs belong to their
    word. Chinese and Japanese are cut into characters, Thai into words.

    >>> split_words("The fee: Rs 500.")
    ['the', 'fee', 'rs', '500']
    """
    lower = (text if is_in_one_form(text) else unify_text(text).text).lower()
    return list(split_runs(lower)) if has_other_words(lower) else _WORD.findall(lower)


def compute_unknown_share(text: str, known: set[str]) -> float | None:
    """Return the share of the words of `text` that are not in `known`, in [0, 1]; None without words.

    >>> compute_unknown_share("The fee: Rs 500.", {"the", "fee", "rs"})
    0.25
    """
    found = split_words(text)
    return sum(word not in known for word in found) / len(found) if found else None


def cut_region(region: Region, bounds: Region) -> Region | None:
    """Return the part of `region` inside `bounds`, or None if they do not meet.

    >>> cut_region(Region(0, 5), Region(3, 9))
    Region(start=3, end=5)
    """
    start, end = max(region.start, bounds.start), min(region.end, bounds.end)
    return Region(start, end) if start < end else None
