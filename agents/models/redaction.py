"""Remove keys from everything that comes back from endpoints and from other people's code.

Whoever gets a key may repeat it: in a complaint, in an answer, in an exception. Such text goes through this
module before it is recorded, written or shown. A key is found

- in clear, also in other capitals, and with some or all characters escaped, for JSON (`\\u002d`, `\\/`), URLs
  (`%2D`), HTML (`&#45;`, `&amp;`) or Python (`\\x2d`), each also within another;
- in hexadecimal digits and base64, also broken into groups or lines;
- spelled by the texts of a list, one after another, as tokens are.

A key in other pieces, or in a cipher, is not found.
"""

from __future__ import annotations

import base64
import html
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any
from urllib.parse import unquote, urlsplit

from hallulab.scenarios.files.json_text import replace_surrogates

MARK = "[key]"

SHORTEST = 8
"""Characters that a key must have to be searched for everywhere. A shorter one protects nothing and is a
common word (`none`, `test`); it is removed only after `Bearer`."""

_HOLDS_A_KEY = re.compile(
    r"(?:\w*_)?(?:API)?KEYS?|\w*(?:APIKEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE)S?|\w*_(?:PWD|PAT)",
    re.IGNORECASE,
)
"""Names of environment variables whose values count as keys."""

_HOLDS_AN_ADDRESS = re.compile(r"\w*(?:URL|URI|DSN|_CONN(?:ECTION)?(?:_STR(?:ING)?)?)", re.IGNORECASE)
"""Names of those that may hold addresses with passwords."""

_SCHEMES = frozenset({"bearer", "basic", "token", "key", "apikey", "api-key"})
"""First words of headers before a secret."""

PROXIES = ("http_proxy", "https_proxy", "all_proxy")
"""Names of environment variables, in small letters, with addresses of proxies, which may hold passwords."""

_LEVELS = 4
"""Levels of escapes within escapes that are undone."""

_LEVELS_OF_ONE_KIND = 3
"""The same, where each kind of escape is undone alone; the number of ways is 3 to this power."""

_LONGEST_ESCAPE = 24
"""Characters that one escaped character of a key may take."""

Place = tuple[int, int]
"""[start, end) in a text."""

_KINDS = {
    "\\": (
        r"\\(?:U[0-9a-fA-F]{8}|[uU][0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\}|x[0-9a-fA-F]{2}|[0-3][0-7]{2}|[^uUx])"
    ),
    "%": (
        r"%(?:[0-7][0-9a-fA-F]|u[0-9a-fA-F]{4}|[c-dC-D][0-9a-fA-F]%[89abAB][0-9a-fA-F]"
        r"|[eE][0-9a-fA-F](?:%[89abAB][0-9a-fA-F]){2}|[fF][0-7](?:%[89abAB][0-9a-fA-F]){3})"
    ),
    "&": r"&(?:#0{0,8}[0-9]{1,7};?|#[xX]0{0,8}[0-9a-fA-F]{1,6};?|[A-Za-z][A-Za-z0-9]{1,23};)",
}
"""Patterns of escapes, by the sign that they begin with."""

_ESCAPES = re.compile("|".join(_KINDS.values()), re.DOTALL)
_OF_ONE_KIND = [re.compile(pattern, re.DOTALL) for pattern in _KINDS.values()]
_GAPS = re.compile(r"[\s:]+")
_SMALL_DIGITS = str.maketrans("ABCDEF", "abcdef")
_OF_PYTHON = {"n": "\n", "r": "\r", "t": "\t"}


def remove_keys(text: str, key: str = "") -> str:
    """Remove keys from a text, and half characters (lone surrogates), which no file can hold.

    Args:
        key: the key that was sent, if any. The values of environment variables such as `OPENAI_API_KEY` are
            removed anyway.
    """
    return make_redaction(key).text(text)


def make_redaction(*keys: str) -> Redaction:
    """Return the redaction that `remove_keys` uses, for many texts and several keys."""
    readers = ((name, _find_reader(name)) for name in os.environ)
    of_environment = (read(os.environ.get(name, "")) for name, read in readers if read is not None)
    return _redaction(frozenset(part for part in (*keys, *of_environment) if part.strip()))


def _read_password(address: str, of_proxy: bool = False) -> str:
    """Return the password in an address, of a proxy's also the user name that stands for one; empty: none."""
    try:
        parts = urlsplit(address)
        password = unquote(parts.password or (of_proxy and parts.username) or "")
    except ValueError:
        return ""
    # A word as the password of a test's database may be a word of a reply, too.
    return "" if password.isalpha() and not of_proxy else password


