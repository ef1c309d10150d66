"""A scripted model behind a real endpoint on loopback, in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.stub_endpoint import StubProtocol


async def stop_listening(server: asyncio.Server) -> None:
    """Close a server, but first finish the connections that it has accepted.

    Python 3.11 makes a connection one turn of the loop after it was accepted. If the server is closed in
    between, an assertion fails in silence and nobody ever closes the socket.
    """
    for listening in server.sockets:
        asyncio.get_running_loop().remove_reader(listening.fileno())
    for _ in range(3):
        await asyncio.sleep(0)
    server.close()


@contextmanager
def served(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> Iterator[str]:
    """Serve a model called `benchmarks.stub_endpoint.MODEL` that answers at once; yield the base URL.

    Args:
        answer: makes the body of an answer from that of a request.
    """
    connections: list[asyncio.Transport] = []

    class Protocol(StubProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            self.answer = answer  # type: ignore[assignment]
            connections.append(self._transport)

    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(loop.create_server(Protocol, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def end() -> None:
        await stop_listening(server)
        for connection in connections:
            connection.abort()
        await asyncio.sleep(0)  # `connection_lost` is called in the next turn of the loop

    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
