"""Files and folders that are written whole or not at all: beside their place, and renamed at the end."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.json_text import replace_surrogates
from hallulab.scenarios.files.opening import NoFileError, open_stream, read_file


def tell_reason(error: OSError) -> str:
    """Return why the system refused something; libraries put words of their own around it."""
    if isinstance(error, NoFileError):
        return str(error.strerror)
    number = error.errno or next(map(int, re.findall(r"\[Errno ([0-9]+)\]", str(error))), 0)
    return os.strerror(number) if number else str(error)


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
    beside: Path | None = None
    try:
        beside = make_folder_beside(target)
        yield beside
        beside.replace(target)
    except OSError as error:
        raise OperationalError(f"cannot write {path}: {tell_reason(error)}.") from error
    except OperationalError as error:
        raise OperationalError(str(error).replace(str(beside), str(path))) from error
    finally:
        if beside is not None:
            shutil.rmtree(beside, ignore_errors=True)


def make_folder_beside(target: Path) -> Path:
    """Make an empty folder beside `target`; what killed processes left of such folders is removed.

    Raises:
        OSError: it cannot be made.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(target)
    beside = _name_beside(target)
    beside.mkdir()
    return beside


@contextmanager
def write_whole_file(path: Path) -> Iterator[Path]:
    """Yield the path of a new file that takes the place of `path` at the end, likewise.

    A link stays a link. Something other than a file (a pipe, a device) is written into.

    Raises:
        OperationalError: it cannot be written; the old file is intact.
    """
    target = Path(os.path.realpath(path))
    beside = _name_beside(target)
    try:
        if target.exists() and not target.is_file():
            with open_stream(target):  # held open, so that a reader sees no end before there is one
                yield target
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(target)
        yield beside
        beside.replace(target)
    except OSError as error:
        raise OperationalError(f"cannot write {path}: {tell_reason(error)}.") from error
    finally:
        # What stands in the way of its folder was said already.
        with suppress(OSError):
            beside.unlink()


def write_atomically(path: Path, text: str) -> None:
    """Write beside `path` and rename, so that a reader sees the old file or the new one.

    A link stays a link, and its target is written. Something other than a file (a pipe, a device) is written
    into.

    Raises:
        OperationalError: it cannot be written; the old file is intact.
    """
    write_together({path: text})


def write_together(texts: Mapping[Path, str]) -> None:
    """Write several files as `write_atomically` does; none is replaced before all are written.

    A file that already holds its text is left alone, so it may lie where nothing can be written.

    Raises:
        OperationalError: one cannot be written; the old files are intact.
    """
    # Names of files may be no UTF-8.
    files = [(path, replace_surrogates(text).encode()) for path, text in texts.items()]
    beside: dict[Path, Path] = {}
    path = files[0][0]
    try:
        for path, data in files:
            if path.is_file() and read_file(path) == data:
                continue
            if path.is_file() or not path.exists():
                target = Path(os.path.realpath(path))
                target.parent.mkdir(parents=True, exist_ok=True)
                _remove_leftovers(target)
                # Named before it is there, so that an unfinished one is removed, too.
                beside[target] = _name_beside(target)
                _write_new(beside[target], data)
            elif path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            else:
                with open_stream(path) as stream:
                    stream.write(data)
        for path, made in beside.items():
            made.replace(path)
    except OSError as error:
        raise OperationalError(f"cannot write {path}: {tell_reason(error)}.") from error
    finally:
        for made in beside.values():
            with suppress(OSError):
                made.unlink(missing_ok=True)


def _write_new(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines as `write_atomically` does, one after the other, so that they need not be in memory.

    Raises:
        OperationalError: they cannot be written; the old file is intact, as with any error of `lines`.
    """
    with write_whole_file(path) as beside, beside.open("wb") as file:
        file.writelines(f"{replace_surrogates(line)}\n".encode() for line in lines)


_NAME_BESIDE = re.compile(r"\.(?P<of>.+)\.(?P<process>[0-9]{1,9})\.part", re.DOTALL)
"""Name of an unfinished file beside its place: its target, and the number of the process that writes it."""


def _name_beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}.part")


def _remove_leftovers(target: Path) -> None:
    """Remove leftovers of killed processes beside `target`, perhaps links to elsewhere.

    Numbers of processes come again, soon where few run, so this one's may be among them. Files that cannot be
    removed, such as another user's, stay.
    """
    with suppress(OSError):
        for name in os.listdir(target.parent):
            found = _NAME_BESIDE.fullmatch(name)
            if found is None or found["of"] != target.name or _is_others(int(found["process"])):
                continue
            left = target.with_name(name)
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left, ignore_errors=True)
            else:
                with suppress(OSError):
                    left.unlink()


def _is_others(process: int) -> bool:
    """Return whether a process runs that is not this one."""
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it is another user's
    return True
