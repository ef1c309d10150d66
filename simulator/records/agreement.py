"""Who is asked for the user's agreement: whoever a command names, else nobody.

It imports little: `hallulab --help` loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from hallulab.scenarios.errors import UsageError

Ask = Callable[[str, Sequence[str]], bool]
"""Asks the user: what the question is about, and its lines → whether the user agrees."""

_SHOWN = 3
"""Lines at most that stand in an error."""

_ask: ContextVar[Ask | None] = ContextVar("ask", default=None)


@contextmanager
def asking_by(ask: Ask) -> Iterator[None]:
    """Have the user asked in this way while the block runs."""
    token = _ask.set(ask)
    try:
        yield
    finally:
        _ask.reset(token)


def require_agreement(source: Path, lines: Sequence[str], remedy: str) -> None:
    """Check that the user agrees to what only a file says, if there is anything.

    Args:
        lines: what it says, each the end of a sentence. Whoever is asked sees all of them.
        remedy: a sentence for whoever cannot be asked.

    Raises:
        UsageError: nobody can be asked, or the user says no.
    """
    ask = _ask.get()
    if not lines or (ask is not None and ask(f"Only {source} says that:", lines)):
        return
    more = f"; and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    raise UsageError(f"only {source} says that {'; '.join(lines[:_SHOWN])}{more}. {remedy}")
