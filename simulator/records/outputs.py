"""Where outputs may be written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import count
from pathlib import Path

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.opening import open_file

RUNS = Path("runs")
"""Where runs are by default."""

_RESULTS = (b'{\n  "rows": [', b"detector,level,", b"<!doctype html>")
"""First bytes of JSON, CSV and page of `bench`; people keep these files beside the data."""


def name_folder_by_time() -> Path:
    """Return the folder for a run without `--out`: `runs/` and the time."""
    return RUNS / datetime.now().strftime("%Y-%m-%dT%H-%M-%S")


def name_folder_after(file: Path) -> Path:
    """Return a new folder for the chats of a file: `runs/`, the file's name and the time."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", file.name.partition(".")[0]).strip("-") or "chats"
    name = f"{stem}-{name_folder_by_time().name}"
    return next(path for path in _list_paths(RUNS, name) if not path.exists())


def _list_paths(parent: Path, name: str) -> Iterator[Path]:
    """Yield the paths for a folder of that name, with a number from 2 where those before are there."""
    yield parent / name
    yield from (parent / f"{name}-{number}" for number in count(2))


def make_folder_by_time(parent: Path) -> Path:
    """Make a folder in another one, named by the time, and return its path.

    Raises:
        OperationalError: it cannot be made.
    """
    for path in _list_paths(parent, name_folder_by_time().name):
        try:
            path.mkdir()
            break
        except FileExistsError:  # another one began in this second
            continue
        except OSError as error:
            raise OperationalError(f"cannot write {parent}: {error.strerror}.") from error
    return path


def refuse_overwriting(output: Path, inputs: Iterable[Path]) -> None:
    """Raise UsageError if `output` is one of the input files, by whatever name."""
    for path in inputs:
        if os.path.realpath(output) == os.path.realpath(path):
            raise UsageError(f"cannot write {output}: a file of the input would be lost. Give another file.")


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
    with open_file(path) as file:
        return not file.read(16).startswith(_RESULTS)


def _require_place(flag: str, path: Path, above: Iterable[Path]) -> None:
    """Raise UsageError unless `above`, a folder and its parents, the innermost first, can be written to."""
    place = next(folder for folder in above if os.path.lexists(folder))
    if not place.is_dir():
        raise UsageError(f"{flag} {path}: {place} is no folder. Give another path.")
    if not os.access(place, os.W_OK):
        raise UsageError(f"{flag} {path}: nothing can be written to {place}. Give another path.")
