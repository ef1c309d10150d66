"""The pipe between a worker process and the one that started it.

Both are ours, and nobody else can write to it, so what is sent may be pickled.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any


class Pipe:
    """Objects in both directions; several threads may send.

    Args:
        descriptor: of a stream socket.
    """

    def __init__(self, descriptor: int) -> None:
        self._connection = Connection(descriptor)
        self._sending = threading.Lock()

    def send(self, message: Any) -> None:
        """Send an object. If nobody is at the other end any more, who receives hears that."""
        with self._sending, suppress(OSError):
            self._connection.send(message)

    def __iter__(self) -> Iterator[Any]:
        """Yield what comes until the other end is closed."""
        with suppress(EOFError, OSError):
            while True:
                yield self._connection.recv()

    def close(self) -> None:
        """Close this end."""
        with self._sending:
            self._connection.close()
