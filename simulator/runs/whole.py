"""Files and folders that are written whole or not at all: beside their place, then put there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hallulab.scenarios.errors import OperationalError, UsageError


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
