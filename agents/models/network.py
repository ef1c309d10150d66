"""Connections to endpoints that cost little computing time, and proxies.

The pool of connections asks at every request whether the other side has closed an idle one. By default each
answer takes a list of all that is known of a socket, its addresses included. Here it takes one call of the
system. A request goes out in one piece instead of two, its head and its body.

Other machines are asked through the proxies of the usual environment variables (`HTTPS_PROXY`, `HTTP_PROXY`,
`ALL_PROXY`, `NO_PROXY`, in capitals or small letters); this machine never is. `.netrc` is not read.
"""

from __future__ import annotations

import select
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.request import getproxies_environment

import httpcore2
import httpx2

from hallulab.agents.models.endpoints import is_loopback
from hallulab.agents.models.unreachable import CORRECT_PROXY, THROUGH
from hallulab.scenarios.errors import UsageError


class Network(httpx2.AsyncHTTPTransport):
    """Sends requests over the network, with as many connections as are asked for."""

    def __init__(self) -> None:
        limits, context = httpx2.Limits(max_connections=None), httpx2.create_ssl_context()
        super().__init__(verify=context, limits=limits)
        self._context, self._limits = context, limits
        self._proxies = getproxies_environment()
        self._through: dict[str, httpx2.AsyncHTTPTransport] = {}
        """Connections through each proxy."""
        # The base class takes no backend. Under another name, its own pool would go on, only slower.
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=_Backend(),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, through a proxy if there is one for it; see `httpx2.AsyncBaseTransport`.

        Raises:
            UsageError: the proxy's address is none.
            httpx2.RequestError: there is no answer.
        """
        proxy = find_proxy(request.url, self._proxies) if self._proxies else None
        if proxy is None:
            return await super().handle_async_request(request)
        if proxy not in self._through:
            self._through[proxy] = self._connect_through(proxy)
        try:
            return await self._through[proxy].handle_async_request(request)
        except (httpx2.ProxyError, httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise type(error)(f"{THROUGH}{_hide_password(proxy)}: {error}", request=request) from error

    def _connect_through(self, proxy: str) -> httpx2.AsyncHTTPTransport:
        try:
            return httpx2.AsyncHTTPTransport(
                verify=self._context, limits=self._limits, proxy=httpx2.Proxy(proxy)
            )
        except (ValueError, httpx2.InvalidURL, ImportError) as error:
            lacking = " Install the package socksio." if isinstance(error, ImportError) else ""
            raise UsageError(
                f"the proxy {_hide_password(proxy)} cannot be used.{lacking} {CORRECT_PROXY}"
            ) from error

    async def aclose(self) -> None:
        """Close all connections."""
        await super().aclose()
        for through in self._through.values():
            await through.aclose()


def find_proxy(url: httpx2.URL, proxies: Mapping[str, str]) -> str | None:
    """Return the address of the proxy for a request; None: it goes straight there.

    Args:
        url: where it goes.
        proxies: scheme → address, and `no` → hosts, domains and networks that need none.
    """
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or is_loopback(str(url)):
        return None
    if any(_covers(one.strip().lower(), url) for one in proxies.get("no", "").split(",")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _covers(exception: str, url: httpx2.URL) -> bool:
    """Return whether an entry of `NO_PROXY` is about an address: its host, a domain, a network, or `*`."""
    with suppress(ValueError):  # no network, or the host is a name
        return ip_address(url.host) in ip_network(exception.strip("[]"), strict=False)
    named, _, port = exception.partition(":")
    domain = named.removeprefix("*").removeprefix(".")
    if named == "*" or not domain:
        return named == "*"
    right_port = not port or port == str(url.port or {"http": 80, "https": 443}.get(url.scheme))
    return right_port and f".{url.host}".endswith(f".{domain}")


def _hide_password(proxy: str) -> str:
    return proxy.rpartition("@")[2] or proxy


class _Backend(httpcore2.AnyIOBackend):
    """Makes connections whose streams are `_PolledStream`s."""

    async def connect_tcp(self, *args: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        """See `httpcore2.AsyncNetworkBackend`."""
        return _PolledStream(await super().connect_tcp(*args, **options))


class _PolledStream(httpcore2.AsyncNetworkStream):
    """A stream that watches its socket, and sends a request in one piece."""

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
