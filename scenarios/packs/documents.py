"""Read a folder of documents: each file as its kind is read, under a name of its own, no text twice.

A document's content is only data: no path is built from it.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.extras import MissingExtra
from hallulab.scenarios.files.data_files import read_bytes
from hallulab.scenarios.files.json_text import replace_surrogates
from hallulab.scenarios.files.opening import copy_file, name_kind
from hallulab.scenarios.packs.conversion import Conversion
from hallulab.scenarios.packs.kinds import KINDS as CONVERTED
from hallulab.scenarios.packs.kinds import Extracted
from hallulab.scenarios.packs.kinds.spaced_letters import join_spaced_letters
from hallulab.scenarios.packs.labels import DocumentDefaults, DocumentLabels, split_front_matter
from hallulab.scenarios.packs.markdown import clean_markdown, convert_tables, find_heading
from hallulab.scenarios.packs.pack import Document
from hallulab.scenarios.text.one_form import join_broken_words


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


_MARKDOWN = (".md", ".markdown", ".mdx")
_TEXTS = (*_MARKDOWN, ".txt")
_PDF = ".pdf"
_WITHOUT_TITLE = (_PDF, ".txt", ".xlsx", ".xlsm")
"""Suffixes of files whose first heading, if they have one, is not the title of the whole."""

SUFFIXES = (*_TEXTS, *(suffix for suffix in CONVERTED if suffix not in _TEXTS))

_NEWER = {".doc": ".docx", ".xls": ".xlsx", ".ppt": ".pptx", ".ods": ".xlsx", ".odp": ".pptx"}
"""Suffixes of files that office programs save in a kind that is read → its suffix."""

KINDS = ", ".join(SUFFIXES[:-1]) + f" and {SUFFIXES[-1]}"

LARGEST = 50_000_000

_OF_SYSTEMS = re.compile(r"\.|~\$|__MACOSX$|(?:desktop\.ini|e?h?thumbs\.db|icon\r)$", re.IGNORECASE)
"""Names of hidden files, of locks of open documents, and of files that systems put into each folder."""

_LIGATURES = {sign: unicodedata.normalize("NFKC", sign) for sign in "ﬀﬁﬂﬃﬄﬅﬆ"}
_ONE_TEXT = str.maketrans({**_LIGATURES, "\N{SOFT HYPHEN}": "", "\N{ZERO WIDTH NO-BREAK SPACE}": ""})
"""Signs that only say how letters are set."""

_log = logging.getLogger(__name__)


class Folder(NamedTuple):
    """Content of a folder of documents."""

    files: Mapping[Path, Document]
    """The documents by their files, in the order of their paths."""
    notes: tuple[str, ...]
    """Omissions and doubts, with the file."""

    @property
    def documents(self) -> tuple[Document, ...]:
        """The documents."""
        return tuple(self.files.values())


class _Read(NamedTuple):
    """A document that was read; its name is not decided yet."""

    document: Document
    """With its path in the folder as its name."""
    own_title: str | None
    """Its title; None: it has none but the file's name."""
    notes: tuple[str, ...]

    def identify(self) -> tuple[object, ...]:
        """Return what is equal in copies."""
        document = self.document
        return self.own_title, document.topic, document.sector, " ".join(document.text.split())


def read_documents(
    folder: Path, defaults: DocumentDefaults, boundary: Boundary, *, strict: bool = False
) -> tuple[Document, ...]:
    """Return the documents of a folder, and warn of what `read_folder` notes. See there."""
    found = read_folder(folder, defaults, boundary, strict=strict)
    for note in found.notes:
        _log.warning("%s", note)
    return found.documents


def read_folder(
    folder: Path, defaults: DocumentDefaults, boundary: Boundary, *, strict: bool = False
) -> Folder:
    """Read all documents of a folder and its subfolders, by path.

    A document's name is its path in `folder`, without suffix where no other document has that name. Hidden
    files and those of systems are skipped. Of documents that say the same, that with the shortest path is
    read.

    Args:
        boundary: the folder and its files must be inside.
        strict: whether a file that cannot be used is an error. Else it is left out, with a note.

    Raises:
        UsageError: no document can be read; `strict`, and one cannot.
        MissingExtra: a document needs the extra `documents`.
    """
    boundary.require_inside(folder)
    notes: list[str] = []
    read: dict[Path, _Read] = {}
    with Conversion() as conversion:
        for path, refused in _list_files(folder):
            try:
                if refused is not None:
                    raise refused
                boundary.require_file(path)
                read[path] = _read_document(path, path.relative_to(folder).as_posix(), defaults, conversion)
            except MissingExtra:
                raise  # no fault of the document, and others of its kind would follow
            except UsageError as error:
                if strict:
                    raise
                notes.append(f"left out: {error}")
    if not read:
        if notes:
            raise UsageError(f"{folder}: no document in it can be read. The first: {notes[0]}")
        raise UsageError(f"{folder}: no documents in it. Put {KINDS} files there.")
    notes += [f"{path}: {note}" for path, one in read.items() for note in one.notes]
    notes += _drop_copies(read)
    files, renamed = _name_documents(read)
    return Folder(files, (*notes, *renamed))


def copy_documents(files: Iterable[Path], folder: Path, target: Path) -> None:
    """Copy files of a folder to the same places in another.

    Raises:
        OSError: one cannot be read or written.
    """
    for path in files:
        copy = target / path.relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy_file(path, copy)


