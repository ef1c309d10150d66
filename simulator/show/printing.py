"""Lines and tables on a terminal, as bench, calibrate and stress print them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from hallulab.scenarios.text.wording import render_one_line
from hallulab.simulator.show.columns import NARROW, Column, Format, build_terminal_table


def print_line(console: Console, text: str) -> None:
    """Print a text as one line, without what a terminal would obey."""
    console.print(Text(render_one_line(text)))


def print_table(
    console: Console,
    heading: str,
    columns: Sequence[Column],
    groups: Sequence[Sequence[Any]],
    bound: Format | None = None,
) -> None:
    """Print a table under its heading; columns and groups as for `build_terminal_table`.

    Args:
        bound: format of intervals' bounds; None: that of the values.
    """
    print_line(console, heading)
    console.print(build_terminal_table(columns, groups, narrow=console.width < NARROW, bound=bound))
