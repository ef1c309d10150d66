"""Open files to read and to add to, and nothing that only has a file's name.

A pipe, a socket or a device in a file's place, which a stranger's folder may hold, would keep a reader
waiting for ever. So whatever reads a file opens it here, without waiting, and looks at what was opened:
between a look at the name and the opening, something else may have taken the place.
"""

from __future__ import annotations

import errno
import os
import select
import shutil
import stat
from pathlib import Path
from typing import BinaryIO

PIPE_S = 5.0
"""Seconds in which a program must begin to write to a pipe that a person named."""


class NoFileError(OSError):
    """It is something else than a file, or nobody is at the other end; `strerror` says what, in our words."""


def open_file(path: Path) -> BinaryIO:
    """Open a regular file to read its bytes. It never waits.

    Raises:
        OSError: it cannot be opened, or is a folder, a pipe, a socket or a device; `strerror` says which.
    """
    return open(open_descriptor(path, os.O_RDONLY), "rb")


def read_file(path: Path) -> bytes:
    """Return the content of a regular file.

    Raises:
        OSError: as `open_file`.
    """
    with open_file(path) as file:
        return file.read()


def copy_file(source: str | Path, target: str | Path) -> None:
    """Copy a regular file's content.

    Raises:
        OSError: as `open_file`, or the copy cannot be written.
    """
    with open_file(Path(source)) as file, Path(target).open("xb") as copy:
        shutil.copyfileobj(file, copy)


def open_descriptor(path: Path, flags: int, *, devices: bool = False) -> int:
    """Open a regular file without waiting, and return its descriptor.

    Args:
        path: the file; with `os.O_CREAT` it need not be there.
        flags: those of `os.open`, without those that keep from waiting.
        devices: whether it may be a device, such as /dev/null.

    Raises:
        OSError: as `open_file`.
    """
    # Looked at first, too: opening alone makes some devices act, and wakes whoever writes to a pipe.
    if not flags & os.O_CREAT or path.exists():
        _require_regular(path.stat().st_mode, path, devices)
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY, 0o644)
    try:
        _require_regular(os.fstat(descriptor).st_mode, path, devices)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def open_given(path: Path) -> BinaryIO:
    """Open what a person names on the command line to read: a file, a pipe (`<(…)`) or a device (/dev/stdin).

    Raises:
        OSError: it cannot be opened, is a folder or a socket, or nobody writes to the pipe within `PIPE_S`.
    """
    mode = path.stat().st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
        return open_file(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            _wait_for_writer(descriptor, path)
        os.set_blocking(descriptor, True)
    except BaseException:
        os.close(descriptor)
        raise
    return open(descriptor, "rb")


def open_stream(path: Path) -> BinaryIO:
    """Open a pipe or a device that a person named for a result, such as /dev/stdout, to write into it.

    Raises:
        OSError: it cannot be opened, is a folder, or nobody reads from the pipe.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        if error.errno == errno.ENXIO and path.is_fifo():
            raise NoFileError(errno.EPIPE, "no program reads from this pipe", str(path)) from error
        raise
    os.set_blocking(descriptor, True)
    return open(descriptor, "wb")


def name_kind(mode: int) -> str:
    """Return how people call something of this mode that is no regular file."""
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def _require_regular(mode: int, path: Path, devices: bool) -> None:
    if stat.S_ISREG(mode) or (devices and stat.S_ISCHR(mode)):
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise NoFileError(errno.EINVAL, f"it is {name_kind(mode)}, no file", str(path))


def _wait_for_writer(descriptor: int, path: Path) -> None:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    if poll.poll(PIPE_S * 1000):
        return
    try:
        os.read(descriptor, 0)
        nobody = os.read(descriptor, 1) == b""
    except BlockingIOError:
        return  # somebody has opened it, and may take time
    if nobody:
        raise NoFileError(errno.EPIPE, "no program writes to this pipe", str(path))
