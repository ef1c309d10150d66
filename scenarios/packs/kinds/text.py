"""Text and Markdown of any encoding, decoded as browsers do: by byte order mark, declaration, or content."""

from __future__ import annotations

import codecs
import re

from hallulab.scenarios.packs.kinds import Extracted

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
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


def decode(content: bytes, declared: str | None = None) -> tuple[str, str]:
    """Return a text, and the encoding that it was read in.

    Args:
        content: the text's bytes.
        declared: a label of the encoding, as the text has it. `iso-8859-1` and `ascii` mean windows-1252, as
            the WHATWG's encoding standard says. A text of UTF-8 that an editor left with such a label is read
            as UTF-8: hardly any other text is valid UTF-8.
    """
    from webencodings import lookup

    for mark, name in _MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(name, "replace"), name
    found = lookup(declared) if declared else None
    if found is not None and found.name.startswith(("windows-", "iso-8859-")) and _is_utf8(content):
        return content.decode("utf-8", "replace"), "utf-8"
    if found is not None and found.name not in ("utf-16le", "utf-16be"):
        return content.decode(found.codec_info.name, "replace"), found.name
    name = _guess(content)
    return content.decode(name, "replace"), name


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _guess(content: bytes) -> str:
    """Return the encoding of a text that declares none."""
    if _is_utf8(content):
        return "utf-8"
    sample = content[:_SAMPLE]
    for offset, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        if sample[offset::2].count(0) > len(sample) / 4:
            return name
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
