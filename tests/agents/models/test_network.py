"""Connections: used again, watched without look-ups, written to in one piece, and made through proxies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio.abc
import httpx2
import pytest

from hallulab.agents.models.network import find_proxy
from hallulab.agents.models.transport import make_network
from hallulab.scenarios.errors import UsageError


class Doorkeeper(asyncio.Protocol):
    """An endpoint's side of a connection: keeps each piece that comes, and says which connection it is."""

    def __init__(self, others: list[Doorkeeper], ending: bytes) -> None:
        self.pieces: list[bytes] = []
        others.append(self)
        self._number = len(others)
        self._ending = ending

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.pieces.append(data)
        if data.endswith(self._ending):
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d" % self._number)


@asynccontextmanager
async def keepers(ending: bytes = b"\r\n\r\n") -> AsyncIterator[tuple[str, list[Doorkeeper]]]:
    """Where an endpoint is that answers requests with this ending, and its connections."""
    made: list[Doorkeeper] = []
    server = await asyncio.get_running_loop().create_server(lambda: Doorkeeper(made, ending), "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", made
    for keeper in made:
        keeper.transport.close()
    server.close()


async def ask(network: httpx2.AsyncBaseTransport, request: httpx2.Request) -> str:
    response = await network.handle_async_request(request)
    text = (await response.aread()).decode()
    await response.aclose()
    return text


async def ask_times(number: int) -> list[str]:
    """What is said to so many requests, one after the other."""
    network = make_network()
    async with keepers() as (url, _):
        said = [await ask(network, httpx2.Request("GET", url)) for _ in range(number)]
        await network.aclose()
    return said


async def test_an_open_connection_is_used_again() -> None:
    assert await ask_times(2) == ["1", "1"]


async def test_a_connection_that_the_endpoint_closed_is_not_used_again() -> None:
    network = make_network()
    async with keepers() as (url, made):
        assert await ask(network, httpx2.Request("GET", url)) == "1"
        made[0].transport.close()
        await asyncio.sleep(0.05)
        assert await ask(network, httpx2.Request("GET", url)) == "2"
        await network.aclose()


async def test_a_socket_is_looked_up_once_and_not_at_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[anyio.abc.SocketStream] = []
    found = anyio.abc.SocketStream.extra_attributes

    def look(stream: anyio.abc.SocketStream) -> Any:
        looked.append(stream)
        return found.__get__(stream)

    monkeypatch.setattr("anyio.abc.SocketStream.extra_attributes", property(look))
    await ask_times(1)
    once = len(looked)
    looked.clear()
    await ask_times(5)
    assert len(looked) == once > 0


async def test_head_and_body_go_out_in_one_piece() -> None:
    network = make_network()
    async with keepers(b"body") as (url, made):
        assert await ask(network, httpx2.Request("POST", url, content=b"the body")) == "1"
        await network.aclose()
    [piece] = made[0].pieces
    assert piece.startswith(b"POST / HTTP/1.1\r\n")
    assert piece.endswith(b"\r\n\r\nthe body")


async def test_a_body_of_unknown_length_is_sent() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"the "
        yield b"body"

    network = make_network()
    async with keepers(b"\r\n0\r\n\r\n") as (url, made):
        assert await ask(network, httpx2.Request("POST", url, content=pieces())) == "1"
        await network.aclose()
    assert b"".join(made[0].pieces).endswith(b"\r\n\r\n4\r\nthe \r\n4\r\nbody\r\n0\r\n\r\n")


ALL = {"http": "http://p:1", "https": "http://p:2"}


@pytest.mark.parametrize(
    ("url", "proxies", "proxy"),
    [
        ("http://models.example/v1", ALL, "http://p:1"),
        ("https://models.example/v1", ALL, "http://p:2"),
        ("https://models.example/v1", {"all": "p:3"}, "http://p:3"),
        ("https://models.example/v1", {"http": "http://p:1"}, None),
        ("http://127.0.0.1:8000/v1", ALL, None),
        ("http://localhost:8000/v1", ALL, None),
        ("http://[::1]:8000/v1", ALL, None),
        ("https://models.example/v1", {**ALL, "no": "other.example, models.example"}, None),
        ("https://eu.models.example/v1", {**ALL, "no": ".models.example"}, None),
        ("https://models.example/v1", {**ALL, "no": "*"}, None),
        ("http://10.1.2.3/v1", {**ALL, "no": "10.0.0.0/8"}, None),
        ("http://11.1.2.3/v1", {**ALL, "no": "10.0.0.0/8"}, "http://p:1"),
    ],
)
def test_which_proxy_is_asked(url: str, proxies: Mapping[str, str], proxy: str | None) -> None:
    assert find_proxy(httpx2.URL(url), proxies) == proxy


@asynccontextmanager
async def proxy_saying(answer: bytes) -> AsyncIterator[tuple[int, list[bytes]]]:
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1], heard
    server.close()


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_a_request_goes_through_the_proxy(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    async with proxy_saying(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as (port, heard):
        monkeypatch.setenv(name, f"http://user:pass-word-1@127.0.0.1:{port}")
        network = make_network()
        response = await network.handle_async_request(
            httpx2.Request("GET", "http://models.invalid/v1/models")
        )
        assert await response.aread() == b"ok"
        await network.aclose()
    assert heard[0].startswith(b"GET http://models.invalid/v1/models HTTP/1.1")
    assert b"Proxy-Authorization: Basic" in heard[0]


async def test_an_error_of_the_proxy_names_it_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    async with proxy_saying(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n") as (port, _):
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:pass-word-1@127.0.0.1:{port}")
        network = make_network()
        with pytest.raises(httpx2.ProxyError, match=f"^through the proxy 127.0.0.1:{port}: 407") as caught:
            await network.handle_async_request(httpx2.Request("GET", "https://models.invalid/v1/models"))
        await network.aclose()
    assert "pass-word" not in str(caught.value)


async def test_what_is_no_proxy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "gopher://p:1")
    network = make_network()
    with pytest.raises(UsageError, match="the proxy gopher://p:1 cannot be used"):
        await network.handle_async_request(httpx2.Request("GET", "http://models.invalid/v1"))
    await network.aclose()
