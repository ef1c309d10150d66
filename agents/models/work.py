"""Pieces of work under way, and which of them wait for a model, to notice when nothing else goes on.

A piece is a conversation or the judgement of a turn. It waits while a request of it waits for its
wave, or for the answer to an equal one. Anything else (a search, a thread, a chatbot
behind HTTP, another process) shows as not waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

TURNS = 50
"""Turns of the event loop that nothing may change in. A piece that ended, or got its answer, asks again or is
followed by the next one within fewer than ten."""

PATIENCE_S = 60.0
"""Seconds in which nothing changes, after which pieces that do not wait are waited for no more. One that goes
on later asks in the next wave."""


class WorkUnderWay:
    """The pieces of work of a run."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._busy = 0
        self._changes = 0
        self._changed = asyncio.Event()

    @contextmanager
    def piece(self) -> Iterator[None]:
        """Count the block, and the tasks that it starts, as one piece."""
        piece = _PieceOfWork(self)
        token = _piece.set(piece)
        self.note(+1)
        try:
            yield
        finally:
            _piece.reset(token)
            piece.ended = True
            self.note(0 if piece.waits else -1)

    def note(self, busy: int) -> None:
        """Note a change, and by how much it changes the number of pieces that do not wait."""
        self._busy += busy
        self._changes += 1
        self._changed.set()

    async def until_all_wait(self) -> None:
        """Return when every piece waits for a model, or nothing has changed for too long."""
        while True:
            seen = self._changes
            self._changed.clear()
            if self._busy:
                try:
                    async with asyncio.timeout(self._patience_s):
                        await self._changed.wait()
                except TimeoutError:
                    return
                continue
            for _ in range(TURNS):
                await asyncio.sleep(0)
                if self._changes != seen:
                    break
            else:
                return


class _PieceOfWork:
    """A piece of work."""

    def __init__(self, work: WorkUnderWay) -> None:
        self.work = work
        self.waits = 0
        """Questions to a model that it waits for."""
        self.ended = False


_piece: ContextVar[_PieceOfWork | None] = ContextVar("piece", default=None)


@contextmanager
def waiting_for_model() -> Iterator[None]:
    """Count the piece of work that the block belongs to, if any, as waiting for a model."""
    piece = _piece.get()
    if piece is None:
        yield
        return
    piece.waits += 1
    piece.work.note(-1 if piece.waits == 1 and not piece.ended else 0)
    try:
        yield
    finally:
        piece.waits -= 1
        piece.work.note(+1 if piece.waits == 0 and not piece.ended else 0)
