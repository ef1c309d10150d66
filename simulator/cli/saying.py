"""Print text that a terminal cannot obey, whatever the files hold that it comes from."""

from __future__ import annotations

import json
import re

import typer

from hallulab.scenarios.text.wording import clean_for_terminal

_DISOBEYED = re.compile(r"[^\n -~]")


def print_lines(text: object, err: bool = False) -> None:
    """Print lines.

    Args:
        text: `str` turns it into lines.
        err: whether to use standard error.
    """
    typer.echo(clean_for_terminal(str(text)), err=err)


def print_json(text: str) -> None:
    """Print JSON, with characters that a terminal would obey spelt as escapes.

    JSON has such characters only in its strings, so the value stays the same.
    """
    typer.echo(_DISOBEYED.sub(lambda found: _escape_letter(found[0]), text), nl=False)


def _escape_letter(letter: str) -> str:
    return letter if clean_for_terminal(letter) == letter else json.dumps(letter)[1:-1]
