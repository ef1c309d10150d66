"""The kinds of documents that are converted to text: a module for each, which `KINDS` names by suffix.

They run in a process of their own (`conversion_worker`), so they import nothing of ours but each other, and
the packages that read a format only where they read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple


class Extracted(NamedTuple):
    """Content of a document."""

    text: str
    """Its text, with Markdown's headings, lists and tables where the kind has such."""
    title: str | None = None
    """The title that the document gives itself, which comes before its first heading; None: none."""
    notes: tuple[str, ...] = ()
    """Omissions and doubts, a sentence each: `page 2 has no text`."""


def note_pictures(number: int) -> tuple[str, ...]:
    """Return the note for pictures, charts and equations that a reader has no text for; none for 0."""
    return (f"pictures, charts and equations are left out ({number})",) if number else ()


class Kind(NamedTuple):
    """A kind of document."""

    name: str
    """Name for the user: `Word document`."""
    module: str
    """The module of this package whose function `read` turns bytes into what they say."""
    needs: tuple[str, ...] = ()
    """Modules of the extra `documents` that it imports."""

    def read(self, content: bytes) -> Extracted:
        """Return what a document says; raises nearly any exception for a damaged one."""
        read = import_module(f"{__name__}.{self.module}").read
        extracted: Extracted = read(content)
        return extracted


_HTML = ("html5lib", "markdownify", "bs4")

KINDS: Mapping[str, Kind] = {
    ".md": Kind("Markdown", "text"),
    ".markdown": Kind("Markdown", "text"),
    ".mdx": Kind("Markdown", "text"),
    ".txt": Kind("text", "text"),
    ".pdf": Kind("PDF", "pdf", ("pypdfium2",)),
    ".html": Kind("HTML", "html", _HTML),
    ".htm": Kind("HTML", "html", _HTML),
    ".xhtml": Kind("HTML", "html", _HTML),
    ".docx": Kind("Word document", "word"),
    ".csv": Kind("CSV table", "table_text"),
    ".tsv": Kind("table of tabs", "table_text"),
    ".xlsx": Kind("workbook", "workbook", ("openpyxl",)),
    ".xlsm": Kind("workbook", "workbook", ("openpyxl",)),
    ".pptx": Kind("presentation", "slides", _HTML),
    ".odt": Kind("OpenDocument text", "open_document", _HTML),
    ".rtf": Kind("RTF document", "rtf", _HTML),
    ".rst": Kind("reStructuredText", "rst", ("docutils", *_HTML)),
    ".eml": Kind("e-mail", "mail", _HTML),
    ".epub": Kind("book (EPUB)", "epub", _HTML),
}
"""Suffix, in small letters → kind. A format that stands here is read within the bounds."""
