"""Read a pack from its own folder only. The pack may be a stranger's, and its content gets into prompts."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from hallulab.scenarios.errors import UsageError


class Boundary:
    """A folder to read from. Nothing outside of it is read, also not through links.

    Args:
        folder: the folder; None: there is no boundary.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder and Path(os.path.realpath(folder))

    def require_inside(self, path: Path) -> None:
        """Raise UsageError if a path, with all links resolved, is outside."""
        if self._folder is None:
            return
        end = Path(os.path.realpath(path))
        if not end.is_relative_to(self._folder):
            raise UsageError(
                f"{path}: leads to {end}, outside of the pack's folder {self._folder}. Copy what the "
                "pack needs into that folder; nothing else is read."
            )

    def require_file(self, path: Path) -> None:
        """Raise UsageError if a path is outside or no regular file."""
        self.require_inside(path)
        try:
            mode = path.stat().st_mode
        except OSError as error:
            raise UsageError(f"{path}: cannot be read ({error.strerror}). Correct or remove it.") from error
        if not stat.S_ISREG(mode):
            raise UsageError(f"{path}: is {_name_kind(mode)}, no file. Put a file there, or remove it.")


ANYWHERE = Boundary(None)
"""For packs that come with hallulab: package managers may install them as links."""


def list_entries(folder: Path) -> list[Path]:
    """Return the entries of a folder, sorted by name.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise UsageError(f"{folder}: cannot be read ({error.strerror}). Correct or remove it.") from error


def _name_kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"
