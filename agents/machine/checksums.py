"""Folders whose files are checked against sha256 sums once, and again only when a file was touched.

Hashing a gigabyte takes seconds, which every start would cost. So a checked folder gets a small file
(`.ok`) with size, modification time and sha256 of each file. While size and time stay, the file is trusted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from scenarios.errors import OperationalError

SEAL = ".ok"
"""Name of the file that seals a folder."""

_BLOCK = 1 << 20


def sha256_of(path: Path) -> str:
    """Return the hexadecimal sha256 of a file, read in blocks."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def write_seal(folder: Path, digests: Mapping[str, str]) -> None:
    """Write down that each file (relative name → sha256) has this content now."""
    entries = {name: _state(folder / name) | {"sha256": sha256} for name, sha256 in digests.items()}
    (folder / SEAL).write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")


def is_whole(folder: Path, expected: Mapping[str, str] | None = None) -> bool:
    """Return whether every file is there with the right content.

    Args:
        folder: the folder to look at.
        expected: relative name → sha256; None: what the folder's own seal says.

    Returns:
        False when the folder, a file, or (without `expected`) the seal is missing: it must be built.

    Raises:
        OperationalError: a file has other content; names the file, both sums and the remedy.
    """
    seal = _read_seal(folder)
    sealed = {name: str(entry["sha256"]) for name, entry in seal.items()}
    wanted = sealed if expected is None else expected
    if not wanted or not all((folder / name).is_file() for name in wanted):
        return False
    touched = [name for name, sha256 in wanted.items() if not _vouched(folder / name, seal.get(name), sha256)]
    remedy = f"Delete the folder {folder} and start again."
    for name in touched:
        require_sha256(folder / name, sha256_of(folder / name), wanted[name], remedy)
    if touched:
        write_seal(folder, wanted)
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


def _vouched(path: Path, entry: Mapping[str, int | str] | None, sha256: str) -> bool:
    return entry == _state(path) | {"sha256": sha256}


def _read_seal(folder: Path) -> dict[str, dict[str, int | str]]:
    """Return the recorded checksums by file; empty if the file is missing or torn."""
    try:
        seal = json.loads((folder / SEAL).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return seal if isinstance(seal, dict) else {}
