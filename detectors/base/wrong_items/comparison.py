"""Compare a sentence word by word with an evidence sentence of nearly the same words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from hallulab.detectors.base.wrong_items.claim import ComparedSentence
from hallulab.detectors.base.wrong_items.evidence import Sentence, Token
from hallulab.detectors.base.wrong_items.phrases import main_words
from hallulab.scenarios.text.spans import Region

NEAR_VERBATIM = 0.7
"""Two sentences are compared if the evidence has at least this share of the content words."""
MOST_WORDS = 120
"""Longer sentences are not compared: it would take too long, and they are lists."""
_LONGEST = 4
"""Most words that may replace others; if more differ, the sentences say different things."""
_BEFORE = 3
"""Words quoted before those that differ."""
_NEGATION = re.compile(
    r"\b(?:not|no|never|cannot|without|neither|nor|none|nobody|nothing)\b|n['’]t\b", re.IGNORECASE
)
_CONDITION = re.compile(
    r"\A(?:for|where|if|when|in|unless|except|only|within|after|before|until|during|under)\b[^,;]*,"
    r"|\b(?:unless|except(?: for)?|only if|only after|provided that|as long as|if|where|when)\b[^,;.]*",
    re.IGNORECASE,
)


class Mismatch(NamedTuple):
    """A place where a sentence and its evidence differ."""

    kind: Literal["replaced", "negated", "condition"]
    """Other words; a `not` in only one of the two; a limit or condition that only the evidence has."""
    place: Region
    """Its place in the sentence."""
    instead: str
    """What the evidence has."""


def find_differences(claim: ComparedSentence) -> Iterator[Mismatch]:
    """Yield the differences from the evidence sentence that has most of the claim, if the two are near."""
    source = claim.best
    if source is None or claim.evidence.share(claim.stems, source.own) < NEAR_VERBATIM:
        return
    if max(len(claim.tokens), len(source.tokens)) <= MOST_WORDS:
        yield from _word_by_word(claim, source)
    for match in _CONDITION.finditer(source.text):
        words = {
            token.stem
            for token in source.tokens
            if token.content and match.start() <= token.start and token.end <= match.end()
        }
        if words and 3 * len(words & claim.stems) <= len(words):
            yield Mismatch("condition", main_words(claim), match[0].strip(" ,"))


def negates(text: str) -> bool:
    """Return whether a text has an odd number of negations."""
    return len(_NEGATION.findall(text)) % 2 == 1


def _word_by_word(claim: ComparedSentence, source: Sentence) -> Iterator[Mismatch]:
    ours, theirs = claim.tokens, source.tokens
    matcher = SequenceMatcher(None, [t.stem for t in ours], [t.stem for t in theirs], autojunk=False)
    codes = matcher.get_opcodes()
    equal = [place for place, code in enumerate(codes) if code[0] == "equal"]
    for place, (kind, a, b, c, d) in enumerate(codes):
        if kind == "equal" or not equal or place < equal[0] or max(b - a, d - c) > _LONGEST:
            continue
        mine, other = _between(ours, claim.text, a, b), _between(theirs, source.text, c, d)
        told = _tells(ours[a:b]), _tells(theirs[c:d])
        if negates(mine) != negates(other):
            yield Mismatch("negated", _stretch(ours, a, b), _cut(source, c, d))
        elif all(told):
            yield Mismatch("replaced", _stretch(ours, a, b), _cut(source, c, d))


def _tells(tokens: Sequence[Token]) -> bool:
    return any(token.content for token in tokens)


def _between(tokens: Sequence[Token], text: str, first: int, after: int) -> str:
    return text[tokens[first].start : tokens[after - 1].end] if first < after else ""


def _stretch(tokens: Sequence[Token], first: int, after: int) -> Region:
    """Return the words that differ and some before them; if there are none, also the next one."""
    last = after - 1 if after > first else min(after, len(tokens) - 1)
    return Region(tokens[max(0, first - _BEFORE)].start, tokens[last].end)


def _cut(source: Sentence, first: int, after: int) -> str:
    place = _stretch(source.tokens, first, after)
    return place.of(source.text)
