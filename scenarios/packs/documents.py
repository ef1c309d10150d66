"""Read knowledge documents from a pack's own folder only: Markdown, plain text, PDF, HTML and Word.

A document's content is only data: no path is built from it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

from pydantic import Field

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import read_bytes, read_text, replace_surrogates
from hallulab.scenarios.files.opening import name_kind
from hallulab.scenarios.files.yaml_text import YamlText
from hallulab.scenarios.packs.conversion import Conversion
from hallulab.scenarios.packs.kinds import KINDS as CONVERTED
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
            raise UsageError(f"{path}: is {name_kind(mode)}, no file. Put a file there, or remove it.")


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


SCHEMA = "docs/scenario-packs.md"
"""Describes the files of a pack."""

_TEXTS = (".md", ".txt")
_PDF = ".pdf"

SUFFIXES = (*_TEXTS, *CONVERTED)
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
    with Conversion() as conversion:
        for relative in sorted(paths):
            if replace_surrogates(relative) != relative:
                raise UsageError(f"{paths[relative]}: the name of the file is not UTF-8. Rename it.")
            name = relative.rpartition(".")[0]
            if name in documents:
                raise UsageError(
                    f"{paths[relative]}: another document is called {name} too. Rename one of the two files."
                )
            boundary.require_file(paths[relative])
            documents[name] = _read_document(paths[relative], name, defaults, conversion)
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


def _read_document(path: Path, name: str, defaults: DocumentDefaults, conversion: Conversion) -> Document:
    suffix = path.suffix.lower()
    if suffix in CONVERTED:
        labels, body = DocumentLabels(), conversion.read(path, read_bytes(path, LARGEST)).text
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
