"""An endpoint on loopback that is as busy as a served model: so many answers at once, and no more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager

from hallulab.testing.endpoint import (
    StubProtocol,
    completion,
    http_response,
    models,
    run_loop_in_thread,
    stop_listening,
)


class BusyEndpoint:
    """A busy endpoint's settings, and its record.

    Args:
        seconds: what an answer takes.
        capacity: answers that are made at once; other requests wait.
        most: requests under way at most, those that wait included; 0: there is no limit.
    """

    def __init__(self, seconds: float, capacity: int, most: int = 0) -> None:
        self.seconds, self.most = seconds, most
        self.answered = self.refused = self.under_way = 0
        self.port = 0
        self.connections: list[asyncio.Transport] = []
        self._places = asyncio.Semaphore(capacity)
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """Base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def answer(self, transport: asyncio.Transport, body: bytes) -> None:
        """Answer a request, or refuse it."""
        if self.most and self.under_way >= self.most:
            self.refused += 1
            transport.write(http_response(b'{"error": {"message": "too many requests"}}', 429))
            return
        self.under_way += 1
        try:
            async with self._places:
                await asyncio.sleep(self.seconds)
        finally:
            self.under_way -= 1
        self.answered += 1
        transport.write(http_response(json.dumps(completion(json.loads(body))).encode()))

    async def open(self) -> None:
        """Listen on a free port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Busy(self), "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """End all that is under way."""
        assert self._server is not None
        await stop_listening(self._server)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        for connection in self.connections:
            connection.abort()
        await asyncio.sleep(0)  # `connection_lost` is called in the next turn


class _Busy(StubProtocol):
    def __init__(self, endpoint: BusyEndpoint) -> None:
        self._endpoint = endpoint
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._endpoint.connections.append(self._transport)

    def respond(self, head: bytes, body: bytes) -> None:
        """See `StubProtocol.respond`."""
        if head.startswith(b"get"):
            self._transport.write(http_response(json.dumps(models()).encode()))
            return
        task = asyncio.ensure_future(self._endpoint.answer(self._transport, body))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


@contextmanager
def busy_endpoint(seconds: float, capacity: int, most: int = 0) -> Iterator[BusyEndpoint]:
    """Serve a model called `stub` in a thread; see `BusyEndpoint`."""
    endpoint = BusyEndpoint(seconds, capacity, most)
    with run_loop_in_thread() as wait_for:
        wait_for(endpoint.open())
        try:
            yield endpoint
        finally:
            wait_for(endpoint.close())
