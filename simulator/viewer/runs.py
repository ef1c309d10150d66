"""The run folders that a viewer shows. Requests name them by identifiers that are looked up."""

from __future__ import annotations

import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.run_files import list_shards
from hallulab.simulator.report.late_evidence import find_late_evidence, lacks_some
from hallulab.simulator.viewer.index import RunIndex
from hallulab.simulator.viewer.index_updater import IndexUpdater


@dataclass(frozen=True)
class ShownRun:
    """A run folder that is shown."""

    id: str
    """Its identifier in addresses."""
    folder: RunFolder
    index: RunIndex
    updater: IndexUpdater

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.path.resolve().name

    def address_chat(self, chat: str) -> str:
        """Return the address of a conversation's page."""
        return f"/runs/{self.id}/conversations/{quote(chat, safe='')}"

    @property
    def changed(self) -> datetime:
        """When its journal of conversations or verdicts last grew; before there is one, when it was made."""
        changed = max(changed for _, changed in look_at_files(self.folder))
        if not changed:
            with suppress(OSError):  # it was deleted a moment ago
                changed = self.folder.path.stat().st_mtime_ns
        return datetime.fromtimestamp(changed / 1e9, UTC)


class ShownRuns:
    """Finds the runs: the folders that were given, and those in them.

    Args:
        paths: run folders, or folders that hold run folders.
        base: folder for their indices; None: one in the cache folder.

    Raises:
        UsageError: a path is no folder.
    """

    def __init__(self, paths: Sequence[Path], base: Path | None = None) -> None:
        for path in paths:
            if not path.is_dir():
                raise UsageError(
                    f"{path}: there is no such folder. Give run folders, or a folder that holds them."
                )
        self._paths = paths
        self._base = base
        self._found: dict[str, ShownRun] = {}
        self._added: dict[Path, None] = {}

    def add(self, folder: Path) -> ShownRun:
        """Show a run folder although it has no journal yet, and return the run."""
        self._added[folder] = None
        return next(run for run in self.list() if run.folder.path == folder)

    def list(self) -> list[ShownRun]:
        """Return the runs that there are now, the one that changed last first."""
        added = [folder for folder in self._added if folder.is_dir()]
        folders = [*(folder for path in self._paths for folder in _find_folders(path)), *added]
        for folder in dict.fromkeys(folders):
            id = _identify(folder)
            if id not in self._found:
                run = RunFolder(folder)
                index = RunIndex(run, self._base)
                self._found[id] = ShownRun(id, run, index, IndexUpdater(index))
        there = [self._found[_identify(folder)] for folder in dict.fromkeys(folders)]
        return sorted(there, key=lambda run: (run.changed, run.id), reverse=True)

    def get(self, id: str) -> ShownRun | None:
        """Return the run of that identifier; None: there is none any more."""
        known = self._found.get(id)
        if known is not None and is_run(known.folder.path):
            return known
        return next((run for run in self.list() if run.id == id), None)


def read_with_evidence(run: ShownRun, id: str) -> tuple[Conversation, list[Verdict]] | None:
    """Read a conversation with its evidence, and the verdicts on it; None: the index has none such.

    Raises:
        UsageError: the folder is damaged.
        OperationalError: the index or a journal cannot be read or written.
    """
    found = run.index.read_chat(id)
    if found is None or not lacks_some(found[0]):
        return found
    find_late_evidence(run.folder)
    while run.index.grow():
        pass
    return run.index.read_chat(id)


def look_at_files(folder: RunFolder) -> tuple[tuple[int, int], ...]:
    """Return size and time of change, in ns, of each file that decides a run's numbers; without it -1, 0."""
    journals = [
        path
        for journal in (folder.conversations, folder.verdicts)
        for path in (journal, *list_shards(journal))  # a folder with both is damaged, and may be put right
    ]
    return tuple(_look_at_file(file) for file in (*journals, folder.experiment, folder.annotations))


def _look_at_file(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError:
        return -1, 0
    return (found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else (-1, 0)


def _find_folders(path: Path) -> list[Path]:
    if is_run(path):
        return [path]
    inside = sorted(child for child in path.iterdir() if child.is_dir() and not child.is_symlink())
    return [child for child in inside if is_run(child)]


def is_run(folder: Path) -> bool:
    """Return whether a folder is a run, also a damaged one, whose page says what is wrong.

    A folder that may not be opened is none: it makes no page of the others fail.
    """
    try:
        return RunFolder(folder).has_journal
    except UsageError:
        return True
    except OSError:
        return False


def _identify(folder: Path) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name)[:60].strip("-.") or "run"
    return f"{name}-{digest(str(folder.resolve()))[:8]}"
