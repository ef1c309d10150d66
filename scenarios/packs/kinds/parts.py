"""Parts of documents that are archives of XML, without entities and within bounds."""

from __future__ import annotations

import io
import posixpath
import zipfile
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def open_archive(content: bytes) -> zipfile.ZipFile:
    """Return the archive that a document is.

    Raises:
        ValueError: its parts are too large, or it is of the kind before archives.
    """
    if content.startswith(OLD_OFFICE):
        raise ValueError("it has a password, or is of an old format: save it again without, in the new one")
    check_unpacked_size(content)
    return zipfile.ZipFile(io.BytesIO(content))


def parse_xml(content: bytes) -> Element:
    """Return the root of XML.

    Raises:
        ValueError: it defines entities, which may be without bounds or name files.
    """
    from defusedxml.ElementTree import fromstring

    root: Element = fromstring(content)
    return root


def get_name(element: Element) -> str:
    """Return the name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def get_attribute(element: Element, name: str) -> str | None:
    """Return an attribute of an element by its name without namespace."""
    return next((value for key, value in element.items() if key.rpartition("}")[2] == name), None)


def find_all(element: Element, name: str) -> Iterator[Element]:
    """Yield the elements of a name, at every depth, in the order of the text."""
    return (one for one in element.iter() if get_name(one) == name)


def resolve(part: str, target: str) -> str:
    """Return the part that a part names by a target, which may be relative and quoted as in an address."""
    path = unquote(target.partition("#")[0])
    return posixpath.normpath(posixpath.join(posixpath.dirname(part), path)).lstrip("/")


_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"),
          (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip


def write_roman(number: int) -> str:
    """Return a number from 1 in small Roman letters."""
    written = ""
    for value, letters in _ROMAN:
        written += letters * (number // value)
        number %= value
    return written


LARGEST_UNPACKED = 200_000_000
"""Bytes of an archive's parts at most, unpacked."""


def check_unpacked_size(content: bytes) -> None:
    """Raise ValueError if the parts of an archive have too many bytes unpacked."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > LARGEST_UNPACKED:
        raise ValueError(f"it has {unpacked:,} bytes unpacked, more than {LARGEST_UNPACKED:,}")
