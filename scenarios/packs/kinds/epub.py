"""Text of books (EPUB)."""

from __future__ import annotations

from hallulab.scenarios.packs.kinds import Extracted, html
from hallulab.scenarios.packs.kinds.parts import find_all, get_attribute, open_archive, parse_xml, resolve

_PAGES = ("application/xhtml+xml", "text/html")


def read(content: bytes) -> Extracted:
    """Return the chapters in their reading order, without the table of contents.

    Raises:
        ValueError: it is no book, its chapters are encrypted, or its parts are too large.
    """
    archive = open_archive(content)
    names = set(archive.namelist())
    root = next(find_all(parse_xml(archive.read("META-INF/container.xml")), "rootfile"), None)
    package = root is not None and root.get("full-path")
    if not package:
        raise ValueError("its container names no package")
    book = parse_xml(archive.read(package))
    items = {item.get("id"): item for item in find_all(book, "item")}
    encrypted: set[str | None] = set()
    if "META-INF/encryption.xml" in names:
        keys = parse_xml(archive.read("META-INF/encryption.xml"))
        encrypted = {get_attribute(one, "URI") for one in find_all(keys, "CipherReference")}
    texts: list[str] = []
    notes: list[str] = []
    for reference in find_all(book, "itemref"):
        item = items.get(reference.get("idref"))
        if item is None or "nav" in item.get("properties", "").split():
            continue
        part = resolve(package, item.get("href", ""))
        if part in encrypted:
            raise ValueError("its chapters are encrypted")
        if part not in names or item.get("media-type") not in _PAGES:
            notes.append(f"{part} was not read: it is missing, or no page")
            continue
        found = html.read(archive.read(part))
        texts.append(found.text.strip())
        notes += [f"{part}: {note}" for note in found.notes]
    title = next(find_all(book, "title"), None)
    return Extracted("\n\n".join(texts), (title.text if title is not None else None) or None, tuple(notes))
