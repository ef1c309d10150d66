"""Tokens of texts, and the overlap of two texts as token F1.

The one tokenizer for the spans of every detector.
A token is a word (a run of letters, digits, underscores and combining marks) or a single other character that
is not white space. In scripts without spaces between words (Chinese, Japanese, Thai and others) a token is a
letter with its marks. The tokenizer depends on no model: token accuracy compares chatbots on different models
and detectors with different units. A reply must not score better because its model's vocabulary cuts it into
more pieces. The HalluDetect paper does not name its tokenizer.
"""

from __future__ import annotations

import functools
import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator

from hallulab.scenarios.text.scripts import UNSPACED, write_mark_ranges
from hallulab.scenarios.transcript import Span

_JOINERS = "\u200c\u200d"
_PLANES_WITH_MARKS = (range(0x300, 0x20000), range(0xE0100, 0xE01F0))
"""Code points that include all marks; a search of the whole of Unicode takes a third of a second."""


_UNSPACED = re.compile(f"[{UNSPACED}]")


def _choose_pattern(text: str) -> re.Pattern[str]:
    return _build_pattern(not text.isascii() and _UNSPACED.search(text) is not None)


@functools.cache
def _build_pattern(unspaced: bool) -> re.Pattern[str]:
    """Return the pattern of a token, for texts with or without letters of scripts without spaces."""
    # `\w` leaves out combining marks, which would cut Hindi or Tamil words at every vowel sign.
    marks = "".join(map(write_mark_ranges, _PLANES_WITH_MARKS))
    # White space is skipped first, because comparing a character with all marks takes longest.
    if unspaced:
        letter = rf"(?=[^\W\d_])[{UNSPACED}]"
        others = rf"(?!{letter})[\w{marks}{_JOINERS}]"
        return re.compile(rf"(?!\s)(?:{letter}[{marks}{_JOINERS}]*|(?:{others})+|.)", re.DOTALL)
    return re.compile(rf"(?!\s)(?:[\w{marks}{_JOINERS}]+|.)", re.DOTALL)


@functools.lru_cache(maxsize=256)  # each detector counts the same reply
def count_tokens(text: str) -> int:
    """Count the tokens of a text.

    >>> count_tokens("Rs 500."), count_tokens("借28天。")
    (3, 4)
    """
    return len(_choose_pattern(text).findall(text))


def count_hallucinated(text: str, spans: Iterable[Span]) -> int:
    """Count the tokens that a located span overlaps by at least one character.

    Spans form a union: a token under two spans counts once. Unlocated spans touch no token. Tokens are
    counted under each stretch of the union, so a long text with many spans takes no longer.

    >>> count_hallucinated("Rs 500.", [Span(start=3, end=4, text="5")])
    1

    Args:
        spans: in any order.
    """
    pattern = _choose_pattern(text)
    counted = found = 0
    for left, right in _merge_spans(spans):
        start = max(left, counted)
        if start >= min(right, len(text)):
            continue
        found += len(pattern.findall(text, start, right))
        # The token at the end of the stretch is counted, wherever the next stretch begins.
        last = pattern.match(text, right - 1) if right <= len(text) else None
        counted = last.end() if last else right
    return found


def _merge_spans(spans: Iterable[Span]) -> Iterator[tuple[int, int]]:
    """Yield the separate stretches under at least one span, from left to right; the first may be (0, 0)."""
    places = sorted(
        (span.start, span.end) for span in spans if span.start is not None and span.end is not None
    )
    left = right = 0
    for start, end in places:
        if start > right:
            yield left, right
            left = start
        right = max(right, end)
    yield left, right


_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = frozenset(string.punctuation)


def normalize_squad_text(text: str) -> str:
    """Return a text in lower case, without ASCII punctuation and articles, with single blanks.

    >>> normalize_squad_text("The  U.S. Senate!")
    'us senate'
    """
    kept = "".join(letter for letter in text.lower() if letter not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", kept).split())


def compute_token_f1(reference: str, text: str) -> float:
    """Return the harmonic mean of precision and recall of the normalised words, repeated ones counted.

    This is SQuAD's formula. HotpotQA's script also gives 0 where one of both is `yes` or `no` and the other
    is not; the paper does not name that, and it would give 0 to every sentence that says so.

    >>> round(compute_token_f1("Blue Grass Airport", "It is the Blue Grass airport."), 6)
    0.75
    """
    expected, said = normalize_squad_text(reference).split(), normalize_squad_text(text).split()
    same = sum((Counter(expected) & Counter(said)).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(said), same / len(expected)
    return 2 * precision * recall / (precision + recall)
