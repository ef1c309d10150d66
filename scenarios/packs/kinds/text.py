"""Text and Markdown of any encoding, decoded as browsers do: by byte order mark, declaration, or content."""

from __future__ import annotations

import codecs
import re

from hallulab.scenarios.packs.kinds import Extracted
from hallulab.scenarios.packs.kinds.parts import OLD_OFFICE

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_OF_OTHERS = (OLD_OFFICE, b"PK\x03\x04", b"%PDF-", b"\x89PNG", b"\xff\xd8\xff", b"\x1f\x8b", b"GIF8")
"""Beginnings of files that are no text."""
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\r\f\x1b")
_MOST_CONTROLS = 0.05
"""Share of signs of control in a text, at most."""
_MENDED = "UTF-8 with bytes of windows-1252"
_SAMPLE = 200_000
"""Bytes that are looked at to find out an encoding."""
_SHARE = 0.8
"""Share of letters without accent in a text of Western Europe, at least."""
_WESTERN = frozenset("àáâãäåæçèéêëìíîïñòóôõöøùúûüœßÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜŒªº")
_IN_WORD = re.compile(r"[^\W\d_][¿³¹¯¼¾£¥¡¢]+[^\W\d_]")
"""Signs that stand between letters only where windows-1250 was written."""
_OTHERS = (
    *("cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "koi8_r", "iso8859_2"),
    *("cp1252", "cp932", "euc_jp", "iso2022_jp", "gb18030", "big5", "cp949"),
)
"""Encodings of the web that are guessed."""


_ESCAPES = (b"\x1b$B", b"\x1b$@")
"""Beginnings of Japanese in ISO-2022-JP, whose bytes are ASCII."""
_LETTER = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
    rb"|(?P<cut>[\xe0-\xf4][\x80-\xbf]{1,2})|(?P<wrong>[\x80-\xff])"
)
"""A letter beyond ASCII in UTF-8, one that is cut off, or a byte that is none."""
_MOST_WRONG = 0.25
"""Wrong ones for each right one in a text that is UTF-8 all the same, at most."""


def decode(content: bytes, declared: str | None = None) -> tuple[str, str]:
    """Return a text, and the encoding that it was read in.

    Args:
        declared: a label of the encoding, as the text has it. `iso-8859-1` and `ascii` mean windows-1252, as
            the WHATWG's encoding standard says. A text of UTF-8 that an editor left with such a label is read
            as UTF-8: hardly any other text is valid UTF-8.

    Raises:
        ValueError: it is no text.
    """
    from webencodings import lookup

    if content.startswith(_OF_OTHERS):
        raise ValueError("it is no text, but a file of another kind")
    for mark, name in _MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(name, "replace"), name
    found = lookup(declared) if declared else None
    if found is not None and found.name.startswith(("windows-", "iso-8859-")) and _is_utf8(content):
        return content.decode("utf-8", "replace"), "utf-8"
    if found is not None and found.name not in ("utf-16le", "utf-16be"):
        return content.decode(found.codec_info.name, "replace"), found.name
    name = _guess(content)
    if name == _MENDED:
        return _mend(content), name
    return content.decode(name, "replace"), name


def _mend(content: bytes) -> str:
    """Return UTF-8 in which some bytes are of windows-1252, as where two files were put together."""

    def mend(found: re.Match[bytes]) -> bytes:
        if found["cut"]:
            return b""
        return found[0].decode("windows-1252", "replace").encode() if found["wrong"] else found[0]

    return _LETTER.sub(mend, content).decode("utf-8", "replace")


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _guess(content: bytes) -> str:
    """Return the encoding of a text that declares none."""
    if any(mark in content[:_SAMPLE] for mark in _ESCAPES):
        return "iso2022_jp"
    if _is_utf8(content):
        return "utf-8"
    sample = content[:_SAMPLE]
    for offset, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        if sample[offset::2].count(0) > len(sample) / 4:
            return name
    if len(sample) - len(sample.translate(None, _CONTROLS)) > _MOST_CONTROLS * len(sample):
        raise ValueError("it is no text, but a file of another kind")
    right = [found["cut"] is None and found["wrong"] is None for found in _LETTER.finditer(sample)]
    if right.count(False) <= _MOST_WRONG * right.count(True):
        return _MENDED
    if _is_western(sample.decode("windows-1252", "replace")):
        return "windows-1252"
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=list(_OTHERS)).best()
    return "windows-1252" if best is None else best.encoding


def _is_western(text: str) -> bool:
    """Return whether a text, read as windows-1252, is in a language of Western Europe."""
    letters = [letter for letter in text if letter.isalpha()]
    accented = [letter for letter in letters if not letter.isascii()]
    return (
        "\ufffd" not in text
        and len(accented) <= (1 - _SHARE) * len(letters)
        and _WESTERN.issuperset(accented)
        and not _IN_WORD.search(text)
    )


def read(content: bytes) -> Extracted:
    """Return a text or Markdown in another encoding than UTF-8, decoded as browsers and editors do."""
    text, encoding = decode(content)
    return Extracted(text, None, (f"is not UTF-8, and was read as {encoding}",))
