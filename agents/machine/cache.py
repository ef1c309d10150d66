"""The cache folder: where downloads and built folders are kept, and a lock for each build."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hallulab.agents.machine.progress_events import Listener, StepProgress
from hallulab.scenarios.errors import OperationalError
from hallulab.scenarios.files.paths import expand_home

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
            f"cannot write {error.filename or folder}: {error.strerror or error}. Make room, or set "
            f"{CACHE_VARIABLE} to a folder with room, and start again."
        ) from error
