"""Turn PDF, HTML and Word documents into text, in a process of its own with bounds of memory and time.

Needs the standard library and the packages that read the formats; runs as a script, with the bytes of memory
that it may take at most. `hallulab.scenarios.packs.conversion` starts it and asks:

| from | message |
|---|---|
| us | a line `{"suffix", "bytes", "seconds"}`, then so many bytes: the document |
| worker | a line `{"bytes"}`, then so many bytes of UTF-8: the text; or a line `{"error"}` |

`seconds` is the processor time that the process may have taken in all when the document is read.
"""

from __future__ import annotations

import io
import json
import logging
import math
import os
import re
import resource
import signal
import sys
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

LARGEST_UNPACKED = 200_000_000
"""Bytes of a Word document's parts at most, unpacked."""

LARGEST_TEXT = 50_000_000
"""Bytes of a text at most."""

OUT_OF_MEMORY = 3
"""Exit code where the memory does not suffice."""

LONGEST_REASON = 1000
"""Characters of an error at most."""

_NOT_SAID = ("head", "script", "style", "template", "noscript", "img")
"""Elements of a page that are no part of its text."""
_BLANKS = 100
"""Blanks of a row in a page that are read, at most."""
_MANY_BLANKS = re.compile(rf"[ \t]{{{_BLANKS},}}+")

_PR_SET_PDEATHSIG = 1


def _convert_pdf(content: bytes) -> str:
    from pypdf import PdfReader

    return "\n\n".join(page.extract_text() for page in PdfReader(io.BytesIO(content)).pages)


def _convert_html(content: bytes | str) -> str:
    from bs4 import BeautifulSoup
    from markdownify import ATX, MarkdownConverter

    soup = BeautifulSoup(content, "html.parser")
    for element in soup.find_all(_NOT_SAID):
        element.extract()
    # A page shows a row of blanks as one, and markdownify's time grows with the square of its length.
    for text in soup.find_all(string=_MANY_BLANKS):
        text.replace_with(type(text)(_MANY_BLANKS.sub(" " * _BLANKS, text)))
    plain = MarkdownConverter(
        heading_style=ATX,
        strip=["a", "b", "strong", "em", "i"],
        escape_asterisks=False,
        escape_underscores=False,
    )
    return str(plain.convert_soup(soup))


def _convert_word(content: bytes) -> str:
    import mammoth

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > LARGEST_UNPACKED:
        raise ValueError(f"it has {unpacked:,} bytes unpacked, more than {LARGEST_UNPACKED:,}")
    return _convert_html(mammoth.convert_to_html(io.BytesIO(content)).value)


CONVERTERS: dict[str, tuple[str, Callable[[bytes], str]]] = {
    ".pdf": ("PDF", _convert_pdf),
    ".html": ("HTML", _convert_html),
    ".htm": ("HTML", _convert_html),
    ".docx": ("Word document", _convert_word),
}
"""Suffix → what the user reads, and how it is read: a format that stands here is read within the bounds."""


def main(memory: int) -> None:
    """Convert document after document until standard input ends."""
    asked, told = _take_over_streams()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(
            number, signal.SIG_IGN
        )  # they end our process, if a group gets them, and it ends this one
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _set_limit(resource.RLIMIT_CORE, 0)
    _set_limit(resource.RLIMIT_AS, memory)
    logging.disable()
    warnings.simplefilter("ignore")
    try:
        while line := asked.readline():
            request = json.loads(line)
            _set_limit(resource.RLIMIT_CPU, math.ceil(request["seconds"]))
            answer, text = _convert(request["suffix"], asked.read(request["bytes"]))
            told.write(json.dumps(answer).encode("ascii") + b"\n")
            told.write(text)
            told.flush()
    except MemoryError:
        os._exit(OUT_OF_MEMORY)  # a parser's memory is not given back for the next document


def _convert(suffix: str, content: bytes) -> tuple[dict[str, object], bytes]:
    """Return an answer and the text that follows it."""
    try:
        text = CONVERTERS[suffix][1](content).encode("utf-8", "surrogatepass")
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - the packages raise nearly any exception for a damaged file
        return {"error": _describe(error)}, b""
    if len(text) > LARGEST_TEXT:
        return {"error": f"its text has more than {LARGEST_TEXT:,} bytes"}, b""
    return {"bytes": len(text)}, text


def _describe(error: Exception) -> str:
    message = " ".join(str(error)[:LONGEST_REASON].split()).rstrip(".")
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _take_over_streams() -> tuple[BinaryIO, BinaryIO]:
    """Return standard input and output, and leave nothing in their places."""
    asked, told = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)
    return asked, told


def _set_limit(kind: int, most: int) -> None:
    """Set a limit of this process, where the system has such a one: macOS has none of memory."""
    _, hard = resource.getrlimit(kind)
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


if __name__ == "__main__":
    main(int(sys.argv[1]))
