"""Connections to endpoints that cost little computing time.

The pool of connections asks at every request whether the other side has closed an idle one. By default each
answer takes a list of all that is known of a socket, its addresses included. Here it takes one call of the
system. A request goes out in one piece instead of two, its head and its body.
"""

from __future__ import annotations

import select
from typing import Any

import httpcore2
import httpx2


class Network(httpx2.AsyncHTTPTransport):
    """Sends requests over the network, with as many connections as are asked for."""

    def __init__(self) -> None:
        limits, context = httpx2.Limits(max_connections=None), httpx2.create_ssl_context()
        super().__init__(verify=context, limits=limits)
        # The base class takes no backend. Under another name, its own pool would go on, only slower.
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=_Backend(),
        )


class _Backend(httpcore2.AnyIOBackend):
    """Makes connections whose streams are `_PolledStream`s."""

    async def connect_tcp(self, *args: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        """See `httpcore2.AsyncNetworkBackend`."""
        return _PolledStream(await super().connect_tcp(*args, **options))


class _PolledStream(httpcore2.AsyncNetworkStream):
    """A stream that watches its socket, and sends a request in one piece.

    Args:
        inner: reads and writes.
    """

    def __init__(self, inner: httpcore2.AsyncNetworkStream) -> None:
        self._inner = inner
        self._socket = inner.get_extra_info("socket")
        self._watch = select.poll()
        self._watch.register(self._socket, select.POLLIN)
        self._unsent = b""

    async def read(self, *args: Any, **options: Any) -> bytes:
        """See `httpcore2.AsyncNetworkStream`."""
        if self._unsent:  # a request of unknown length, which nothing empty ends
            await self.write(b"")
        return await self._inner.read(*args, **options)

    async def write(self, buffer: bytes, *args: Any, **options: Any) -> None:
        """Keep a piece; an empty one ends a request, and all is sent. See `httpcore2.AsyncNetworkStream`."""
        self._unsent += buffer
        if not buffer:
            whole, self._unsent = self._unsent, b""
            await self._inner.write(whole, *args, **options)

    async def start_tls(self, *args: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        """See `httpcore2.AsyncNetworkStream`."""
        return _PolledStream(await self._inner.start_tls(*args, **options))

    async def aclose(self) -> None:
        """See `httpcore2.AsyncNetworkStream`."""
        await self._inner.aclose()

    def get_extra_info(self, info: str) -> Any:
        """See `httpcore2.AsyncNetworkStream`."""
        if info != "is_readable":
            return self._inner.get_extra_info(info)
        # The system may have given the number of a closed socket to another one.
        return self._socket.fileno() < 0 or bool(self._watch.poll(0))
