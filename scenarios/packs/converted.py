"""Read the text of PDF, HTML and Word documents. HTML and Word become Markdown, so headings stay headings."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import read_bytes, replace_surrogates
from hallulab.scenarios.packs.silence import hide_log_and_warnings
from hallulab.scenarios.plugins import describe_exception

LARGEST_UNPACKED = 200_000_000
"""Bytes of a Word document's parts at most, unpacked."""

_NOT_SAID = ("head", "script", "style", "template", "noscript", "img")
"""Elements of a page that are no part of its text."""


def read_converted(path: Path, largest: int) -> str:
    """Return the text of a document of `READERS`.

    Args:
        path: the document; its suffix says how it is read.
        largest: bytes at most.

    Raises:
        UsageError: it cannot be read, or is too large.
    """
    kind, library, read = READERS[path.suffix.lower()]
    content = read_bytes(path, largest)
    try:
        with hide_log_and_warnings(library):
            text = read(content)
    except Exception as error:  # the libraries raise nearly any exception for a damaged file
        raise UsageError(
            f"{path}: cannot be read as {kind} ({describe_exception(error)}). "
            "Repair or decrypt it, or convert it to text."
        ) from error
    # Broken fonts give lone surrogates.
    return replace_surrogates(text).replace("\x00", "")


def _convert_pdf(content: bytes) -> str:
    from pypdf import PdfReader

    return "\n\n".join(page.extract_text() for page in PdfReader(io.BytesIO(content)).pages)


def _convert_html(content: bytes | str) -> str:
    from bs4 import BeautifulSoup
    from markdownify import ATX, MarkdownConverter

    soup = BeautifulSoup(content, "html.parser")
    for element in soup.find_all(_NOT_SAID):
        element.extract()
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


READERS: dict[str, tuple[str, str, Callable[[bytes], str]]] = {
    ".pdf": ("PDF", "pypdf", _convert_pdf),
    ".html": ("HTML", "bs4", _convert_html),
    ".htm": ("HTML", "bs4", _convert_html),
    ".docx": ("Word document", "mammoth", _convert_word),
}
"""Suffix → what the user reads, the library, and how it is read."""
