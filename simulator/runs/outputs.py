"""Which files of a run are whole, and which outputs may be written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.simulator.runs.folder import refuse_overwriting

_RESULTS = (b'{\n  "rows": [', b"detector,level,", b"<!doctype html>")
"""First bytes of JSON, CSV and page of `bench`; people keep these files beside the data."""


def check_outputs(
    files: Mapping[str, Path | None],
    inputs: Iterable[Path | None] = (),
    folders: Mapping[str, Path | None] | None = None,
) -> None:
    """Refuse outputs that cannot be written, or that would overwrite an input or one another.

    Args:
        files: flag → its file; None: the flag was not given.
        inputs: files that are read, and folders with such files.
        folders: flag → its folder.

    Raises:
        UsageError: an output is refused; names its flag or its path.
    """
    read = [path for path in inputs if path is not None]
    taken: dict[str, str] = {}
    for flag, path in files.items():
        if path is None:
            continue
        if path.is_dir():
            raise UsageError(f"{flag} {path}: this is a folder. Name a file.")
        if path.is_file() or not path.exists():
            _require_place(flag, path, Path(os.path.realpath(path)).parents)
        refuse_overwriting(path, [path if _is_data_file(one, path) else one for one in read])
        other = taken.setdefault(os.path.realpath(path), flag)
        if other != flag:
            raise UsageError(f"{other} and {flag} name the same file, {path}. Give each its own.")
    for flag, folder in (folders or {}).items():
        if folder is not None:
            if folder.exists() and not folder.is_dir():
                raise UsageError(f"{flag} {folder}: this is a file. Name a folder.")
            resolved = Path(os.path.realpath(folder))
            _require_place(flag, folder, (resolved, *resolved.parents))


def _is_data_file(folder: Path, path: Path) -> bool:
    """Return whether a file lies in a folder of data, and is no earlier result of ours."""
    if not path.is_file() or Path(os.path.realpath(folder)) not in Path(os.path.realpath(path)).parents:
        return False
    with path.open("rb") as file:
        return not file.read(16).startswith(_RESULTS)


def _require_place(flag: str, path: Path, above: Iterable[Path]) -> None:
    """Raise UsageError where nothing can be written.

    Args:
        above: the folder to write into and its parents, the innermost first.
    """
    place = next(folder for folder in above if os.path.lexists(folder))
    if not place.is_dir():
        raise UsageError(f"{flag} {path}: {place} is no folder. Give another path.")
    if not os.access(place, os.W_OK):
        raise UsageError(f"{flag} {path}: nothing can be written to {place}. Give another path.")


@contextmanager
def write_whole_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder that takes the place of `path` at the end; after an error, nothing is left of it.

    Raises:
        UsageError: `path` is there and not empty.
        OperationalError: it cannot be written.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"{path} is there and not empty. Give another --out, or delete it.")
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        beside.mkdir(parents=True)
        yield beside
        beside.replace(target)
    except OSError as error:
        raise OperationalError(f"cannot write {path}: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def write_whole_file(path: Path) -> Iterator[Path]:
    """Yield the path of a new file that takes the place of `path` at the end, likewise.

    A link stays a link. Something other than a file (a pipe, a device) is written into.

    Raises:
        OperationalError: it cannot be written; the old file is intact.
    """
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        if target.exists() and not target.is_file():
            yield target
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        # A file of that name, perhaps a link to elsewhere, is left from a process that has ended.
        beside.unlink(missing_ok=True)
        yield beside
        beside.replace(target)
    except OSError as error:
        raise OperationalError(f"cannot write {path}: {error.strerror or error}.") from error
    finally:
        beside.unlink(missing_ok=True)
