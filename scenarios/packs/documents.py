"""Read knowledge documents from a pack's own folder only: Markdown, plain text, PDF, HTML and Word.

A document's content is only data: no path is built from it.
"""

from __future__ import annotations

import io
import logging
import os
import re
import stat
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import Field

from hallulab.scenarios.components import describe_exception
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import read_bytes, read_text, replace_surrogates
from hallulab.scenarios.files.yaml_text import YamlText
from hallulab.scenarios.packs.pack import Document
from hallulab.scenarios.transcript import Frozen


class Boundary:
    """A folder to read from. Nothing outside of it is read, also not through links.

    Args:
        folder: the folder; None: there is no boundary.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder and Path(os.path.realpath(folder))

    def require_inside(self, path: Path) -> None:
        """Raise UsageError if a path, with all links resolved, is outside."""
        if self._folder is None:
            return
        end = Path(os.path.realpath(path))
        if not end.is_relative_to(self._folder):
            raise UsageError(
                f"{path}: leads to {end}, outside of the pack's folder {self._folder}. Copy what the "
                "pack needs into that folder; nothing else is read."
            )

    def require_file(self, path: Path) -> None:
        """Raise UsageError if a path is outside or no regular file."""
        self.require_inside(path)
        try:
            mode = path.stat().st_mode
        except OSError as error:
            raise UsageError(f"{path}: cannot be read ({error.strerror}). Correct or remove it.") from error
        if not stat.S_ISREG(mode):
            raise UsageError(f"{path}: is {_name_kind(mode)}, no file. Put a file there, or remove it.")


ANYWHERE = Boundary(None)
"""For packs that come with hallulab: package managers may install them as links."""


def list_entries(folder: Path) -> list[Path]:
    """Return the entries of a folder, sorted by name.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise UsageError(f"{folder}: cannot be read ({error.strerror}). Correct or remove it.") from error


def _name_kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


@contextmanager
def hide_log_and_warnings(library: str) -> Iterator[None]:
    """Silence a library's log and warnings while the block runs. Its exceptions say enough.

    Args:
        library: beginning of its loggers' names.
    """
    logger = logging.getLogger(library)
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


LARGEST_UNPACKED = 200_000_000
"""Bytes of a Word document's parts at most, unpacked."""

_NOT_SAID = ("head", "script", "style", "template", "noscript", "img")
"""Elements of a page that are no part of its text."""
_BLANKS = 100
"""Blanks of a row in a page that are read, at most."""
_MANY_BLANKS = re.compile(rf"[ \t]{{{_BLANKS},}}+")


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


READERS: dict[str, tuple[str, str, Callable[[bytes], str]]] = {
    ".pdf": ("PDF", "pypdf", _convert_pdf),
    ".html": ("HTML", "bs4", _convert_html),
    ".htm": ("HTML", "bs4", _convert_html),
    ".docx": ("Word document", "mammoth", _convert_word),
}
"""Suffix → what the user reads, the library, and how it is read."""


SCHEMA = "docs/scenario-packs.md"
"""Describes the files of a pack."""

_TEXTS = (".md", ".txt")
_PDF = ".pdf"

SUFFIXES = (*_TEXTS, *READERS)
"""Suffixes of the files that are read."""

KINDS = ", ".join(SUFFIXES[:-1]) + f" and {SUFFIXES[-1]}"
"""The same in words."""
_FENCE = "---"

LARGEST = 50_000_000
"""Bytes of a document at most."""

_HEADING = re.compile(r"^#{1,6}[ \t]+(?P<title>[^ \t\n].*)$", re.MULTILINE)


class DocumentDefaults(Frozen):
    """A pack's labels for documents without their own."""

    source: str | None = Field(default=None, min_length=1)
    """Where the facts come from; None: the pack's default, else the file's name."""
    topic: str | None = Field(default=None, min_length=1)
    """Topic label; None: the pack's default."""
    sector: str | None = Field(default=None, min_length=1)
    """Sector; None: the pack's default."""


