"""A scripted model behind a real endpoint on loopback, in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.stub_endpoint import StubProtocol


@contextmanager
def served(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> Iterator[str]:
    """Serve a model called `benchmarks.stub_endpoint.MODEL` that answers at once; yield the base URL.

    Args:
        answer: makes the body of an answer from that of a request.
    """
    connections: list[asyncio.BaseTransport] = []

    class Protocol(StubProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            self.answer = answer  # type: ignore[misc]
            connections.append(transport)

    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(loop.create_server(Protocol, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def end() -> None:
        server.close()
        for connection in connections:
            connection.close()
        await asyncio.sleep(0)  # `connection_lost` is called in the next turn of the loop

    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