@lru_cache(maxsize=1024)
def _find_reader(name: str) -> Callable[[str], str] | None:
    """Return what reads the secret in the value of an environment variable; None: it holds none."""
    if _HOLDS_A_KEY.fullmatch(name):
        return str
    if name.lower() in PROXIES:
        return partial(_read_password, of_proxy=True)
    return _read_password if _HOLDS_AN_ADDRESS.fullmatch(name) else None


@lru_cache(maxsize=8)
def _redaction(keys: frozenset[str]) -> Redaction:
    return Redaction({part for key in keys for part in (key, *_list_parts(key))})


def _list_parts(value: str) -> Iterator[str]:
    """Yield the secrets within the value of a header: without its scheme, of cookies, of `Basic`."""
    scheme, _, rest = value.partition(" ")
    bare = rest.strip() if scheme.lower() in _SCHEMES else value
    named = [part.partition("=")[2] for part in re.split("[;,]", bare) if not part.endswith("=")]
    told = [bare, *named]
    with suppress(ValueError):
        basic = base64.b64decode(bare, validate=True).decode("ascii")
        told += [basic, basic.partition(":")[2]] if ":" in basic and basic.isprintable() else []
    yield from (part.strip().strip('"') for part in told if len(part.strip()) >= SHORTEST)


