"""Paths that users give."""

from __future__ import annotations

from pathlib import Path

from scenarios.errors import UsageError


def expanded(path: str | Path) -> Path:
    """The path with the home folder in place of a `~` or `~user` at its beginning.

    Raises:
        UsageError: there is no such user.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise UsageError(f"{path}: there is no user with such a home folder. Correct the path.") from error
