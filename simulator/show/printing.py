"""Tables on a terminal of commands that make no `Document` yet: it goes when the last of them does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from hallulab.simulator.show.columns import Column, Format
from hallulab.simulator.show.document import Document, GroupedTable
from hallulab.simulator.show.terminal import print_document
from hallulab.simulator.show.terminal import print_line as print_line


def print_table(
    console: Console,
    heading: str,
    columns: Sequence[Column],
    groups: Sequence[Sequence[Any]],
    bound: Format | None = None,
) -> None:
    """Print a table under its heading."""
    print_document(Document("", "", lead=[GroupedTable(columns, groups, heading, bound=bound)]), console)