class DocumentLabels(DocumentDefaults):
    """The front matter of a document."""

    title: str | None = Field(default=None, min_length=1)
    """Title; None: the first heading, else the file's name."""


def read_documents(folder: Path, defaults: DocumentDefaults, boundary: Boundary) -> tuple[Document, ...]:
    """Read all documents of a folder and its subfolders, by path. Hidden files are skipped.

    A document's name is its path in `folder`, without suffix.

    Args:
        boundary: the folder and its files must be inside.

    Raises:
        UsageError: the folder has no document, or a file that cannot be used.
    """
    boundary.require_inside(folder)
    paths = {path.relative_to(folder).as_posix(): path for path in find_document_files(folder)}
    if not paths:
        raise UsageError(f"{folder}: no documents in it. Put {KINDS} files there.")
    documents: dict[str, Document] = {}
    for relative in sorted(paths):
        if replace_surrogates(relative) != relative:
            raise UsageError(f"{paths[relative]}: the name of the file is not UTF-8. Rename it.")
        name = relative.rpartition(".")[0]
        if name in documents:
            raise UsageError(
                f"{paths[relative]}: another document is called {name} too. Rename one of the two files."
            )
        boundary.require_file(paths[relative])
        documents[name] = _read_document(paths[relative], name, defaults)
    return tuple(documents.values())


def find_document_files(folder: Path) -> Iterable[Path]:
    """Yield the documents of a folder and its subfolders; refuse links to folders and other files."""
    waiting = [folder]
    while waiting:
        for path in list_entries(waiting.pop()):
            if path.name.startswith("."):
                continue
            if path.is_dir():
                if path.is_symlink():
                    raise UsageError(
                        f"{path}: links to folders are not followed. Put the folder itself there."
                    )
                waiting.append(path)
            elif path.suffix.lower() not in SUFFIXES:
                raise UsageError(
                    f"{path}: only {KINDS} documents are read. Convert the file or move it away."
                )
            else:
                yield path


def _read_document(path: Path, name: str, defaults: DocumentDefaults) -> Document:
    suffix = path.suffix.lower()
    if suffix in READERS:
        labels, body = DocumentLabels(), read_converted(path, LARGEST)
    else:
        labels, body = _split_front_matter(path, read_text(path, LARGEST))
    heading = _HEADING.search(body) if suffix not in (_PDF, ".txt") else None
    headline = _strip_closing(heading["title"]) if heading else None
    title = labels.title or headline or path.stem
    if heading and headline == title and not body[: heading.start()].strip():
        body = body[heading.end() :]
    body = body.strip()
    if not body:
        remedy = "Run text recognition (OCR) on it" if suffix == _PDF else "Write some, or remove it"
        raise UsageError(f"{path}: the document holds no text. {remedy}.")
    return Document(
        name=name,
        title=title,
        source=labels.source or defaults.source or path.name,
        topic=labels.topic or defaults.topic,
        sector=labels.sector or defaults.sector,
        text=body,
    )


def _strip_closing(title: str) -> str:
    """Remove the `#` that may close a heading.

    A pattern that matched them would take time with the cube of the spaces in a line.
    """
    return title.rstrip(" \t").rstrip("#").rstrip(" \t") or "#"


def _split_front_matter(path: Path, text: str) -> tuple[DocumentLabels, str]:
    """Return labels and body. Front matter is the text between a first line `---` and the next such line."""
    lines = text.split("\n")
    if lines[0].rstrip() != _FENCE:
        return DocumentLabels(), text
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == _FENCE:
            matter = YamlText(path, "\n".join(lines[1:number]), first_line=2, schema=SCHEMA)
            return matter.check(DocumentLabels), "\n".join(lines[number + 1 :])
    raise UsageError(
        f"{path}, line 1: the front matter that begins here has no end. Close it with a line `---`, "
        "or put an empty line before it."
    )
