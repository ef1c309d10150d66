"""Cells of tables as values: lists that were written as text, and what stands for nothing."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from itertools import accumulate, pairwise
from math import isnan
from typing import Any

from hallulab.scenarios.files.json_text import parse_json

LARGEST_LITERAL = 1_000_000
"""Characters of a list in Python's own words that is read at most."""

_NOTHING = frozenset(("", "nan", "none", "null", "na", "n/a", "<na>", "[]", "{}"))
_NUMBERS = ("nan", "NaN", "inf")
_ARRAY = re.compile(r"\s*array\((?P<list>\[.*\])(?:,\s*dtype=[\w'<>]+)?\)\s*", re.DOTALL)


def is_nothing(value: Any) -> bool:
    """Return whether a value stands for nothing: it is empty, missing, or a text or a list of such.

    >>> [is_nothing(one) for one in (None, "NaN", "['']", [None, " "], "0", "no")]
    [True, True, True, True, False, False]
    """
    if isinstance(value, str):
        if value.strip().casefold() in _NOTHING:
            return True
        found = unpack_cell(value)
        return found is not value and is_nothing(found)
    if isinstance(value, list | tuple):
        return all(map(is_nothing, value))
    return value is None or value == {} or (isinstance(value, float) and isnan(value))


def unpack_cell(value: Any) -> Any:
    """Return the list or object that a text is, as JSON, Python or numpy write it; another value as it is.

    >>> unpack_cell("['It is 5.' 'It is 6.']"), unpack_cell('["a"]'), unpack_cell("[1] says so")
    (['It is 5.', 'It is 6.'], ['a'], '[1] says so')
    """
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{", "array([")):
        return value
    try:
        found = parse_json(value)
    except ValueError:
        found = _parse_literal(value)
    return found if isinstance(found, list | dict) else value


def _parse_literal(text: str) -> Any:
    """Return the list or object that Python or numpy wrote; None for another text. Nothing is evaluated."""
    if array := _ARRAY.fullmatch(text):
        text = array["list"]
    if len(text) > LARGEST_LITERAL or text.rstrip()[-1:] not in ("]", "}"):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # of backslashes that escape nothing
            found = ast.literal_eval(_add_commas(text.strip()))
    except (ValueError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError):
        return None
    return _convert_to_json(found)


def _add_commas(text: str) -> str:
    """Return the text with commas between texts that follow each other, as in numpy, and None for nan."""
    read = tokenize.generate_tokens(io.StringIO(text).readline)
    tokens = [token for token in read if token.type not in (tokenize.NL, tokenize.NEWLINE)]
    starts = list(accumulate(map(len, text.splitlines(keepends=True)), initial=0))
    parts, at = list[str](), 0
    for before, after in pairwise(tokens):
        end = starts[before.end[0] - 1] + before.end[1]
        if before.type == after.type == tokenize.STRING:
            parts += [text[at:end], ","]
            at = end
        elif before.type == tokenize.NAME and before.string in _NUMBERS:
            parts += [text[at : end - len(before.string)], "None"]
            at = end
    return "".join([*parts, text[at:]])


def _convert_to_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _convert_to_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set):
        return [_convert_to_json(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
