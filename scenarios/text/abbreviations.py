"""Words whose full stop ends no sentence, in English as it is written in law and in India."""

from __future__ import annotations

import re

_ALWAYS = re.compile(
    r"mr|mrs|ms|dr|prof|st|sr|jr|vs|eg|ie|e\.g|i\.e|cf|viz|approx|inc|ltd|co|corp|dept|govt|art|sec|cl|para|reg"
    r"|rs|ph|tel|ext|fig|vol|ed|pp|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|hon|adv|smt|shri|www",
    re.IGNORECASE,
)
_BEFORE_A_NUMBER = frozenset({"no", "nos", "ss", "ch"})
"""`No. 32`, but `No. That is wrong.`"""
_NOT_BEFORE_A_CAPITAL = frozenset({"a.m", "p.m", "etc"})
_INITIALS = re.compile(r"(?:\(?[A-Za-z]\.)*\(?[A-Za-z]\Z")


def is_abbreviation(word: str, following: str) -> bool:
    """Return whether the full stop after `word` belongs to an abbreviation or initial, so that no sentence
    ends.

    Args:
        word: the characters between white space and the stop; brackets and quotation marks before it are
            ignored.
        following: the text after the stop, without white space before it.
    """
    word = word.lstrip("(\"'“‘*_[")
    if word.lower() in _BEFORE_A_NUMBER:
        return following[:1].isdigit()
    if word.lower() in _NOT_BEFORE_A_CAPITAL:
        return not following[:1].isupper()
    return _ALWAYS.fullmatch(word) is not None or (_INITIALS.fullmatch(word) is not None and word != "I")
