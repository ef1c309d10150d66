"""Watch the model calls of a block while they are under way: what each is for, and its text as it grows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class CallProgress:
    """How far a call is."""

    purpose: str | None
    """The purpose that it gets in the ledger; None: not known."""
    text: str | None = None
    """The text so far, without keys; None: the call begins. It begins anew where a call is tried again."""


Watcher = Callable[[CallProgress], None]
"""Is told how far calls are, in the order in which it happens."""

_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
_purpose: ContextVar[str | None] = ContextVar("purpose", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Tell a watcher of the calls of the block, and of tasks that it starts."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


@contextmanager
def calling_for(purpose: str) -> Iterator[None]:
    """Say what the calls of the block are for, and tell whoever watches that one begins."""
    if (watcher := _watcher.get()) is not None:
        watcher(CallProgress(purpose))
    token = _purpose.set(purpose)
    try:
        yield
    finally:
        _purpose.reset(token)


def find_text_listener() -> Callable[[str], None] | None:
    """Return what takes the text of the call under way as it grows; None: nobody watches."""
    watcher, purpose = _watcher.get(), _purpose.get()
    if watcher is None:
        return None
    return lambda text: watcher(CallProgress(purpose, text))
