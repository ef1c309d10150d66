"""Twenty documents of all kinds, and what each should yield, written by hand before libraries were chosen.

`given/` has the documents; a folder there is the content of an archive (XLSX, PPTX, EPUB, ODT, DOCX).
`expected/NAME.md` has the title of each as its first heading, and its text.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

_FOLDER = Path(__file__).parent

NAMES = tuple(sorted(path.name for path in (_FOLDER / "given").iterdir()))
"""The file names of the documents."""


def build_document(name: str) -> bytes:
    """Return the bytes of a document."""
    given = _FOLDER / "given" / name
    return given.read_bytes() if given.is_file() else pack(given)


def pack(folder: Path) -> bytes:
    """Return a ZIP archive of the files of a folder; EPUB and ODT want `mimetype` first, as it is."""
    written = io.BytesIO()
    paths = [path for path in folder.rglob("*") if path.is_file()]
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(paths, key=lambda path: (path.name != "mimetype", path)):
            how = zipfile.ZIP_STORED if path.name == "mimetype" else zipfile.ZIP_DEFLATED
            archive.write(path, path.relative_to(folder).as_posix(), how)
    return written.getvalue()


def replace_in(name: str, part: str, *texts: tuple[str, str]) -> bytes:
    """Return the bytes of an archive, with texts of one of its parts replaced by others."""
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(build_document(name))) as given, zipfile.ZipFile(written, "w") as archive:
        for one in given.namelist():
            content = given.read(one)
            for old, new in texts if one == part else ():
                assert old.encode() in content
                content = content.replace(old.encode(), new.encode(), 1)
            archive.writestr(one, content, zipfile.ZIP_DEFLATED)
    return written.getvalue()


def add_part(name: str, part: str, content: str) -> bytes:
    """Return the bytes of an archive, with another part."""
    written = io.BytesIO(build_document(name))
    with zipfile.ZipFile(written, "a") as archive:
        archive.writestr(part, content)
    return written.getvalue()


def read_expected(name: str) -> tuple[str, str]:
    """Return the title and the text that a document should yield."""
    title, _, text = (_FOLDER / "expected" / f"{name}.md").read_text("utf-8").partition("\n")
    return title.removeprefix("# "), text
