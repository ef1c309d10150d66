"""The letters of an answer's bytes."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from email.message import Message

import httpx2

_BEYOND_ASCII = re.compile(rb"[\x80-\xff]+")

_LONGEST_RUN = 3
"""Letters beyond ASCII in a row that western languages have at most; others have whole words of them."""


def decode_text(read: bytes, headers: httpx2.Headers) -> str:
    """Return the text of a body: UTF-8, or else what its `Content-Type` says, in whose letters it is whole.

    Servers say `ISO-8859-1` of UTF-8 and mean it of others, so the bytes are asked first.
    """
    with suppress(UnicodeDecodeError):
        return read.decode(json.detect_encoding(read))
    told = Message()
    told["Content-Type"] = headers.get("Content-Type", "")
    with suppress(LookupError, ValueError):
        return read.decode(str(told.get_content_charset("utf-8")))
    return decode_untold(read)


def is_garbled(read: bytes, text: str) -> bool:
    """Return whether most letters beyond ASCII of a text stand for bytes that could not be decoded."""
    mark = "\N{REPLACEMENT CHARACTER}"
    faults = text.count(mark) - read.count(mark.encode())  # a model may write the mark itself
    return faults > 0 and faults > sum(not letter.isascii() for letter in text) / 2


def decode_untold(read: bytes) -> str:
    """Return the text of bytes of which nobody says what they are: UTF-8, or else Latin-1 as Windows has it.

    Bytes are Latin-1 if most of those beyond ASCII are no UTF-8, and only few of them are in a row. In other
    texts, those that are no UTF-8 are replaced.
    """
    text = read.decode("utf-8", "replace")
    if is_garbled(read, text):
        longest = max(map(len, _BEYOND_ASCII.findall(read)))
        with suppress(UnicodeDecodeError):  # it has bytes that stand for no letter
            return read.decode("cp1252") if longest <= _LONGEST_RUN else text
    return text