def _list_files(folder: Path) -> Iterator[tuple[Path, UsageError | None]]:
    """Yield the files of a folder and its subfolders by path, each with the reason not to read it."""
    found: dict[Path, UsageError | None] = {}
    waiting = [folder]
    while waiting:
        for path in list_entries(waiting.pop()):
            if _OF_SYSTEMS.match(path.name):
                continue
            if path.is_dir() and not path.is_symlink():
                waiting.append(path)
            else:
                found[path] = _find_reason(path, path.relative_to(folder).as_posix())
    return iter(sorted(found.items(), key=lambda item: item[0].relative_to(folder).as_posix()))


def _find_reason(path: Path, relative: str) -> UsageError | None:
    """Return why an entry of a folder is not read, by its name and kind alone."""
    if path.is_dir():
        return UsageError(f"{path}: links to folders are not followed. Put the folder itself there.")
    if newer := _NEWER.get(path.suffix.lower()):
        return UsageError(f"{path}: {path.suffix} files are not read. Save it as {newer}, or move it away.")
    if path.suffix.lower() not in SUFFIXES:
        return UsageError(f"{path}: only {KINDS} documents are read. Convert the file or move it away.")
    if replace_surrogates(relative) != relative:
        return UsageError(f"{path}: the name of the file is not UTF-8. Rename it.")
    return None


def _drop_copies(read: dict[Path, _Read]) -> list[str]:
    """Remove documents that say the same as another; return a note for each that is kept."""
    groups: dict[tuple[object, ...], list[Path]] = {}
    for path, one in read.items():
        groups.setdefault(one.identify(), []).append(path)
    notes = []
    for paths in groups.values():
        kept = min(paths, key=lambda path: (len(str(path)), str(path)))
        copies = [path for path in paths if path != kept]
        for path in copies:
            del read[path]
        if copies:
            names = ", ".join(path.name for path in copies)
            notes.append(f"left out: copies of {kept}, which say the same: {names}")
    return notes


def _name_documents(read: Mapping[Path, _Read]) -> tuple[dict[Path, Document], list[str]]:
    """Return the documents under different names, and a note for each that would have the name of another."""
    files: dict[Path, Document] = {}
    notes: list[str] = []
    known: set[str] = set()
    for path, one in read.items():
        full = one.document.name
        name = short = full.rpartition(".")[0]
        number = 1
        while name in known:
            name = full if number == 1 else f"{full} ({number})"
            number += 1
        known.add(name)
        if name != short:
            notes.append(f"{path}: is called {name} here: another document is called {short}")
        files[path] = one.document.model_copy(update={"name": name})
    return files, notes


def _read_document(path: Path, relative: str, defaults: DocumentDefaults, conversion: Conversion) -> _Read:
    suffix = path.suffix.lower()
    labels, found = _extract(path, suffix, conversion)
    body = _write_as_one_text(found.text)
    heading = None if suffix in _WITHOUT_TITLE else find_heading(body)
    own_title = labels.title or (found.title and _write_as_one_text(found.title)) or (heading and heading[2])
    title = own_title or path.stem
    if heading and heading[2] == title and not body[: heading[0]].strip():
        body = body[heading[1] :]
    body = body.strip()
    if not body:
        remedy = "Run text recognition (OCR) on it" if suffix == _PDF else "Write some, or remove it"
        raise UsageError(f"{path}: the document holds no text. {remedy}.")
    document = Document(
        name=unicodedata.normalize("NFC", relative),
        title=title,
        source=labels.source or defaults.source or path.name,
        topic=labels.topic or defaults.topic,
        sector=labels.sector or defaults.sector,
        text=body,
    )
    return _Read(document, own_title, found.notes)


def _extract(path: Path, suffix: str, conversion: Conversion) -> tuple[DocumentLabels, Extracted]:
    """Return the labels of a document, and what it says beside them."""
    content = read_bytes(path, LARGEST)
    if suffix not in _TEXTS:
        return DocumentLabels(), conversion.read(path, content)
    try:
        if b"\x1b$" in content:  # Japanese in ISO-2022, whose bytes are valid UTF-8
            found = conversion.read(path, content)
        else:
            found = Extracted(content.decode("utf-8-sig").replace("\x00", ""))
    except UnicodeDecodeError:
        found = conversion.read(path, content)
    text = found.text.replace("\r\n", "\n").replace("\r", "\n")
    labels, body, notes = split_front_matter(path, text)
    if suffix in _MARKDOWN:
        body = clean_markdown(body, mdx=suffix == ".mdx")
        body = convert_tables(body, lambda table: _read_html(table, path, conversion))
    return labels, Extracted(body, None, (*found.notes, *notes))


def _read_html(written: str, path: Path, conversion: Conversion) -> str:
    """Return a part of a document that is HTML as Markdown, or as it is where it cannot be read."""
    try:
        return conversion.read(path.with_suffix(".html"), written.encode()).text
    except (MissingExtra, UsageError):
        return written


def _write_as_one_text(text: str) -> str:
    """Return a text with one spelling for what is one text: no ligatures, soft hyphens, broken words."""
    text = join_spaced_letters(join_broken_words(text))
    return text if text.isascii() else unicodedata.normalize("NFC", text.translate(_ONE_TEXT))