class Redaction:
    """Removes keys, none of them empty, from texts."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._keys = [key for key in keys if len(key) >= SHORTEST]
        self._small = [key.lower() for key in self._keys]
        self._short = [key for key in keys if len(key) < SHORTEST]
        self._base64 = [form for key in self._keys for form in _in_base64(key)]
        self._hex = [key.encode("utf-8", "replace").hex() for key in self._keys]
        short = "|".join(map(re.escape, self._short))
        self._bearer = re.compile(rf"(?i:bearer)[\s+]{{1,9}}(?P<key>{short})(?![\w.-])")
        self.reach = _LONGEST_ESCAPE * max(map(len, self._keys), default=0)
        """Characters at the end of a cut text that may be part of a key."""

    def text(self, text: str) -> str:
        """Return the text without the keys and without half characters."""
        text = replace_surrogates(text)
        if len(text) < SHORTEST:
            return text
        found = self._places(text)
        pieces, before = [], 0
        for start, end in found:
            pieces += [text[before:start], MARK]
            before = end
        return "".join([*pieces, text[before:]]) if found else text

    def finds(self, text: str) -> bool:
        """Return whether a key is in the text."""
        return self.text(text) != replace_surrogates(text)

    def value(self, value: Any) -> Any:
        """Replace the lists in a JSON value whose texts spell a key. Its texts must be redacted already."""
        return _without_spelling_lists(value, self)[0] if self._keys else value

    def _places(self, text: str) -> list[Place]:
        """Return the places of keys, without overlaps."""
        found = self._in_clear(text) + self._in_escapes(text, [_ESCAPES], _LEVELS)
        if any(sign in key for key in self._keys for sign in _KINDS):
            # Such a key looks escaped itself: undoing all kinds at once would destroy it.
            found += self._in_escapes(text, _OF_ONE_KIND, _LEVELS_OF_ONE_KIND)
        return _joined(found)

    def _in_escapes(self, text: str, ways: Sequence[re.Pattern[str]], levels: int) -> list[Place]:
        """Return the places of keys that are found after up to `levels` of the patterns are undone."""
        if not levels or not any(sign in text for sign in _KINDS):
            return []
        found = []
        for way in ways:
            undone = way.sub(_unescaped, text)
            if undone != text:
                inside = self._in_clear(undone) + self._in_escapes(undone, ways, levels - 1)
                found += _before(text, way, _unescaped, _joined(inside))
        return found

    def _in_clear(self, text: str) -> list[Place]:
        small = text.lower()
        # Some letters become two in small ones, and places would shift.
        sought, keys = (small, self._small) if len(small) == len(text) else (text, self._keys)
        found = [place for key in keys for place in _occurrences(key, sought)]
        if self._short and "earer" in text.lower():
            found += (match.span("key") for match in self._bearer.finditer(text))
        if not self._keys:
            return _joined(found)
        dense = _GAPS.sub("", text)
        places = [place for form in self._base64 for place in _occurrences(form, dense)]
        # Not `lower`: it makes two letters of some, and places would shift.
        small = dense.translate(_SMALL_DIGITS)
        places += [place for form in self._hex for place in _occurrences(form, small)]
        return _joined(found + _before(text, _GAPS, lambda gap: "", _joined(places)))


def _in_base64(key: str) -> Iterator[str]:
    """Yield the base64 forms of a key, for any text around it."""
    read = key.encode("utf-8", "replace")
    for before in range(3):
        # The first and the last character hold bits of the neighbours.
        first, last = -(-before * 8 // 6), (before + len(read)) * 8 // 6
        standard = base64.b64encode(b"\0" * before + read)[first:last].decode()
        yield standard
        yield standard.translate(str.maketrans("+/", "-_"))


def _occurrences(part: str, text: str) -> Iterator[Place]:
    start = text.find(part)
    while start >= 0:
        yield start, start + len(part)
        start = text.find(part, start + len(part))


def _joined(places: Iterable[Place]) -> list[Place]:
    """Return the places in order, with overlapping ones joined."""
    found: list[Place] = []
    for start, end in sorted(places):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _unescaped(escape: re.Match[str]) -> str:
    """Return the text that an escape stands for."""
    said = escape[0]
    if said[0] == "&":
        return html.unescape(said)
    if said[0] == "%" and said[1] != "u":
        return unquote(said)
    digits = said[1:].strip("uUx{}")
    if said[1] in "uUx":
        code = int(digits, 16)
        return chr(code) if code <= 0x10FFFF else said
    if len(said) == 4:
        return chr(int(digits, 8))
    return _OF_PYTHON.get(said[1], said[1])


def _before(
    text: str, pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str], places: Sequence[Place]
) -> list[Place]:
    """Translate places in `pattern.sub(replace, text)` back to places in `text`.

    Args:
        text: the original text.
        pattern: what was replaced.
        replace: returns the replacement of a match.
        places: places in the replaced text: in order, not empty, without overlaps.
    """
    if not places:
        return []
    ends: list[int] = []
    wanted = iter([letter for start, end in places for letter in (start, end - 1)])
    letter: int | None = next(wanted)
    here = now = 0  # positions reached in `text` and in the replaced text
    for match in pattern.finditer(text):
        while letter is not None and letter < now + match.start() - here:
            ends += [here + letter - now, here + letter - now + 1]
            letter = next(wanted, None)
        now += match.start() - here
        here = match.end()
        made = len(replace(match))
        while letter is not None and letter < now + made:
            ends += match.span()
            letter = next(wanted, None)
        now += made
        if letter is None:
            break
    while letter is not None:
        ends += [here + letter - now, here + letter - now + 1]
        letter = next(wanted, None)
    return _joined(zip(ends[::4], ends[3::4], strict=True))


Told = dict[tuple[str, ...], str]
"""Texts, or bytes as texts, in a JSON value, by the keys and positions that lead to them."""

_DEEPEST = 8
"""Texts below more keys and positions than this are not examined."""


def _without_spelling_lists(value: Any, redaction: Redaction) -> tuple[Any, Told]:
    """Replace each list that spells a key by `[MARK]`; return the value and the texts in it.

    A list spells a key by the texts at the same place of its items: tokens, their bytes, or the alternatives
    of one rank.
    """
    if isinstance(value, dict):
        inside = {key: _without_spelling_lists(item, redaction) for key, item in value.items()}
        told = {(key, *path): text for key, (_, found) in inside.items() for path, text in found.items()}
        return {key: item for key, (item, _) in inside.items()}, _near(told)
    if not isinstance(value, list):
        if type(value) is int and 0 <= value < 256:
            return value, {(): chr(value)}
        return value, {(): value} if isinstance(value, str) else {}
    items, told = [], {}
    columns: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for number, (item, found) in enumerate(_without_spelling_lists(item, redaction) for item in value):
        items.append(item)
        for path, text in found.items():
            columns[path].append(text)
            if path:
                told[(str(number), *path)] = text
    spelled = {path: "".join(texts) for path, texts in columns.items()}
    if any(map(redaction.finds, spelled.values())):
        return [MARK], {}
    if () in spelled:
        told[("",)] = spelled[()]
    return items, _near(told)


def _near(told: Told) -> Told:
    return {path: text for path, text in told.items() if len(path) <= _DEEPEST}
