"""The page of the docs with the table, and beside it a digest of all that decides the table.

Measuring takes a minute, and comparing digests a second: a daily test does the latter, a slow one the
former.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from benchmarks.detectors_table.measuring import TableArguments, made_by
from hallulab.agents.versions import digest_code
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.digest import digest
from hallulab.simulator.runs.folder import write_together

ROOT = Path(__file__).resolve().parents[2]

LIBRARIES = ("numpy", "scikit-learn", "scipy")
"""What numbers are computed with, at the versions of `constraints.txt`."""

CONSTRAINTS = Path("constraints.txt")
"""The file of all libraries' versions, relative to the repository."""

CODE = (
    "agents/models",
    "benchmarks/detectors_table",
    "detectors",
    "scenarios/text",
    "simulator/bench",
    "simulator/measure",
)
"""Folders with the code that decides the table, relative to the repository."""

READ = ("detectors", "agents/prompts", "agents/retrieval/prompts")
"""Folders, relative to the repository, with what this code reads: prompts, tuned numbers, learnt models."""

_READ_FILES = ("*.skops", "*.txt", "*.yaml")
_RECORDS = ("*.jsonl", "*.jsonl.gz")


def digest_file(page: Path) -> Path:
    """Return the file of a page's digest."""
    return page.with_suffix(".digest")


def table_in(page: Path) -> str:
    """Return the table in a page: all but its title and its introduction.

    Raises:
        UsageError: there is no such page.
    """
    return _parts(page)[1]


def write_page(page: Path, table: str, decided_by: Mapping[str, str]) -> None:
    """Put a table into a page, and write the digest beside it.

    Args:
        decided_by: `deciding` of the table, from before it was made.

    Raises:
        UsageError: there is no such page.
        OperationalError: a file cannot be written.
    """
    write_together({page: _parts(page)[0] + table, digest_file(page): _lines(table, decided_by)})


def what_changed(page: Path, decided_by: Mapping[str, str]) -> str | None:
    """Say what has changed since a page was written; None if nothing has."""
    now = set(_lines(table_in(page), decided_by).splitlines())
    file = digest_file(page)
    then = set(file.read_text(encoding="utf-8").splitlines()) if file.is_file() else set()
    names = sorted({line.partition(" ")[0] for line in now ^ then})
    if not names:
        return None
    return (
        f"{page} may not be what the command prints, for these have changed since: {', '.join(names)}. Run "
        f"`python -m benchmarks.detectors_table --docs {page}`."
    )


def deciding(asked: TableArguments, detectors: Sequence[str]) -> dict[str, str]:
    """Return digests of all that decides a table, by name."""
    found = {
        "code": deciding_code(),
        "options": [made_by(name, asked) for name in detectors],
        "libraries": _pinned(),
        "prompts-and-learnt-models": {folder: _hashed(Path(folder), _READ_FILES) for folder in READ},
        "recordings": _hashed(asked.recordings, _RECORDS),
        "samples": _hashed(asked.data, _RECORDS),
    }
    return {name: digest(value) for name, value in found.items()}


def _lines(table: str, decided_by: Mapping[str, str]) -> str:
    """Return the content of the digest's file."""
    return "".join(f"{name} {value}\n" for name, value in {**decided_by, "table": digest(table)}.items())


def deciding_code() -> dict[str, str]:
    """Return the files of code that decide the table: path → hash of the code."""
    files = (path for folder in CODE for path in (ROOT / folder).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): digest_code(path) for path in files}


def _hashed(folder: Path, patterns: Sequence[str]) -> dict[str, str]:
    """Return the hashes of the files below a folder, by their place in it."""
    files = (path for pattern in patterns for path in folder.rglob(pattern))
    return {path.relative_to(folder).as_posix(): _hash(path) for path in files}


def _hash(path: Path) -> str:
    """Hash a file; of YAML the values, without comments."""
    if path.suffix == ".yaml":
        return digest(yaml.safe_load(path.read_text(encoding="utf-8")))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _pinned() -> list[str]:
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.partition("==")[0] in LIBRARIES]


def _parts(page: Path) -> tuple[str, str]:
    """Return a page's title and introduction, and its table."""
    try:
        title, introduction, table = page.read_text(encoding="utf-8").split("\n\n", 2)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--docs {page}: this is no page with a title, an introduction and a table."
        ) from error
    return f"{title}\n\n{introduction}\n\n", table
