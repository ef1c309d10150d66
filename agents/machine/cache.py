"""The folder where downloads and what is built from them are kept, and who may build there at a time."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agents.machine.progress_events import Listener, StepProgress
from scenarios.errors import OperationalError
from scenarios.files.paths import expanded

CACHE_VARIABLE = "HALLULAB_CACHE"
"""Environment variable that moves the cache folder."""


def cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """`$HALLULAB_CACHE`, else `hallulab` in the user's cache folder. It need not exist yet."""
    import platformdirs

    chosen = environ.get(CACHE_VARIABLE)
    return expanded(chosen).absolute() if chosen else platformdirs.user_cache_path("hallulab")


@contextmanager
def building(target: Path, on_progress: Listener) -> Iterator[None]:
    """Hold the cross-process right to build `target`; waits, and says so, while another process builds it.

    The system frees the right when its holder dies, so a killed build blocks nobody.

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
    """Give a fresh folder beside `target` to build in, and put it in its place when the block succeeds.

    The name appears only when the content is whole. Call it while `building(target)`: what a killed build
    left behind is removed first.
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
    """Turn what the file system refuses into an OperationalError that names where."""
    try:
        yield
    except OSError as error:
        raise OperationalError(
            f"cannot write {error.filename or folder}: {error.strerror or error}. Make room, or set "
            f"{CACHE_VARIABLE} to a folder with room, and start again."
        ) from error
