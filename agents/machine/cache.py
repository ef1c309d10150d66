"""The cache folder: what is built there under a lock, with checksums that mark it as whole.

Folders whose files are checked against sha256 sums once, and again only when a file was touched.
Hashing a gigabyte takes seconds, which every start would cost. So a checked folder gets a small file
(`.ok`) with size, modification time and sha256 of each file. While size and time stay, the file is trusted.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hallulab.scenarios.errors import OperationalError
from hallulab.scenarios.files.atomic import tell_reason
from hallulab.scenarios.files.data_files import expand_home
from hallulab.scenarios.files.opening import open_file, read_file
from hallulab.scenarios.transcript import Frozen


class StepProgress(Frozen):
    """Progress of one named step."""

    step: str
    """The step under way, as the user reads it."""
    done: int
    total: int | None
    """Units in all; None: not known beforehand."""
    unit: str
    """`bytes`, `packages`, `seconds` …"""


Listener = Callable[[StepProgress], None]
"""Gets each progress report; called often, so it must be quick."""


def silent(progress: StepProgress) -> None:
    """Ignore a progress report."""


CACHE_VARIABLE = "HALLULAB_CACHE"
"""Environment variable that moves the cache folder."""


def locate_cache(environ: Mapping[str, str] = os.environ) -> Path:
    """Return `$HALLULAB_CACHE`, else `hallulab` in the user's cache folder. It need not exist yet."""
    import platformdirs

    chosen = environ.get(CACHE_VARIABLE)
    return expand_home(chosen).absolute() if chosen else platformdirs.user_cache_path("hallulab")


@contextmanager
def building(target: Path, on_progress: Listener) -> Iterator[None]:
    """Hold the lock of `target` while the block builds it; wait, and say so, if another process holds it.

    The system frees the lock when its holder dies, so a killed build blocks nobody.

    Raises:
        OperationalError: the cache cannot be written, or is full.
    """
    import filelock

    lock = filelock.FileLock(target.with_name(f".{target.name}.lock"))
    with disk_errors(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            on_progress(
                StepProgress(
                    step=f"waiting for another process that builds {target.name}",
                    done=0,
                    total=None,
                    unit="seconds",
                )
            )
            lock.acquire()
    try:
        with disk_errors(target.parent):
            yield
    finally:
        lock.release()


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield a fresh folder beside `target`, and rename it to `target` when the block succeeds.

    So `target` exists only when it is whole. Call it inside `building(target)`, because it first removes
    what a killed build left.
    """
    prefix = f".{target.name}.partial-"
    for stale in target.parent.glob(f"{prefix}*"):
        shutil.rmtree(stale, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        yield folder
        folder.chmod(0o755)
        if target.exists():
            shutil.rmtree(target)
        folder.rename(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn an OSError into an OperationalError that names the path."""
    try:
        yield
    except OSError as error:
        raise OperationalError(
            f"cannot write {error.filename or folder}: {tell_reason(error)}. Make room, or set "
            f"{CACHE_VARIABLE} to a folder with room, and start again."
        ) from error


CHECKSUM_FILE = ".ok"
"""Name of the file with a folder's checksums."""

_BLOCK = 1 << 20


def compute_sha256(path: Path) -> str:
    """Return the hexadecimal sha256 of a file, read in blocks."""
    digest = hashlib.sha256()
    with open_file(path) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def write_checksums(folder: Path, digests: Mapping[str, str]) -> None:
    """Write down that each file (relative name → sha256) has this content now."""
    entries = {name: _state(folder / name) | {"sha256": sha256} for name, sha256 in digests.items()}
    (folder / CHECKSUM_FILE).write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")


def is_whole(folder: Path, expected: Mapping[str, str] | None = None) -> bool:
    """Return whether every file is there with the right content.

    Args:
        expected: relative name → sha256; None: the folder's own checksums.

    Returns:
        False if the folder, a file, or (without `expected`) `CHECKSUM_FILE` is missing: build the folder.

    Raises:
        OperationalError: a file has other content; names the file, both sums and the remedy.
    """
    try:
        recorded = json.loads(read_file(folder / CHECKSUM_FILE).decode())
    except (OSError, ValueError):  # missing, or torn
        recorded = {}
    if not isinstance(recorded, dict):
        recorded = {}
    own = {name: str(entry["sha256"]) for name, entry in recorded.items()}
    wanted = own if expected is None else expected
    if not wanted or not all((folder / name).is_file() for name in wanted):
        return False
    touched = [
        name
        for name, sha256 in wanted.items()
        if recorded.get(name) != _state(folder / name) | {"sha256": sha256}
    ]
    remedy = f"Delete the folder {folder} and start again."
    for name in touched:
        require_sha256(folder / name, compute_sha256(folder / name), wanted[name], remedy)
    if touched:
        write_checksums(folder, wanted)
    return True


def require_sha256(path: Path, found: str, expected: str, remedy: str) -> None:
    """Raise OperationalError, naming the file and both sums, if they differ."""
    if found != expected:
        raise OperationalError(
            f"the content of {path} is corrupted: its sha256 is {found}, expected {expected}. {remedy}"
        )


def _state(path: Path) -> dict[str, int | str]:
    status = path.stat()
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns}
