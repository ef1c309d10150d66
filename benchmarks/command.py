"""What the commands of this folder share: arguments, errors, tables in Markdown, and recorded answers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from hallulab.agents.models.recording import Recording
from hallulab.scenarios.errors import HallulabError, UsageError
from hallulab.scenarios.files.atomic import write_atomically
from hallulab.scenarios.text.wording import NOTHING, clean_for_terminal


def build_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser of the arguments of `python -m benchmarks.NAME`.

    Args:
        name: of the module under `benchmarks`.
        description: the module's docstring, printed by `--help` as it is.
    """
    return argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def get_exit_code(run: Callable[[], int | None]) -> int:
    """Run a command; return its exit code, as of `hallulab`: 2 for a wrong request, 1 for another error."""
    try:
        return run() or 0
    except HallulabError as error:
        print(clean_for_terminal(f"error: {error}"), file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1


def find_recording(growing: Path) -> Path | None:
    """Return the recording to replay, a growing one before a packed one; None where neither has content."""
    packed = growing.with_name(f"{growing.name}.gz")
    return next((path for path in (growing, packed) if path.is_file() and path.stat().st_size), None)


def open_recording(growing: Path, *, grows: bool) -> Recording:
    """Return the growing recording, the one to replay, or an empty one to replay where there is none."""
    if grows:
        return Recording.record(growing)
    found = find_recording(growing)
    recording = Recording() if found is None else Recording.replay(found)
    recording.replaying = True
    return recording


def format_row(cells: Sequence[str]) -> str:
    """Return a row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def format_head(columns: Sequence[str]) -> list[str]:
    """Return the two lines with which a table in Markdown begins."""
    return [format_row(columns), f"|{'---|' * len(columns)}"]


def format_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown, without a final newline."""
    return "\n".join([*format_head(columns), *map(format_row, rows)])


def format_signed(share: float | None) -> str:
    """Format a share in percent, with its sign; a dash where there is none."""
    return NOTHING if share is None else f"{share:+.0%}".replace("-", "−")


def write_between(docs: Path, begins: str, ends: str, tables: str) -> None:
    """Put tables between the marks of a page.

    Raises:
        UsageError: the page has no such marks.
    """
    text = docs.read_text(encoding="utf-8")
    if begins not in text or ends not in text:
        raise UsageError(f"--docs {docs}: this page has no lines {begins.strip()} and {ends.strip()}.")
    before, after = text.split(begins)[0], text.split(ends)[1]
    write_atomically(docs, f"{before}{begins}{tables}{ends}{after}")
