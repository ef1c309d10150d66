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
from hallulab.scenarios.text.scripts import UNSPACED

LARGEST_LITERAL = 1_000_000
"""Characters of a list in Python's own words that is read at most."""

_DASHES = ("-", "--", "\N{EN DASH}", "\N{EM DASH}")
_NOTHING = frozenset(("", "nan", "none", "null", "na", "n/a", "n/a.", "<na>", "#n/a", "[]", "{}", *_DASHES))
_NUMBERS = ("nan", "NaN", "inf")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_WRITTEN = re.compile(r"\s*(?:[\[{]|[A-Za-z_][\w.]*\()")
"""The beginning of a list, an object, or what Python writes of a class: `Document(page_content=`."""


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


def count_words(text: str) -> int:
    """Return about how many words a text has; in scripts without spaces, two letters are one.

    >>> count_words("It is 5."), count_words("费用是200卢比。"), count_words("李明")
    (3, 3, 2)
    """
    return len(text.split()) + len(_UNSPACED.findall(text)) // 2


def unpack_cell(value: Any) -> Any:
    """Return the list or object that a text is, as JSON, Python or numpy write it; another value as it is.

    Objects of classes, such as `Document(page_content='…')`, are read as objects with these names.

    >>> unpack_cell("['It is 5.' 'It is 6.']"), unpack_cell('["a"]'), unpack_cell("[1] says so")
    (['It is 5.', 'It is 6.'], ['a'], '[1] says so')
    """
    if not isinstance(value, str) or not _WRITTEN.match(value):
        return value
    try:
        found = parse_json(value)
    except ValueError:
        found = _parse_literal(value)
    return found if isinstance(found, list | dict) else value


def holds_words(found: list[Any]) -> bool:
    """Return whether a list holds texts or objects: one of numbers, such as `[1]`, is what somebody wrote."""
    return any(isinstance(one, str | dict | list) for one in found)


def _parse_literal(text: str) -> Any:
    """Return the list or object that Python or numpy wrote; None for another text. Nothing is evaluated."""
    if len(text) > LARGEST_LITERAL or text.rstrip()[-1:] not in ("]", "}", ")"):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # of backslashes that escape nothing
            return _read_node(ast.parse(_add_commas(text.strip()), mode="eval").body)
    except (ValueError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError):
        return None


def _read_node(node: ast.expr) -> Any:
    """Return what a part of an expression is as a value of JSON.

    Raises:
        ValueError: it is none, such as a sum, or a name.
    """
    # numpy writes `...` for the middle of a long array: what is left says less than the text.
    if isinstance(node, ast.Constant) and node.value is not Ellipsis:
        value = node.value
        return value if value is None or isinstance(value, bool | int | float | str) else str(value)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [_read_node(one) for one in node.elts]
    if isinstance(node, ast.Dict) and None not in node.keys:
        keys = [_read_node(key) for key in node.keys if key is not None]
        return dict(zip(map(str, keys), map(_read_node, node.values), strict=True))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _read_node(node.operand)
        if isinstance(number, int | float):
            return -number
    if isinstance(node, ast.Call):
        return _read_call(node)
    raise ValueError("no value")


def _read_call(node: ast.Call) -> Any:
    """Return what Python wrote of an object of a class: a list of numpy, or names with their values."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name == "array" and node.args:
        return _read_node(node.args[0])
    if not node.args and node.keywords:
        found = {one.arg: _read_node(one.value) for one in node.keywords if one.arg}
        kind = name.removesuffix("Chunk").removesuffix("Message").lower()  # of LangChain
        return {"type": kind, **found} if kind != name.lower() else found
    if len(node.args) == 1 and not node.keywords:  # such as Timestamp('2026-10-01')
        return _read_node(node.args[0])
    raise ValueError("no value")


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
