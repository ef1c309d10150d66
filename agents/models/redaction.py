"""Keys are taken out of all that comes back from endpoints and from other people's code.

Who gets a key may repeat it: in a complaint, in an answer, in an exception. No such text is recorded, written
or shown before it went through here. A key is found in clear and as servers escape it, the whole of it or
some characters: for JSON (`\\u002d`, `\\/`), URLs (`%2D`), HTML (`&#45;`) or Python (`\\x2d`); also in
hexadecimal digits and base64. One that comes back in pieces, or in a cipher, is not found.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable
from functools import cached_property, lru_cache

from scenarios.files.data_files import without_surrogates

MARK = "[key]"
"""What stands in a key's place."""

SHORTEST = 8
"""Characters of a key that is looked for by itself. A shorter one guards nothing and is a word of many
answers (`none`, `test`); it is taken out only where `Bearer` stands before it."""

_LONGEST_PATTERN = 512
"""Characters of a key that is looked for in escaped forms; certificates and such are longer."""

_HOLDS_A_KEY = re.compile(r"(?:\w*_)?(?:API)?(?:KEY|TOKEN|SECRET|PASSWORD)S?", re.IGNORECASE)
"""Names of the environment variables that are held to be keys."""


def without_keys(text: str, key: str = "") -> str:
    """Text from outside without keys, and without half characters, which no file can hold.

    Args:
        text: what came back.
        key: the key that was sent, if any. The values of environment variables such as `OPENAI_API_KEY` are
            taken out anyway.
    """
    return redaction(key).text(text)


def redaction(key: str = "") -> Redaction:
    """What `without_keys` goes by, for many texts."""
    of_environment = (value for name, value in os.environ.items() if _HOLDS_A_KEY.fullmatch(name))
    return _redaction(frozenset(part for part in (key, *of_environment) if part.strip()))


@lru_cache(maxsize=8)
def _redaction(keys: frozenset[str]) -> Redaction:
    return Redaction(keys)


class Redaction:
    """Takes some keys out of texts.

    Args:
        keys: none of them empty.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        longest_first = sorted(keys, key=lambda key: (-len(key), key))
        self._keys = [key for key in longest_first if len(key) >= SHORTEST]
        self._short = [key for key in longest_first if len(key) < SHORTEST]
        self._plain = [form for key in self._keys for form in _plain_forms(key)]
        self._signs = "\\%&" if self._keys else ""

    def text(self, text: str) -> str:
        """The text without the keys, and without half characters."""
        text = without_surrogates(text)
        for form in self._plain:
            if form in text:
                text = text.replace(form, MARK)
        if any(sign in text for sign in self._signs) or (self._short and "earer" in text.lower()):
            text = self._pattern.sub(rf"\g<bearer>{MARK}", text)
        return text

    def finds(self, text: str) -> bool:
        """Whether a key is in the text."""
        return self.text(text) != without_surrogates(text)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        bearer = r"(?P<bearer>(?i:bearer)(?:\s|\+|%20|\\u0020){1,9})"
        long = [_spelled(key) for key in self._keys if len(key) <= _LONGEST_PATTERN]
        short = [_spelled(key) for key in self._short] or [r"(?!)"]
        return re.compile("|".join([*long, rf"{bearer}(?:{'|'.join(short)})(?![\w.-])"]))


def _plain_forms(key: str) -> Iterable[str]:
    """The key, and what encodings make of it whatever stands around it."""
    read = key.encode("utf-8", "replace")
    yield key
    yield read.hex()
    yield read.hex().upper()
    for before in range(3):
        # Of the first and the last character some bits belong to the neighbours.
        first, last = -(-before * 8 // 6), (before + len(read)) * 8 // 6
        standard = base64.b64encode(b"\0" * before + read)[first:last].decode()
        yield standard
        yield standard.translate(str.maketrans("+/", "-_"))


def _spelled(key: str) -> str:
    """A pattern of all ways in which a key may be written; none of its parts can run on."""
    return "".join(map(_character, key))


def _character(char: str) -> str:
    code = ord(char)
    octets = "".join(rf"%(?:25){{0,3}}{octet:02x}" for octet in char.encode("utf-8", "replace"))
    return (
        rf"(?:\\{{0,8}}{re.escape(char)}"
        rf"|(?i:\\{{1,8}}u{code:04x}|\\{{1,8}}x{code:02x}|{octets}|&(?:amp;){{0,3}}#(?:{code}|x{code:x});))"
    )
