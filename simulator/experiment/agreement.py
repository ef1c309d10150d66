"""Who is asked whether the user agrees to something: whoever a command says can be, else nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

Ask = Callable[[str, Sequence[str]], bool]
"""Asks the user: what the question is about, and its lines → whether the user agrees."""

_ask: ContextVar[Ask | None] = ContextVar("ask", default=None)


@contextmanager
def asking_by(ask: Ask) -> Iterator[None]:
    """Have the user asked in this way while the block runs."""
    token = _ask.set(ask)
    try:
        yield
    finally:
        _ask.reset(token)


def agrees(about: str, lines: Sequence[str]) -> bool:
    """Return whether the user is asked, and agrees."""
    ask = _ask.get()
    return ask is not None and ask(about, lines)
