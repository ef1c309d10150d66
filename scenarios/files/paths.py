"""Paths from users."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hallulab.scenarios.errors import UsageError


def expand_home(path: str | Path) -> Path:
    """Replace `~` or `~user` at the beginning of a path by the home folder.

    Raises:
        UsageError: there is no such user.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise UsageError(f"{path}: there is no user with such a home folder. Correct the path.") from error


def is_there(path: Path) -> bool:
    """Return whether a path exists.

    Raises:
        UsageError: the path is too long, or a folder in it cannot be read.
    """
    with _translate_errors(path):
        return path.exists()


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder.

    Raises:
        UsageError: the path is too long, or a folder in it cannot be read.
    """
    with _translate_errors(path):
        return path.is_dir()


def is_file(path: Path) -> bool:
    """Return whether a path is a file.

    Raises:
        UsageError: the path is too long, or a folder in it cannot be read.
    """
    with _translate_errors(path):
        return path.is_file()


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}). Correct the path.") from error
