"""Print text that a terminal cannot obey, whatever the files hold that it comes from."""

from __future__ import annotations

import json
import re

import typer

from hallulab.scenarios.text.wording import harmless

_DISOBEYED = re.compile(r"[^\n -~]")


def say(text: object, err: bool = False) -> None:
    """Print lines.

    Args:
        text: `str` turns it into lines.
        err: whether to use standard error.
    """
    typer.echo(harmless(str(text)), err=err)


def say_json(text: str) -> None:
    """Print JSON, with characters that a terminal would obey spelt as escapes.

    JSON has such characters only in its strings, so the value stays the same.
    """
    typer.echo(_DISOBEYED.sub(lambda found: _spelt(found[0]), text), nl=False)


def _spelt(letter: str) -> str:
    return letter if harmless(letter) == letter else json.dumps(letter)[1:-1]
