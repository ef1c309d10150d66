"""A small scenario pack to start from."""

from __future__ import annotations

from pathlib import Path

from hallulab.scenarios.errors import OperationalError, UsageError

_TEMPLATE = Path(__file__).parent / "templates" / "skeleton"


def init_scenario(directory: Path) -> None:
    """Write a small working pack (comments on every key, two documents, two personas) into `directory`.

    Raises:
        UsageError: the folder is not empty.
        OperationalError: it cannot be written.
    """
    try:
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise UsageError(f"{directory}: this is no empty folder. Name a new one.")
        for source in sorted(path for path in _TEMPLATE.rglob("*") if path.is_file()):
            target = directory / source.relative_to(_TEMPLATE)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    except OSError as error:
        raise OperationalError(f"cannot write {error.filename or directory}: {error.strerror}.") from error
